//! A call of all rows, as a task in two halves: it begins, and it finishes.
#![expect(unsafe_code, reason = "accesses mapped memory, see the invariants of the module")]

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::waiting::Awaited;
use super::{Pool, Workers};
use crate::call::Call;
use crate::error::Error;
use crate::memory::Lease;
use crate::space::ActionTag;
use crate::wake::{Command, Futex, Op, doorbell_disarm};
use crate::worker::{Limit, Report, flush, perform};

/// The call that has begun and not finished.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) call: Call,
    pub(super) command: Command,
    pub(super) lease: Option<Lease>,
    /// Whether the calling thread has done its part.
    pub(super) own_done: bool,
}

/// The result of a finished call.
#[derive(Debug)]
pub struct Finished {
    /// The batch of a step or reset.
    pub lease: Option<Lease>,
    /// Number of the task; later messages of the shards carry it.
    pub task: u32,
}

impl Pool {
    /// Stores the actions of the next step, one leaf at a time: `rows * row_len` elements.
    ///
    /// # Errors
    ///
    /// As [`Pool::check`] for a step.
    ///
    /// # Panics
    ///
    /// When the number of elements is not that of a batch.
    pub fn store_actions(
        &mut self,
        leaf: usize,
        tag: ActionTag,
        elements: &[u8],
    ) -> Result<(), Error> {
        self.fill_actions(leaf, tag, |room| {
            assert_eq!(room.len(), elements.len(), "one action per row");
            room.copy_from_slice(elements);
            Ok(())
        })
    }

    /// Stores the actions of the next step, one leaf at a time: `fill` writes the `rows * row_len`
    /// elements to where the workers will read them, and can check them before any worker reads
    /// them. They take effect only at [`Pool::begin`]: a step whose actions are refused has not
    /// happened.
    ///
    /// # Errors
    ///
    /// As [`Pool::check`] for a step, and the error of `fill`.
    pub fn fill_actions(
        &mut self,
        leaf: usize,
        tag: ActionTag,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check(Call::Step)?;
        let area = &self.memory.actions;
        // SAFETY: nothing is pending or in flight, as was just checked (invariant 2).
        unsafe { area.store(leaf, tag, area.all_rows(), fill) }
    }

    /// Begins a call: publishes its task to every worker. The shards get `flags` unchanged.
    ///
    /// # Errors
    ///
    /// As [`Pool::check`]; for a reset also [`Error::BadPlan`] when it would fill the first batch
    /// of a rollout once more while a [lease](Lease) on that batch is held; [`Error::SlabsHeld`]
    /// while a batch is held that must be copied. In these cases nothing was published.
    pub fn begin(&mut self, call: Call, flags: u32) -> Result<(), Error> {
        self.check(call)?;
        if call == Call::Reset {
            self.check_recording()?;
        }
        let recorded = self.recorded(call);
        let lease = match (recorded, call, self.memory.slab_backing()) {
            (None, Call::Step | Call::Reset | Call::Judge, Some(backing)) => {
                // SAFETY: the lease is handed out when its task has finished (invariant 3).
                Some(unsafe { self.slabs.acquire(backing) }?)
            }
            (recorded, _, _) => recorded,
        };
        self.task = Command::next(self.task);
        let op = match call {
            Call::Step => Op::Step,
            Call::Reset => Op::Reset,
            Call::Call => Op::Call,
            Call::Judge => Op::Judge,
        };
        let command = Command { op, task: self.task };
        let slab = lease.as_ref().map_or(0, Lease::slab);
        self.pending = Some(Pending { call, command, lease, own_done: false });
        let shards = self.shards().len();
        for worker in 0..shards {
            let slot = self.memory.control.slot(worker);
            slot.slab.store(slab, Ordering::Relaxed); // published by the command word
            slot.flags.store(flags, Ordering::Relaxed);
        }
        if matches!(self.workers, Workers::Inline(..)) {
            return Ok(());
        }
        let header = self.memory.control.header();
        doorbell_disarm(&Futex::new(&header.doorbell, self.memory.scope()));
        #[expect(clippy::cast_possible_truncation, reason = "checked in `Pool::new`")]
        header.remaining.begin(command.task, shards as u32); // published by the words
        if let Workers::Crew(crew) = &mut self.workers {
            crew.begin(command);
            return Ok(());
        }
        self.memory.publish(0..shards, command);
        Ok(())
    }

    /// Waits for the pending call and hands out its result.
    ///
    /// `interrupted` is called every 1 to 50 ms; when it returns `true`, the wait ends. The
    /// caller's own part is done in whole shards, of a crew's shards at least one for each call, so
    /// polling with a zero timeout eventually finishes.
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
    ) -> Result<Finished, Error> {
        self.check_usable()?;
        let Some(pending) = self.pending.as_mut().filter(|pending| pending.call == call) else {
            return Err(Error::NotPending { expected: call });
        };
        let (task, limit) = (pending.command.task, timeout.map(Limit::new));
        if !pending.own_done {
            let command = pending.command;
            pending.own_done = match &mut self.workers {
                Workers::Inline(token, own) => {
                    // SAFETY: the command is pending, and is acknowledged below (invariant 1).
                    let report = unsafe { perform(token, command, own.as_mut()) };
                    // No other thread is counted or woken.
                    self.memory.control.slot(0).done.store(task, Ordering::Relaxed);
                    flush(own.as_mut(), report);
                    true
                }
                Workers::Crew(crew) => crew.help(command, limit),
                Workers::Threads | Workers::Processes(_) => true,
            };
        }
        self.wait(Awaited::Task(task), limit, interrupted)?;
        let lease = self.pending.take().and_then(|pending| pending.lease);
        if let Some(lease) = &lease {
            lease.read(lease.layout().phases_offset(), &mut self.phases);
            if !(self.policy.judges && call == Call::Step) {
                self.meter.count_batch(self.phases.len(), lease.must_copy());
            }
        }
        self.half_done = self.policy.judges && call == Call::Step;
        if self.recording.is_some() && self.reports().any(|report| report.failed) {
            self.recording = None; // the following steps do not continue it
        }
        Ok(Finished { lease, task })
    }

    /// Whether no task is pending, nor running without a wait for its end.
    pub(super) fn is_open(&self) -> bool {
        self.pending.is_none() && self.broken.is_none() && !self.closed
    }

    /// The report of each shard on the call that finished last, until the next one begins.
    pub fn reports(&self) -> impl Iterator<Item = Report> + '_ {
        let control = &self.memory.control;
        let status = |shard| control.slot(shard).status.load(Ordering::Relaxed);
        (0..control.workers()).map(move |shard| Report::from_word(status(shard)))
    }

    /// Copies the info stream of shard `shard` for the call that finished last to `into`.
    ///
    /// # Panics
    ///
    /// When a worker may be writing infos: a call is pending, rows are in flight, or the pool is
    /// closed or broken, which late workers may not have noticed.
    pub fn load_infos(&self, shard: usize, into: &mut Vec<u8>) {
        assert!(self.is_open() && !self.sent.any(), "infos are those of a call that finished");
        let bytes = self.memory.control.slot(shard).info_bytes.load(Ordering::Relaxed);
        // SAFETY: the call has finished, and no worker runs, as was just checked (invariant 4).
        unsafe { self.memory.infos.load(shard, None, bytes as usize, into) }
    }
}
