//! The end of a task: which workers have acknowledged it, and which of them wakes the pool.

use super::parker::ring;
use super::word::Word;
use crate::failpoint::{Failpoint, die};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Number of workers that have not acknowledged a task, with the number of the task.
///
/// The number of the task makes a late count harmless. A worker stores its `done` before it counts,
/// so the pool may have begun another task in between, and a count without a number would count for
/// that task.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Latch(AtomicU64);

impl Latch {
    /// Counts the workers of a task from now on. The task words publish it.
    pub fn begin(&self, task: u32, workers: u32) {
        // An exchange, as the counts are, so it comes after the counts of the task before.
        self.0.swap(pack(task, workers), Ordering::Relaxed);
    }

    /// Counts a worker that has acknowledged `task`; returns whether it was the last one.
    fn count(&self, task: u32) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed); // the exchange checks it
        loop {
            let (number, workers) = unpack(seen);
            if number != task || workers == 0 {
                return false;
            }
            // `AcqRel`: the last count comes after every other acknowledgement, and so does its
            // ring.
            match self.0.compare_exchange_weak(
                seen,
                pack(task, workers - 1),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return workers == 1,
                Err(now) => seen = now,
            }
        }
    }
}

/// Announces to the pool that a worker has carried out `task`, and wakes the pool if the worker was
/// the last.
///
/// `done` is that worker's word. The worker must have written its results before the call, and must
/// have released all that it holds for the task: as soon as `done` is seen the next task may begin.
pub fn acknowledge(done: &AtomicU32, remaining: &Latch, doorbell: &impl Word, task: u32) {
    // `Release` publishes rows, infos and the words of the slot; it pairs with the `Acquire` loads of
    // `done` in `Pool::waiting`.
    done.store(task, Ordering::Release);
    if Failpoint::DieBeforeCount.hit() {
        die();
    }
    if remaining.count(task) {
        ring(doorbell);
    }
}

const fn pack(task: u32, workers: u32) -> u64 {
    ((task as u64) << 32) | workers as u64
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
const fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}
