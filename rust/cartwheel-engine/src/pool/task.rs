//! A call of all rows, as a task in two halves: it begins, and it finishes.
#![expect(unsafe_code, reason = "accesses mapped memory, see the invariants of the module")]

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::received::{Found, Received, ReceivedRows};
use super::waiting::Awaited;
use super::{Pool, Workers};
use crate::call::Call;
use crate::error::Error;
use crate::memory::{InfosAt, Lease};
use crate::wake::{TaskWord, doorbell_disarm};
use crate::worker::{Limit, Report, flush, perform};

/// The call that has begun and not finished.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) call: Call,
    pub(super) task_word: TaskWord,
    pub(super) lease: Option<Lease>,
    /// Whether the calling thread has done its part.
    pub(super) own_done: bool,
}

impl Pool {
    /// Begins a call of all rows: publishes its task to every worker. The shards get `flags` unchanged.
    ///
    /// # Errors
    ///
    /// As [`Pool::check`]; for a reset also [`Error::BadPlan`] when it would fill the first batch
    /// of a rollout once more while a [lease](Lease) on that batch is held; [`Error::SlabsHeld`]
    /// while a batch is held that must be copied. In these cases nothing was published.
    pub fn begin(&mut self, call: Call, flags: u32) -> Result<(), Error> {
        self.check(call)?;
        self.begin_checked(call, flags)
    }

    /// The same, after [`Pool::check`].
    pub(super) fn begin_checked(&mut self, call: Call, flags: u32) -> Result<(), Error> {
        if call == Call::Reset {
            self.check_recording()?;
        }
        let recorded = self.recorded(call);
        let lease = match (recorded, call) {
            (None, Call::Step | Call::Reset | Call::Settle) => {
                // SAFETY: the lease is handed out when its task has finished (invariant 3).
                unsafe { self.slab_to_fill() }?
            }
            (recorded, _) => recorded,
        };
        self.task = TaskWord::next(self.task);
        let task_word = TaskWord { op: call.into(), task: self.task };
        let slab = lease.as_ref().map_or(0, Lease::slab);
        self.pending = Some(Pending { call, task_word, lease, own_done: false });
        if matches!(call, Call::Step | Call::Reset) {
            self.meter.count_begun();
        }
        let shards = self.shards().len();
        for worker in 0..shards {
            let slot = self.memory.control.slot(worker);
            // A store takes the cache line from the worker, which then waits for it: mostly, nothing
            // has changed. `Relaxed`: only the pool writes these, published by the task word.
            if slot.slab.load(Ordering::Relaxed) != slab {
                slot.slab.store(slab, Ordering::Relaxed);
            }
            if slot.flags.load(Ordering::Relaxed) != flags {
                slot.flags.store(flags, Ordering::Relaxed);
            }
        }
        if matches!(self.workers, Workers::Inline(..)) {
            return Ok(());
        }
        self.end_time_between_calls();
        doorbell_disarm(&self.memory.doorbell());
        #[expect(clippy::cast_possible_truncation, reason = "checked in `Pool::new`")]
        let workers = shards as u32;
        self.memory.control.header().remaining.begin(task_word.task, workers); // published by the words
        if let Workers::ThreadPool(thread_pool) = &mut self.workers {
            thread_pool.begin(task_word);
            return Ok(());
        }
        self.memory.publish(0..shards, task_word);
        Ok(())
    }

    /// Ends a lease whose batch the caller has copied: its slab is the first to be filled again.
    pub fn end_copied(&mut self, lease: Lease) {
        if self.parked.is_none() && !self.closed {
            self.parked = lease.park(&self.slabs);
        }
    }

    /// A slab to fill; `None` without slabs.
    ///
    /// # Safety
    ///
    /// As for [`SlabPool::acquire`](crate::memory::SlabPool::acquire).
    pub(super) unsafe fn slab_to_fill(&mut self) -> Result<Option<Lease>, Error> {
        if let Some(parked) = self.parked.take() {
            return Ok(Some(parked.unpark()));
        }
        // SAFETY: as the caller promises (invariant 3).
        let take = |backing| unsafe { self.slabs.acquire(backing) };
        self.memory.slab_backing().map(take).transpose()
    }

    /// Waits for the pending call and hands out its result.
    ///
    /// `interrupted` is called every 1 to 50 ms; when it returns `true`, the wait ends. The caller's own
    /// part is done in whole shards, of a thread pool's shards at least one for each call, so polling with
    /// a zero timeout eventually finishes.
    ///
    /// # Errors
    ///
    /// [`Error::NotPending`] when `call` is not the pending call. [`Error::Timeout`],
    /// [`Error::StillWaiting`] and [`Error::Interrupted`] leave the call pending: `finish` can be
    /// called again. After [`Error::WorkerDied`] the pool can only be closed, unless it [can be
    /// resumed](Pool::can_resume).
    pub fn finish(
        &mut self,
        call: Call,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Received, Error> {
        let mut received = Received::default();
        self.finish_into(&mut received, call, timeout, interrupted)?;
        Ok(received)
    }

    /// The same, with the result in `received`: a result of so many parts is moved by each function that
    /// returns it, and each move waits for the stores before it.
    ///
    /// # Errors
    ///
    /// As [`Pool::finish`]; `received` is as it was.
    pub fn finish_into(
        &mut self,
        received: &mut Received,
        call: Call,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error> {
        self.await_call(call, timeout, interrupted)?;
        self.take(received)
    }

    /// Hands out the result of the pending call, whose task with this number is done.
    #[inline]
    pub(super) fn take_finished(&mut self, received: &mut Received, task: u32) {
        let pending = self.pending.as_ref().filter(|pending| pending.task_word.task == task);
        let call = pending.expect("it was not handed out").call;
        let lease = self.pending.take().and_then(|pending| pending.lease);
        if let Some(lease) = &lease {
            lease.read(lease.layout().phases_offset(), &mut self.phases);
            if !(self.policy.has_external_rewards && call == Call::Step) {
                self.meter.count_batch(self.phases.len(), lease.must_copy());
            }
        }
        self.half_done = self.policy.has_external_rewards && call == Call::Step;
        received.lease = lease;
        received.rows = ReceivedRows::All(self.phases.len());
        received.resets.clear();
        self.announced(received);
        if !received.failed.is_empty() {
            self.recording = None; // the following steps do not continue it
        }
    }

    /// The wait of [`Pool::finish`] alone: the call stays pending until [`Pool::take`] hands out its result.
    ///
    /// # Errors
    ///
    /// As [`Pool::finish`].
    pub fn await_call(
        &mut self,
        call: Call,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error> {
        self.check_usable()?;
        let Some(pending) = self.pending.as_mut().filter(|pending| pending.call == call) else {
            return Err(Error::NotPending { expected: call });
        };
        let (task, limit) = (pending.task_word.task, timeout.map(Limit::new));
        if !pending.own_done {
            let task_word = pending.task_word;
            pending.own_done = match &mut self.workers {
                Workers::Inline(token, own) => {
                    // SAFETY: the task word is pending, and is acknowledged below (invariant 1).
                    let report = unsafe { perform(token, task_word, own.as_mut()) };
                    // No other thread is counted or woken.
                    self.memory.control.slot(0).done.store(task, Ordering::Relaxed);
                    flush(own.as_mut(), report);
                    true
                }
                Workers::ThreadPool(thread_pool) => thread_pool.help(task_word, limit),
                Workers::Threads | Workers::Processes(_) => true,
            };
        }
        // A thread that steps all rows has no other to wait for.
        if !matches!(self.workers, Workers::Inline(..)) {
            self.wait(Awaited::Task(task), limit, interrupted)?;
        }
        self.found = Some(Found::Call(task));
        Ok(())
    }

    /// Whether no task is pending, nor running without a wait for its end.
    pub(super) fn is_open(&self) -> bool {
        self.pending.is_none() && self.broken.is_none() && !self.closed
    }

    /// Adds the shards' reports on the call that finished last: the places of their first rows where
    /// they have infos or an answer, and where rows failed.
    fn announced(&self, received: &mut Received) {
        let Received { infos, failed, .. } = received;
        infos.clear();
        failed.clear();
        for (shard, rows) in self.shards().iter().enumerate() {
            let slot = self.memory.control.slot(shard);
            // `Relaxed`: acquired with `done`, in `waiting`.
            let report = Report::from_word(slot.status.load(Ordering::Relaxed));
            let bytes = slot.info_bytes.load(Ordering::Relaxed);
            if report.failed {
                failed.push(rows.start);
            }
            if report.spilled {
                infos.push((rows.start, InfosAt::Channel));
            } else if bytes > 0 {
                infos.push((rows.start, InfosAt::Memory(bytes)));
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use cartwheel_core::schedule;

    use super::*;
    use crate::memory::Plan;
    use crate::pool::Policy;
    use crate::protocol::Memory;
    use crate::wake::Scope;
    use crate::worker::{Report, Shard, Task};

    /// Environments that show nothing.
    #[derive(Debug)]
    struct Silent;

    impl Shard for Silent {
        fn run(&mut self, _: &mut Task<'_>) -> Report {
            Report::default()
        }
    }

    #[test]
    fn sends_use_up_no_task_numbers() {
        // Numbers repeat after 2^29 tasks. If sends counted, a task after many of them could have the
        // number of the task before, and pass for acknowledged before any row was stepped.
        let plan = Plan { max_slabs: 4, ..Plan::new(schedule::shards(2, 1)) };
        let (_, mut tokens) = Memory::new(plan, Scope::Private).unwrap();
        let own = Workers::Inline(tokens.workers.remove(0), Box::new(Silent));
        let mut pool = Pool::new(tokens.pool, own, Policy::default()).unwrap();
        pool.sending(Call::Reset, None).unwrap().send(0).unwrap();
        pool.finish(Call::Reset, None, &mut || false).unwrap();
        let before = pool.task;
        for _ in 0..3 {
            pool.sending(Call::Reset, Some(&[0, 1])).unwrap().send(0).unwrap();
            drop(pool.receive(None, &mut || false).unwrap());
        }
        assert_eq!(pool.task, before);
    }
}
