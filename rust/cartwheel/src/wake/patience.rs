//! How long to look before sleeping.
//!
//! Waking a sleeper on another processor takes 12 to 70 µs on virtual machines, far longer than
//! the handful of cheap steps that a task may consist of; looking at the word instead takes
//! 0.1 µs, as long as the one who is waited for has a processor to run on. Hence two stages before
//! sleep: *looking* (with the processor's pause instruction), when there is a processor for every
//! worker and for the pool; and *yielding* (`sched_yield` between looks), which costs the others
//! nothing when processors are scarce, because the kernel runs them first.
//!
//! Both stages end after a time that follows what was seen: a wait that succeeded within its
//! patience keeps it; several in a row that did not shorten it to nothing, apart from a trial now
//! and then, more and more rarely. A pool whose caller thinks for milliseconds between steps
//! therefore soon stops spending processor time on looking.

use std::time::{Duration, Instant};

/// Most time spent looking and yielding before one sleep.
const LONGEST: Duration = Duration::from_micros(300);
/// Failed waits in a row after which patience is lost.
const LOST_AFTER: u32 = 3;
/// Waits between two trials once it is lost: at first, and at most.
const FIRST_GAP: u32 = 8;
const LAST_GAP: u32 = 1024;
/// Looks between two glances at the clock.
const LOOKS: u32 = 64;

/// The memory of one waiter.
#[derive(Debug)]
pub struct Patience {
    /// A processor for everyone: look without yielding first.
    roomy: bool,
    enabled: bool,
    failures: u32,
    gap: u32,
    until_trial: u32,
}

impl Patience {
    /// For a waiter among `parties` (workers and the pool) on `cpus` processors.
    pub fn new(parties: usize, cpus: usize, enabled: bool) -> Self {
        let roomy = parties <= cpus;
        Self { roomy, enabled, failures: 0, gap: FIRST_GAP, until_trial: 0 }
    }

    /// Looks until `ready`, or until patience ends; whether it was ready.
    pub fn wait(&mut self, mut ready: impl FnMut() -> bool) -> bool {
        if ready() {
            return true;
        }
        if !self.enabled {
            return false;
        }
        if self.failures >= LOST_AFTER {
            self.until_trial = self.until_trial.saturating_sub(1);
            if self.until_trial > 0 {
                return false;
            }
        }
        if self.look(ready) {
            self.failures = 0;
            self.gap = FIRST_GAP;
            return true;
        }
        self.failures += 1;
        if self.failures > LOST_AFTER {
            self.gap = (self.gap * 2).min(LAST_GAP);
        }
        self.until_trial = self.gap;
        false
    }

    fn look(&self, mut ready: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        loop {
            if self.roomy {
                for _ in 0..LOOKS {
                    if ready() {
                        return true;
                    }
                    std::hint::spin_loop();
                }
            } else {
                rustix::thread::sched_yield();
                if ready() {
                    return true;
                }
            }
            if start.elapsed() >= LONGEST {
                return false;
            }
        }
    }
}
