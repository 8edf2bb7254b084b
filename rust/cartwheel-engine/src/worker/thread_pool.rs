//! A thread pool: threads that step native shards together with the calling thread.
//!
//! # Which thread steps which shard
//!
//! There are more shards than threads. Each thread has a *share*, a contiguous range of shards that
//! it steps first. The share is always the same, so the shards' state stays in the thread's cache.
//! A thread that has finished its share takes shards from other shares. So a batch of cheap rows is
//! dealt evenly without communication, and a batch of heavy, uneven rows leaves no thread idle
//! while a shard waits.
//!
//! `share.rs` explains how a shard is taken. A thread owns a shard that it took until it
//! stores the shard's `done`, after releasing the shard's lock. The pool begins no task before it
//! has seen every `done` of the last one.
//!
//! # Which threads are woken
//!
//! The calling thread steps shards too, so no thread is woken for a batch that the caller finishes
//! sooner alone. A further thread is woken when the time it saves exceeds the cost of waking it:
//! `work/k - work/(k+1) > wake`, for the `k` threads that are already working. `work` is the recent
//! cost of the rows, measured by the calling thread. `wake` is the time until a thread that polls
//! for work answers, or a thread that sleeps; both are measured when the thread pool is made. Until there
//! is a measurement the caller works alone. A sleeping thread that would pay if it were awake is
//! woken occasionally anyway: in a loop that only steps, it finds the next task while it polls, and
//! stays awake.
//!
//! # Rows that were sent
//!
//! Each shard has a queue of sent rows, which any thread may empty; `handover.rs` explains why none is
//! forgotten.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, TryLockError};
use std::time::{Duration, Instant};

use cartwheel_core::schedule::{shards as deal, usable_cpus};

use super::own_thread::OwnThread;
use super::share::Share;
use super::threads::{Line, Shared};
use super::{Limit, Shard, close};
use crate::error::Error;
use crate::platform::pin_to_cpu;
use crate::protocol::{Memory, WorkerToken};
use crate::sync::Mutex;
use crate::wake::{Backoff, Op, PARKED, SLEEPERS, TaskWord, Word, publish, publish_all};

/// Longest time that the caller polls for an answer while it measures.
const LONGEST_POLL: Duration = Duration::from_millis(1);

/// The time that handing work to a thread takes, measured when a thread pool is made.
#[derive(Debug, Clone, Copy)]
struct Handoff {
    /// To a thread that sleeps.
    asleep: Duration,
    /// To a thread that polls for work.
    awake: Duration,
}

/// The threads and what they share.
pub struct ThreadPool {
    shared: Arc<Shared>,
    threads: Vec<OwnThread>,
    handoff: Handoff,
    /// Wakes of a sleeping thread that do not pay by themselves.
    backoff: Backoff,
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("threads", &self.threads.len())
            .field("handoff", &self.handoff)
            .field("row_cost", &self.shared.row_cost())
            .finish_non_exhaustive()
    }
}

/// Settings of a thread pool's threads.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadPoolSettings {
    /// Number of threads, including the caller; at most one for each shard is used.
    pub threads: usize,
    /// Let threads poll for work before they sleep.
    pub spin: bool,
    /// Pin thread *k* (the caller is not pinned) to processor `offset + k`, modulo the number of
    /// processors.
    pub affinity_offset: Option<usize>,
}

impl ThreadPool {
    /// Starts the threads for `shards`, one for each shard of the memory's plan; `tokens` are those
    /// of all its workers.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when the shards or the tokens do not match the plan, [`Error::Os`] when a
    /// thread cannot be started.
    pub fn new(
        tokens: Vec<WorkerToken>,
        shards: Vec<Box<dyn Shard>>,
        settings: ThreadPoolSettings,
    ) -> Result<Self, Error> {
        let Some(first) = tokens.first() else {
            return Err(Error::BadPlan("a thread pool serves at least one worker".to_owned()));
        };
        let memory = first.memory().clone();
        WorkerToken::check_all(&memory, &tokens)?;
        let expected = tokens.len();
        if shards.len() != expected {
            return Err(Error::BadPlan(format!("{} shards, {expected} planned", shards.len())));
        }
        let threads = settings.threads.clamp(1, expected);
        let cpus = usable_cpus(); // of this thread: the others may be pinned
        let spin = settings.spin && threads <= cpus;
        let shared = Arc::new(Shared {
            memory,
            shards: tokens.into_iter().zip(shards).map(|own| Mutex::new(Some(own))).collect(),
            shares: deal(expected, threads)
                .into_iter()
                .map(|share| Line(Share::new(share)))
                .collect(),
            words: (1..threads).map(|_| Line::default()).collect(),
            event_counts: (1..threads).step_by(SLEEPERS).map(|_| Line::default()).collect(),
            served: (1..threads).map(|_| Line::default()).collect(),
            row_cost: Line::default(),
        });
        let handoff = Handoff { asleep: Duration::ZERO, awake: Duration::ZERO };
        let mut thread_pool =
            Self { shared, threads: Vec::new(), handoff, backoff: Backoff::default() };
        for thread in 1..threads {
            let shared = Arc::clone(&thread_pool.shared);
            let cpu = settings.affinity_offset.map(|offset| offset.wrapping_add(thread - 1));
            let run = move || {
                if let Some(cpu) = cpu {
                    pin_to_cpu(cpu);
                }
                shared.serve(thread, cpus, spin);
            };
            match OwnThread::start(format!("cartwheel-{thread}"), run) {
                Ok(started) => thread_pool.threads.push(started),
                Err(cause) => {
                    return Err(Error::Os { doing: format!("starting thread {thread}"), cause });
                }
            }
        }
        thread_pool.measure();
        Ok(thread_pool)
    }

    /// Whether this thread pool steps the shards of `memory`.
    pub(crate) fn is_for(&self, memory: &Memory) -> bool {
        self.shared.memory.is_same(memory)
    }

    /// Number of threads, including the caller.
    pub(crate) fn threads(&self) -> usize {
        self.shared.shares.len()
    }

    /// Measures the time that handing work to the first thread takes: the median of a few tries for
    /// each case.
    ///
    /// The tasks have numbers from the end of the range, and no share has a shard for them.
    fn measure(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        let mut task = TaskWord::LAST - 64;
        let mut ask = || {
            task += 1;
            let start = Instant::now();
            publish(&self.shared.sleeper(0), TaskWord { op: Op::Call, task });
            while self.shared.served[0].0.load(Ordering::Relaxed) != task {
                if start.elapsed() < LONGEST_POLL {
                    std::hint::spin_loop();
                } else {
                    // A caller with a real-time priority and the only processor would poll forever.
                    std::thread::sleep(Duration::from_micros(50));
                }
            }
            start.elapsed()
        };
        let asleep = (0..5).map(|_| {
            std::thread::sleep(Duration::from_millis(1)); // long enough that polling ends
            ask()
        });
        let asleep = median(asleep.collect());
        let awake = median((0..15).map(|_| ask()).collect());
        self.handoff = Handoff { asleep, awake };
    }

    /// Begins a task: opens the shares and wakes as many threads as pay for themselves.
    ///
    /// The slots' words must have been written before.
    pub(crate) fn begin(&mut self, task_word: TaskWord) {
        self.shared.shares.iter().for_each(|share| share.0.begin(task_word.task));
        let seconds = self.seconds(self.shared.memory.plan().rows());
        let others = self.shared.words.len();
        let more = match (task_word.op, seconds) {
            (Op::Step, Some(seconds)) => self.paying(seconds),
            // A settlement copies rows. It resets those that ended: few, or all at a limit of steps, but
            // then once in an episode.
            (Op::Step, None) | (Op::Settle, _) => 0,
            _ => others, // the cost of a reset or a call is not measured
        };
        self.publish(more, task_word);
    }

    /// Hands `task_word` to the first `more` threads other than the caller.
    fn publish(&self, more: usize, task_word: TaskWord) {
        publish_all((0..more).map(|at| self.shared.sleeper(at)), task_word);
    }

    /// Number of further threads that pay for themselves in `seconds` of work.
    fn paying(&mut self, seconds: f64) -> usize {
        for at in 0..self.shared.words.len() {
            let asleep = is_parked(&self.shared.sleeper(at));
            if !self.wakes(seconds, at + 1, asleep) {
                return at;
            }
        }
        self.shared.words.len()
    }

    /// Time that a step of so many rows takes one thread, in seconds; `None` until one was measured.
    fn seconds(&self, rows: usize) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        self.shared.row_cost().map(|cost| cost * rows as f64)
    }

    /// Whether to hand a part of `seconds` of work to one more thread, while `working` threads
    /// work.
    fn wakes(&mut self, seconds: f64, working: usize, asleep: bool) -> bool {
        if self.saves(seconds, working, asleep) {
            if !asleep {
                self.backoff.succeeded();
            }
            return true;
        }
        // It would pay if the thread were awake, and a thread stays awake for a while after it was
        // woken.
        let tries = asleep && self.saves(seconds, working, false) && self.backoff.is_due();
        if tries {
            self.backoff.failed(); // until the thread is found awake
        }
        tries
    }

    /// Whether one more thread saves more of `seconds` of work than handing over its part costs.
    fn saves(&self, seconds: f64, working: usize, asleep: bool) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let working = working as f64;
        let saved = seconds * (1.0 / working - 1.0 / (working + 1.0));
        let cost = if asleep { self.handoff.asleep } else { self.handoff.awake };
        saved > cost.as_secs_f64()
    }

    /// Wakes threads for rows that were pushed: every thread that pays for itself, if the cost of a
    /// row is known.
    pub(crate) fn begin_sent(&mut self, rows: usize) {
        let seconds = self.seconds(rows);
        let others = self.shared.words.len();
        let more = seconds.map_or(others, |seconds| self.paying(seconds));
        self.publish(more, TaskWord::TAKE);
    }

    /// Steps sent rows on the calling thread until none is left to take or `stop` returns `true`;
    /// `stop` gets the number of rows taken so far.
    pub(crate) fn help_sent(&self, stop: impl Fn(usize) -> bool) {
        self.shared.work_sent(0, stop);
    }

    /// Steps shards on the calling thread until none is left, or until the limit is over after at
    /// least one. Returns whether none was left.
    pub(crate) fn help(&mut self, task_word: TaskWord, limit: Option<Limit>) -> bool {
        if self.threads.is_empty() {
            return self.shared.work(0, task_word, limit).1; // no other threads: no cost is needed
        }
        let start = Instant::now();
        let (rows, done) = self.shared.work(0, task_word, limit);
        if task_word.op == Op::Step {
            self.shared.note_cost(start, rows);
        }
        done
    }

    /// Ends the threads and closes the shards; returns the threads that did not end within `grace`.
    /// Each of them keeps the shard that it is stepping until it ends, and takes no other one.
    pub(crate) fn close(&mut self, task: u32, grace: Duration) -> Vec<usize> {
        self.shared.shares.iter().for_each(|share| share.0.close(task));
        self.publish(self.shared.words.len(), TaskWord { op: Op::Close, task });
        let limit = Limit::new(grace);
        let mut late = Vec::new();
        for (thread, handle) in self.threads.drain(..).enumerate() {
            while !handle.is_finished() && !limit.is_over() {
                std::thread::sleep(Duration::from_micros(50));
            }
            if handle.is_finished() {
                handle.join(); // a thread that panicked had nothing left to do for the pool
            } else {
                late.push(thread + 1);
            }
        }
        for shard in &self.shared.shards {
            let own = match shard.try_lock() {
                Ok(mut own) => own.take(),
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
                Err(TryLockError::WouldBlock) => None, // it ends with the late thread
            };
            if let Some((_, mut own)) = own {
                close(own.as_mut());
            }
        }
        late
    }
}

impl Drop for ThreadPool {
    /// Ends threads that no pool took: they would wait for a task forever, and keep the memory.
    fn drop(&mut self) {
        if self.threads.first().is_some_and(OwnThread::is_of_this_process) {
            self.close(TaskWord::next(0), Duration::ZERO);
        }
    }
}

fn is_parked(word: &impl Word) -> bool {
    word.load() == PARKED
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
