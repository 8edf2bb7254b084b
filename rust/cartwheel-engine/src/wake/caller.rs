//! What the pool's calling thread does, as far as waiting workers need to know it.
//!
//! A worker that has nothing to do waits for one of two things. While the caller waits for a batch,
//! the other workers are busy, and the next work comes soon after them. Otherwise the caller *thinks*:
//! a policy computes, and may need the processors. How long it thinks is measured, from the end of a
//! wait to the next task or send, and the last measurement is what workers expect. The caller of a
//! crew is not measured (`Pool::wait` says why), so its threads expect a brief thought.
//!
//! The word is a hint: it decides how long a worker polls, never whether it is woken. So all its
//! accesses are `Relaxed`. Only the caller writes it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The bit that says that the caller waits; the others are the microseconds of its last thought.
const WAITS: u32 = 1 << 31;

/// The word that the caller writes and workers read. Zero: the caller thinks, as briefly as can be.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Caller(AtomicU32);

impl Caller {
    /// Whether the caller waits for workers.
    pub(super) fn waits(&self) -> bool {
        self.0.load(Ordering::Relaxed) & WAITS != 0
    }

    /// How long the caller thought between its last two batches.
    pub(super) fn thought(&self) -> Duration {
        Duration::from_micros(u64::from(self.0.load(Ordering::Relaxed) & !WAITS))
    }

    /// The caller begins to wait for workers, or ends.
    pub(crate) fn set_waits(&self, waits: bool) {
        let thought = self.0.load(Ordering::Relaxed) & !WAITS;
        self.0.store(if waits { thought | WAITS } else { thought }, Ordering::Relaxed);
    }

    /// The caller, which does not wait, gives work to workers after a thought.
    pub(crate) fn set_thought(&self, thought: Duration) {
        let longest = u128::from(WAITS - 1);
        let micros = u32::try_from(thought.as_micros().min(longest)).expect("below 2^31");
        self.0.store(micros, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thought_is_what_workers_expect_whether_the_caller_waits_or_not() {
        let caller = Caller::default();
        assert!(!caller.waits() && caller.thought().is_zero());
        for thought in
            [0, 1, 2_000, u32::MAX >> 1].map(|micros| Duration::from_micros(micros.into()))
        {
            caller.set_thought(thought);
            for waits in [true, false] {
                caller.set_waits(waits);
                assert_eq!((caller.waits(), caller.thought()), (waits, thought));
            }
        }
        caller.set_thought(Duration::MAX);
        assert_eq!(caller.thought(), Duration::from_micros((u32::MAX >> 1).into()));
    }
}
