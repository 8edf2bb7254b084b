//! What the pool's calling thread does, as far as waiting workers need to know it.
//!
//! A worker that has nothing to do waits for one of two things. While the caller waits for a batch,
//! the other workers are busy, and the next work comes soon after them. Otherwise the caller *thinks*:
//! a policy computes, and may need the processors. How long it thinks is measured, from the end of a
//! wait to the next task or send, and the last measurement is what workers expect.
//!
//! The word is a hint: it decides how long a worker polls, never whether it is woken. So all its
//! accesses are `Relaxed`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

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
}

/// The caller's side: measures its thoughts.
#[derive(Debug, Default)]
pub struct Thoughts {
    /// When it began to think, if it does.
    began: Option<Instant>,
    /// Microseconds of the last thought.
    last: u32,
}

impl Thoughts {
    /// The caller gives work to workers.
    pub(crate) fn end(&mut self) {
        if let Some(began) = self.began.take() {
            let longest = u128::from(WAITS - 1);
            self.last = u32::try_from(began.elapsed().as_micros().min(longest)).unwrap_or(0);
        }
    }

    /// How long the caller thought between its last two batches.
    pub(crate) fn last(&self) -> Duration {
        Duration::from_micros(u64::from(self.last))
    }

    /// The caller waits for workers.
    pub(crate) fn wait(&self, caller: &Caller) {
        caller.0.store(self.last | WAITS, Ordering::Relaxed);
    }

    /// The caller waits no longer.
    pub(crate) fn begin(&mut self, caller: &Caller) {
        caller.0.store(self.last, Ordering::Relaxed);
        self.began = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thought_is_what_workers_expect() {
        let (mut thoughts, caller) = (Thoughts::default(), Caller::default());
        assert!(!caller.waits() && caller.thought().is_zero());
        thoughts.end();
        thoughts.wait(&caller);
        assert!(caller.waits() && caller.thought().is_zero());
        thoughts.begin(&caller);
        std::thread::sleep(Duration::from_millis(2));
        thoughts.end();
        thoughts.wait(&caller);
        assert!(caller.waits() && caller.thought() >= Duration::from_millis(2));
        thoughts.begin(&caller);
        assert!(!caller.waits() && caller.thought() >= Duration::from_millis(2));
    }
}
