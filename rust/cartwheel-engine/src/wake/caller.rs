//! The state of the pool's calling thread, as far as waiting workers need to know it.
//!
//! A worker that has nothing to do waits for one of two things. While the caller waits for a batch,
//! the other workers are busy, and the next work comes soon after them. Otherwise the caller is
//! *between calls*: a policy computes, and may need the processors. The time between calls is
//! measured, from the end of a wait to the next task or send, and the last measurement is what
//! workers expect. It is not measured for a thread pool (`Pool::wait` says why), so the threads of
//! one expect a short time.
//!
//! The word is a hint: it decides how long a worker polls, never whether it is woken. So all its
//! accesses are `Relaxed`. Only the caller writes it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The bit that says that the caller waits; the others are the microseconds between its last two
/// calls.
const WAITS: u32 = 1 << 31;

/// The word that the caller writes and workers read. Zero: the caller is between calls, for the
/// shortest time.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Caller(AtomicU32);

impl Caller {
    /// Whether the caller waits for workers.
    pub(super) fn waits(&self) -> bool {
        self.0.load(Ordering::Relaxed) & WAITS != 0 // a hint: nothing is read because of it
    }

    /// The last time between two calls.
    pub(super) fn time_between_calls(&self) -> Duration {
        // `Relaxed`: as in `waits`.
        Duration::from_micros(u64::from(self.0.load(Ordering::Relaxed) & !WAITS))
    }

    /// The caller begins to wait for workers, or ends.
    pub(crate) fn set_waits(&self, waits: bool) {
        // `Relaxed`: only this thread writes, and nothing is published with the word.
        let time = self.0.load(Ordering::Relaxed) & !WAITS;
        self.0.store(if waits { time | WAITS } else { time }, Ordering::Relaxed);
    }

    /// The caller, which does not wait, gives work to workers after this time.
    pub(crate) fn set_time_between_calls(&self, time: Duration) {
        let max = u128::from(WAITS - 1);
        let micros = u32::try_from(time.as_micros().min(max)).expect("below 2^31");
        self.0.store(micros, Ordering::Relaxed); // as in `set_waits`
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_between_calls_is_what_workers_expect_whether_the_caller_waits_or_not() {
        let caller = Caller::default();
        assert!(!caller.waits() && caller.time_between_calls().is_zero());
        for time in [0, 1, 2_000, u32::MAX >> 1].map(|micros| Duration::from_micros(micros.into()))
        {
            caller.set_time_between_calls(time);
            for waits in [true, false] {
                caller.set_waits(waits);
                assert_eq!((caller.waits(), caller.time_between_calls()), (waits, time));
            }
        }
        caller.set_time_between_calls(Duration::MAX);
        assert_eq!(caller.time_between_calls(), Duration::from_micros((u32::MAX >> 1).into()));
    }
}
