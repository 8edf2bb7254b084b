//! The threads of a thread pool: what they share, and what each of them does.
#![expect(unsafe_code, reason = "steps rows in mapped memory, see the invariants of the module")]

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use super::handover::empty_queue;
use super::serve::next_task;
use super::share::Share;
use super::{Limit, Shard, flush, perform, perform_sent};
use crate::protocol::{Memory, WorkerToken};
use crate::sync::Mutex;
use crate::wake::{
    Futex, Op, SLEEPERS, Scope, Sleeper, SpinPolicy, TaskWord, acknowledge_uncounted, count,
    is_closing,
};

/// Weight of the newest measurement in the mean cost of a row.
const NEWEST: f64 = 0.125;

/// A word on its own cache line; 128 bytes, because processors fetch pairs of lines.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(super) struct Line<T>(pub(super) T);

/// A worker that a thread pool serves, with its rows.
pub(super) type Served = (WorkerToken, Box<dyn Shard>);

/// State that the threads of a thread pool share, the calling thread included.
pub(super) struct Shared {
    pub(super) memory: Memory,
    /// `None` once closed: a late thread may have taken a shard that it has not locked yet.
    pub(super) shards: Vec<Mutex<Option<Served>>>,
    /// One for each thread, the caller's first.
    pub(super) shares: Vec<Line<Share>>,
    /// Task words of the threads other than the caller, and their event counts.
    pub(super) words: Vec<Line<AtomicU32>>,
    pub(super) event_counts: Vec<Line<AtomicU32>>,
    /// The task that each of them served last, for measuring.
    pub(super) served: Vec<Line<AtomicU32>>,
    /// The bits of the mean cost of a row, in seconds; 0 until one was measured.
    pub(super) row_cost: Line<AtomicU64>,
}

impl Shared {
    /// Steps shards, those of thread `thread` first, until none is left or the limit is over.
    /// Returns how many rows they have, and whether none was left.
    pub(super) fn work(
        &self,
        thread: usize,
        task_word: TaskWord,
        limit: Option<Limit>,
    ) -> (usize, bool) {
        let (mut rows, mut acknowledged) = (0, 0);
        let none_is_left = 'all: {
            for share in (thread..self.shares.len()).chain(0..thread) {
                while let Some(shard) = self.shares[share].0.take(task_word.task) {
                    acknowledged += u32::from(self.step(shard, task_word));
                    rows += self.memory.plan().shards[shard].len();
                    if limit.is_some_and(|limit| limit.is_over()) {
                        break 'all false;
                    }
                }
            }
            true
        };
        let remaining = &self.memory.control.header().remaining;
        count(remaining, &self.memory.doorbell(), task_word.task, acknowledged);
        (rows, none_is_left)
    }

    /// Steps a shard that this thread took. Returns whether it was acknowledged, and is to be counted.
    fn step(&self, shard: usize, task_word: TaskWord) -> bool {
        // Never contended: only this thread took the shard, and the thread that had it for the last
        // task released the lock before acknowledging.
        let mut locked = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
        let Some((token, own)) = locked.as_mut() else { return false };
        // SAFETY: this thread took the shard for this task, and acknowledges the task below
        // (invariant 1).
        let report = unsafe { perform(token, task_word, own.as_mut()) };
        flush(own.as_mut(), report);
        drop(locked);
        acknowledge_uncounted(&self.memory.control.slot(shard).done, task_word.task);
        true
    }

    /// Steps sent rows, those of thread `thread` first, until none is left to take or `stop`
    /// returns `true`; `stop` gets the number of rows taken so far.
    pub(super) fn work_sent(&self, thread: usize, stop: impl Fn(usize) -> bool) {
        // Without other threads to wake, the cost of a row is not needed.
        let (start, mut taken) = ((!self.words.is_empty()).then(Instant::now), 0);
        for share in (thread..self.shares.len()).chain(0..thread) {
            for shard in self.shares[share].0.shards() {
                taken = self.empty_queue(shard, taken, &stop);
            }
        }
        if let Some(start) = start {
            self.note_cost(start, taken);
        }
    }

    pub(super) fn note_cost(&self, start: Instant, rows: usize) {
        if rows == 0 {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let cost = start.elapsed().as_secs_f64() / rows as f64;
        let before = self.row_cost().unwrap_or(cost);
        let cost = before + NEWEST * (cost - before);
        // Threads may overwrite each other's mean: either value is good enough.
        self.row_cost.0.store(cost.to_bits(), Ordering::Relaxed);
    }

    /// Mean cost of a row, in seconds; `None` until one was measured.
    pub(super) fn row_cost(&self) -> Option<f64> {
        // `Relaxed`: a number that stands for itself.
        Some(f64::from_bits(self.row_cost.0.load(Ordering::Relaxed))).filter(|&cost| cost > 0.0)
    }

    /// Empties the queue of one shard, unless another thread does so. Adds the number of rows it
    /// took to `taken`, and returns the sum.
    fn empty_queue(&self, shard: usize, taken: usize, stop: &impl Fn(usize) -> bool) -> usize {
        let queue = self.memory.control.queue(shard);
        let perform = |(token, own): &mut Served| perform_sent(token, own.as_mut());
        empty_queue(&self.shards[shard], taken, || queue.is_empty(), stop, perform)
    }

    /// The sleeper of the thread with task word number `at`.
    pub(super) fn sleeper(&self, at: usize) -> Sleeper<Futex<'_>, Futex<'_>> {
        let futex = |word| Futex::new(word, Scope::Private);
        let event_count = &self.event_counts[at / SLEEPERS].0;
        Sleeper::new(at, futex(&self.words[at].0), futex(event_count))
    }

    /// The loop of thread `thread`, counted from 1; the caller is number 0. All of them have `cpus`
    /// processors.
    pub(super) fn serve(&self, thread: usize, cpus: usize, spin: bool) {
        let word = self.sleeper(thread - 1);
        let caller = &self.memory.control.header().caller;
        let mut spin_policy = SpinPolicy::new(self.shares.len(), cpus, spin);
        loop {
            let (task_word, _) = next_task(&word, &mut spin_policy, caller);
            if task_word.op == Op::Close {
                return;
            }
            if task_word.op == Op::Take {
                self.work_sent(thread, |_| is_closing(&word));
            } else {
                self.work(thread, task_word, None);
            }
            // `Relaxed`: only the time at which it is seen matters.
            self.served[thread - 1].0.store(task_word.task, Ordering::Relaxed);
        }
    }
}
