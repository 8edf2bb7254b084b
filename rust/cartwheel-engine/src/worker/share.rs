//! A thread's share of the shards of a thread pool.
//!
//! A share is one atomic word: the number of the task in its upper half, the next shard to take in
//! its lower half. Taking a shard is a compare-and-exchange of that word, so a thread that wakes
//! late, with the number of an old task, takes nothing: the numbers differ.

use std::ops::Range;

use crate::sync::{AtomicU64, Ordering, pack, unpack};

/// A range of shards that are taken one by one.
#[derive(Debug)]
pub(super) struct Share {
    word: AtomicU64,
    shards: Range<u32>,
}

impl Share {
    /// These shards, of which there is none to take before the first task.
    pub(super) fn new(shards: Range<usize>) -> Self {
        let number = |shard| u32::try_from(shard).expect("a plan has fewer than 2^32 shards");
        Self { word: AtomicU64::default(), shards: number(shards.start)..number(shards.end) }
    }

    pub(super) fn shards(&self) -> Range<usize> {
        self.shards.start as usize..self.shards.end as usize
    }

    /// Begins a task, for which every shard is there to take. The slots' words must have been written.
    pub(super) fn begin(&self, task: u32) {
        // `Release` publishes the slots; it pairs with the `Acquire` in `Share::take`.
        self.word.store(pack(task, self.shards.start), Ordering::Release);
    }

    /// Ends the last task: no shard is there to take any more.
    pub(super) fn close(&self, task: u32) {
        self.word.store(pack(task, self.shards.end), Ordering::Relaxed); // publishes nothing
    }

    /// Takes the next shard, if the task is still `task` and a shard is left.
    pub(super) fn take(&self, task: u32) -> Option<usize> {
        let mut seen = self.word.load(Ordering::Relaxed); // the exchange checks it
        loop {
            let (number, next) = unpack(seen);
            if number != task || next >= self.shards.end {
                return None;
            }
            // `Acquire` pairs with the `Release` in `Share::begin`, whichever thread took shards in
            // between: slab and flags of the slots are visible.
            let (taken, missed) = (Ordering::Acquire, Ordering::Relaxed);
            match self.word.compare_exchange_weak(seen, seen + 1, taken, missed) {
                Ok(_) => return Some(next as usize),
                Err(now) => seen = now,
            }
        }
    }
}

#[cfg(all(loom, test))]
mod tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::sync::AtomicU32;
    use crate::wake::every_interleaving;

    /// A share of two shards, with the words that the caller writes before a task and those that a thread
    /// writes to the shards that it took.
    struct Words {
        share: Share,
        slab: AtomicU32,
        steps: [AtomicU32; 2],
        done: [AtomicU32; 2],
    }

    impl Words {
        fn begin(&self, task: u32) {
            self.slab.store(task, Ordering::Relaxed);
            self.share.begin(task);
        }

        fn work(&self, task: u32) {
            while let Some(shard) = self.share.take(task) {
                assert_eq!(self.slab.load(Ordering::Relaxed), task, "the slab of the task");
                let steps = self.steps[shard].load(Ordering::Relaxed);
                self.steps[shard].store(steps + 1, Ordering::Relaxed);
                self.done[shard].store(task, Ordering::Release);
            }
        }

        fn finish(&self, task: u32) {
            while self.done.iter().any(|done| done.load(Ordering::Acquire) != task) {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn every_shard_is_taken_once_for_each_task_however_late_a_thread_is() {
        every_interleaving(|| {
            let words = Arc::new(Words {
                share: Share::new(0..2),
                slab: AtomicU32::default(),
                steps: Default::default(),
                done: Default::default(),
            });
            words.begin(1);
            let late = thread::spawn({
                let words = Arc::clone(&words);
                move || [1, 2].map(|task| words.work(task))
            });
            for task in [1, 2] {
                words.work(task);
                words.finish(task);
                let steps = words.steps.each_ref().map(|steps| steps.load(Ordering::Relaxed));
                assert_eq!(steps, [task; 2]);
                if task == 1 {
                    words.begin(2);
                }
            }
            late.join().expect("the late thread");
        });
    }
}
