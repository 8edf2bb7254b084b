//! The pool: owns the memory, the workers and the order of calls.
//!
//! Every call is a *task* in two halves: [`Pool::begin`] checks the call, acquires a slab and
//! publishes the task to the workers; [`Pool::finish`] steps the caller's own shard, waits for the
//! acknowledgements and hands out the slab. `step` is both. Nothing is published before everything
//! that can be wrong with a call has been checked.
//!
//! Besides tasks, rows can be *sent* and *received*, see `sent.rs`; a task begins only while no
//! rows are in flight, and no rows are sent while a task is pending.
//!
//! The `done` word of each worker says whether it has finished a task. `remaining`, which counts
//! for one task only, and the doorbell decide who wakes the pool. Every sleep is short, so an error
//! in those two (a worker may die between `done` and its count) costs milliseconds and never hangs.

mod broken;
mod check;
mod received;
mod recording;
mod restart;
mod sent;
mod stats;
mod waiting;
mod workers;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::call::Call;
use crate::error::Error;
use crate::memory::{Lease, SlabPool};
use crate::protocol::Memory;
use crate::schedule::usable_cpus;
use crate::space::ActionTag;
use crate::transition::PhaseTag;
use crate::wake::{Command, Futex, Op, Patience, doorbell_disarm, publish};
use crate::worker::{Limit, Report, flush, perform};
use broken::Broken;
pub use received::{Event, Received};
pub use recording::Recorded;
use recording::Recording;
use restart::Interrupted;
pub use restart::Lost;
use sent::InFlight;
pub use sent::Sending;
pub use stats::{Meter, RowStats, ShardStats, Stats};
use waiting::{Awaited, Look};
pub use workers::Workers;

/// The consequence of a worker process's death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDeath {
    /// The pool can only be closed.
    Break,
    /// Another process can replace it, see [`Pool::resume`].
    Resume,
}

/// How a pool treats rows and waits for workers.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Refuse to step when a row is over: autoreset is disabled and over rows do not freeze.
    pub refuse_over: bool,
    /// Refuse to step rows that were never reset. Otherwise the environments decide what such a
    /// step does.
    pub refuse_unstarted: bool,
    /// What the death of a worker process means.
    pub on_death: OnDeath,
    /// Poll for a result before sleeping.
    pub spin: bool,
}

#[derive(Debug)]
struct Pending {
    call: Call,
    command: Command,
    lease: Option<Lease>,
    /// Whether the calling thread has done its part.
    own_done: bool,
}

/// The result of a finished call.
#[derive(Debug)]
pub struct Finished {
    /// The batch of a step or reset.
    pub lease: Option<Lease>,
    /// Number of the task; later messages of the shards carry it.
    pub task: u32,
}

/// Environments, their workers and their memory.
#[derive(Debug)]
pub struct Pool {
    memory: Memory,
    slabs: Arc<SlabPool>,
    workers: Workers,
    policy: Policy,
    patience: Patience,
    /// Duration of a wait after which [`Error::StillWaiting`] interrupts it.
    reminder: Option<Duration>,
    look: Look,
    task: u32,
    pending: Option<Pending>,
    phases: Vec<u8>,
    recording: Option<Recording>,
    sent: InFlight,
    /// Present if the pool is broken: it can only be closed.
    broken: Option<Broken>,
    /// The workers that died and are to be replaced.
    interrupted: Vec<Interrupted>,
    meter: Arc<Meter>,
    closed: bool,
    /// The process that made the pool; a forked child must leave the workers alone.
    owner: u32,
}

impl Pool {
    /// A pool over new memory, whose workers are running or will be started.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when the workers do not match the memory's shards.
    /// [`Error::AlreadyPooled`] when the memory has, or had, a pool; [`Error::AlreadyServed`] when
    /// a worker that this pool is to step itself is already served.
    pub fn new(memory: Memory, mut workers: Workers, policy: Policy) -> Result<Self, Error> {
        if let Err(error) = workers.claim(&memory) {
            workers.dismiss();
            return Err(error);
        }
        let shards = memory.plan().shards.len();
        let phase = if policy.refuse_unstarted { PhaseTag::Unstarted } else { PhaseTag::Running };
        let slabs =
            Arc::new(SlabPool::new(Arc::clone(&memory.slabs), memory.plan().open_batches()));
        let rows_are_timed = !matches!(&workers, Workers::Crew(_));
        Ok(Self {
            meter: Arc::new(Meter::new(&memory, Arc::clone(&slabs), rows_are_timed)),
            slabs,
            patience: Patience::new(workers.threads(shards), usable_cpus(), policy.spin),
            reminder: None,
            look: Look::now(),
            phases: vec![phase as u8; memory.plan().rows()],
            sent: InFlight::new(memory.plan()),
            memory,
            workers,
            policy,
            task: 0,
            pending: None,
            recording: None,
            broken: None,
            interrupted: Vec::new(),
            closed: false,
            owner: std::process::id(),
        })
    }

    /// From now on, waits end with [`Error::StillWaiting`] after this time; they can be continued.
    pub fn remind_after(&mut self, reminder: Option<Duration>) {
        self.reminder = reminder;
    }

    /// The slabs, for their layout and number.
    pub fn slabs(&self) -> &SlabPool {
        &self.slabs
    }

    /// Reads the counters of pool and workers, from any thread.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// The rows of each shard.
    pub fn shards(&self) -> &[Range<usize>] {
        &self.memory.plan().shards
    }

    /// The call that has begun and not finished.
    pub fn pending(&self) -> Option<Call> {
        self.pending.as_ref().map(|pending| pending.call)
    }

    /// Whether the pool was closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

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
        self.check(Call::Step)?; // nothing is pending or in flight: no worker reads the area
        let area = &self.memory.actions;
        area.store(leaf, tag, area.all_rows(), fill)
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
            (None, Call::Step | Call::Reset, Some(backing)) => Some(self.slabs.acquire(backing)?),
            (recorded, _, _) => recorded,
        };
        self.task = Command::next(self.task);
        let op = match call {
            Call::Step => Op::Step,
            Call::Reset => Op::Reset,
            Call::Call => Op::Call,
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
        if matches!(self.workers, Workers::Inline(_)) {
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
        for worker in 0..shards {
            let word = &self.memory.control.slot(worker).word;
            publish(&Futex::new(word, self.memory.scope()), command);
        }
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
                Workers::Inline(own) => {
                    let report = perform(&self.memory, 0, command, own.as_mut());
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
            self.meter.count_batch(self.phases.len(), lease.must_copy());
        }
        if self.recording.is_some() && self.reports().any(|report| report.failed) {
            self.recording = None; // the following steps do not continue it
        }
        Ok(Finished { lease, task })
    }

    /// Whether no task is pending, nor running without a wait for its end.
    fn is_open(&self) -> bool {
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
        self.memory.infos.load(shard, None, bytes as usize, into);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
    }
}
