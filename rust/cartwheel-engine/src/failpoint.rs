//! Faults in the protocol between a pool and its workers, for tests.
//!
//! With the feature `failpoints`, the environment variable `CARTWHEEL_FAILPOINTS` of a process
//! names the faults that happen in it, separated by commas. It is read once. `name=n` means the
//! `n`-th time that the place is reached, and every later time; a process stops only once.
//!
//! | name | what happens |
//! |---|---|
//! | `die_before_ack` | the process ends when its rows are written, before it acknowledges or counts them |
//! | `die_before_access` | the process ends before it loads or stores a word of the protocol |
//! | `die_before_count` | the process ends when it has acknowledged a task, before it counts itself for the ring |
//! | `die_mid_row` | the process ends when it has written half of an observation |
//! | `delay_wake` | a wake-up comes 5 ms late |
//! | `drop_wake` | a wake-up does not come |
//! | `spurious_wake` | a sleep ends at once |
//! | `stop_before_access` | the process stops, as by SIGSTOP, before it loads or stores a word of the protocol |
//!
//! Without the feature every check below is the constant `false`, and the compiler removes it.

/// A place in the protocol where something can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failpoint {
    DieBeforeAck,
    #[cfg_attr(
        not(feature = "failpoints"),
        expect(dead_code, reason = "without failpoints, no code wraps the words")
    )]
    DieBeforeAccess,
    DieBeforeCount,
    DieMidRow,
    DelayWake,
    DropWake,
    SpuriousWake,
    #[cfg_attr(
        not(feature = "failpoints"),
        expect(dead_code, reason = "without failpoints, no code wraps the words")
    )]
    StopBeforeAccess,
}

#[cfg(not(feature = "failpoints"))]
impl Failpoint {
    /// Whether the fault happens now.
    #[expect(clippy::unused_self, reason = "the feature decides, not the place")]
    pub(crate) const fn hit(self) -> bool {
        false
    }
}

#[cfg(feature = "failpoints")]
mod enabled {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::Failpoint;

    /// The environment variable.
    const VARIABLE: &str = "CARTWHEEL_FAILPOINTS";

    /// A failpoint that is set: from which time on it happens, and how often the place was reached.
    #[derive(Debug)]
    struct Set {
        failpoint: Failpoint,
        from: u32,
        reached: AtomicU32,
    }

    static SET: OnceLock<Vec<Set>> = OnceLock::new();

    impl Failpoint {
        /// Whether the fault happens now.
        pub(crate) fn hit(self) -> bool {
            let all = SET.get_or_init(|| parse(&std::env::var(VARIABLE).unwrap_or_default()));
            let Some(set) = all.iter().find(|set| set.failpoint == self) else { return false };
            let reached = set.reached.fetch_add(1, Ordering::Relaxed) + 1;
            reached == set.from || (reached > set.from && self != Self::StopBeforeAccess)
        }
    }

    fn parse(value: &str) -> Vec<Set> {
        value.split(',').filter(|entry| !entry.is_empty()).map(parse_one).collect()
    }

    fn parse_one(entry: &str) -> Set {
        let (name, from) = entry.split_once('=').unwrap_or((entry, "1"));
        let failpoint = match name {
            "die_before_ack" => Failpoint::DieBeforeAck,
            "die_before_access" => Failpoint::DieBeforeAccess,
            "die_before_count" => Failpoint::DieBeforeCount,
            "die_mid_row" => Failpoint::DieMidRow,
            "delay_wake" => Failpoint::DelayWake,
            "drop_wake" => Failpoint::DropWake,
            "spurious_wake" => Failpoint::SpuriousWake,
            "stop_before_access" => Failpoint::StopBeforeAccess,
            _ => panic!("{VARIABLE} names a failpoint that there is not: {name}"),
        };
        let from = from.parse().unwrap_or_else(|_| panic!("{VARIABLE}: {from} is not a count"));
        Set { failpoint, from, reached: AtomicU32::new(0) }
    }
}

#[cfg(loom)]
mod death;

#[cfg(loom)]
pub(crate) use death::before_access;
#[cfg(all(loom, test))]
pub(crate) use death::dies_after;

/// Called before every access to a word of the protocol, see [`crate::sync`].
#[cfg(all(feature = "failpoints", not(loom)))]
pub(crate) fn before_access() {
    if Failpoint::DieBeforeAccess.hit() {
        die();
    }
    if Failpoint::StopBeforeAccess.hit() {
        stop();
    }
}

/// Stops this process until it gets SIGCONT.
#[cfg(all(feature = "failpoints", not(loom)))]
fn stop() {
    crate::platform::stop_this_process();
    // Another thread may take the signal, and stop this one a moment later.
    std::thread::sleep(std::time::Duration::from_millis(20));
}

/// Ends this process like a crash: nothing is flushed, closed or announced.
pub(crate) fn die() -> ! {
    crate::platform::kill_this_process();
    loop {
        std::thread::park(); // until the signal has arrived
    }
}
