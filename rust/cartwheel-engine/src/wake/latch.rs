//! The end of a task: which workers have acknowledged it, and which of them wakes the pool.

use super::parker::ring;
use super::word::Word;
use crate::failpoint::{Failpoint, die};
use crate::sync::{AtomicU32, AtomicU64, Ordering, pack, unpack};

/// The number of a task (upper half), and how many workers have not acknowledged it (lower half).
///
/// The number of the task makes a late count harmless. A worker stores its `done` before it counts,
/// so the pool may have begun another task in between, and a count without a number would count for
/// that task.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Latch(AtomicU64);

impl Latch {
    /// Counts the workers of a task from now on. The task words publish it.
    pub(crate) fn begin(&self, task: u32, workers: u32) {
        // An exchange, as the counts are, so it comes after the counts of the task before.
        self.0.swap(pack(task, workers), Ordering::Relaxed);
    }

    /// Counts so many workers that have acknowledged `task`; returns whether these were the last ones.
    fn count(&self, task: u32, acknowledged: u32) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed); // the exchange checks it
        loop {
            let (number, workers) = unpack(seen);
            if number != task || acknowledged == 0 || workers < acknowledged {
                return false;
            }
            // `AcqRel`: the last count comes after every other acknowledgement, and so does its
            // ring.
            match self.0.compare_exchange_weak(
                seen,
                pack(task, workers - acknowledged),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return workers == acknowledged,
                Err(now) => seen = now,
            }
        }
    }
}

/// Announces to the pool that a worker has carried out `task`, and wakes the pool if the worker was
/// the last: [`acknowledge_uncounted`] and [`count`].
pub(crate) fn acknowledge(done: &AtomicU32, remaining: &Latch, doorbell: &impl Word, task: u32) {
    acknowledge_uncounted(done, task);
    if Failpoint::DieBeforeCount.hit() {
        die();
    }
    count(remaining, doorbell, task, 1);
}

/// Announces to the pool that a worker has carried out `task`; a pool that sleeps is not woken before
/// the worker is [counted](count).
///
/// `done` is that worker's word. The worker must have written its results before the call, and must
/// have released all that it holds for the task: as soon as `done` is seen the next task may begin.
pub(crate) fn acknowledge_uncounted(done: &AtomicU32, task: u32) {
    // `Release` publishes rows, infos and the words of the slot; it pairs with the `Acquire` in
    // `has_acknowledged`.
    done.store(task, Ordering::Release);
}

/// Whether the worker of `done` has carried out `task`. Then what it wrote is visible.
pub(crate) fn has_acknowledged(done: &AtomicU32, task: u32) -> bool {
    done.load(Ordering::Acquire) == task // pairs with the `Release` in `acknowledge_uncounted`
}

/// Counts so many workers that have acknowledged `task` since the calling thread counted last, and wakes
/// the pool if they were the last.
///
/// A thread that carries out several workers' tasks counts them at its end: each count takes the latch's
/// cache line from the thread that counted before.
pub(crate) fn count(remaining: &Latch, doorbell: &impl Word, task: u32, acknowledged: u32) {
    if remaining.count(task, acknowledged) {
        ring(doorbell);
    }
}
