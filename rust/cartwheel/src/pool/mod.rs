//! The pool: owns the memory, the workers and the order of calls.
//!
//! Every call is a *task* in two halves: [`Pool::begin`] checks it, pops a slab and publishes it to
//! the workers; [`Pool::finish`] steps the caller's own shard, waits for the acknowledgements and
//! hands the slab out. `step` is both. Nothing is published before everything that can be wrong
//! with a call has been checked.
//!
//! Beside tasks there are rows that are *sent* and *received*, see `sent.rs`; a task begins only while
//! none of them is in flight, and none is sent while a task is pending.
//!
//! `done` of each worker is the truth about a task. `remaining`, which counts for one task only, and the
//! doorbell decide who wakes the pool; every sleep is a slice, so what goes wrong with them (a worker may
//! die between `done` and its count) costs milliseconds, never a hang.

mod broken;
mod check;
mod episodes;
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
use episodes::Episodes;
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

/// What the death of a worker process means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDeath {
    /// The pool can only be closed.
    Break,
    /// Another process can take over, see [`Pool::resume`].
    Resume,
}

/// How a pool treats rows and waits.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Refuse to step when a row is over: autoreset is disabled and over rows do not freeze.
    pub refuse_over: bool,
    /// Refuse to step rows that were never reset. Without it that is the environments' affair.
    pub refuse_unstarted: bool,
    /// What the death of a worker process means.
    pub on_death: OnDeath,
    /// Allow looking for a result before sleeping.
    pub spin: bool,
}

#[derive(Debug)]
struct Pending {
    call: Call,
    command: Command,
    lease: Option<Lease>,
    /// The calling thread has done its part.
    own_done: bool,
}

/// What a finished call left.
#[derive(Debug)]
pub struct Finished {
    /// The batch of a step or reset.
    pub lease: Option<Lease>,
    /// Number of the task, by which later messages of the shards are recognised.
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
    /// How long a wait may last before it is interrupted by [`Error::StillWaiting`].
    reminder: Option<Duration>,
    look: Look,
    task: u32,
    pending: Option<Pending>,
    phases: Vec<u8>,
    recording: Option<Recording>,
    sent: InFlight,
    /// Counted if somebody asked for it.
    episodes: Option<Episodes>,
    /// The pool can only be closed.
    broken: Option<Broken>,
    /// The workers that died and are to be followed by others.
    interrupted: Vec<Interrupted>,
    meter: Arc<Meter>,
    closed: bool,
    /// The process that made the pool; a forked child must leave the workers alone.
    owner: u32,
}

impl Pool {
    /// A pool over new memory, whose workers are running or about to.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when the workers do not match the memory's shards. [`Error::AlreadyPooled`] when
    /// the memory has, or had, a pool; [`Error::AlreadyServed`] when somebody serves a worker that this pool
    /// is to step itself.
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
            episodes: None,
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

    /// From now on, waits end with [`Error::StillWaiting`] after so long; they can be taken up again.
    pub fn remind_after(&mut self, reminder: Option<Duration>) {
        self.reminder = reminder;
    }

    /// The slabs, for their layout and number.
    pub fn slabs(&self) -> &SlabPool {
        &self.slabs
    }

    /// What reads the counters of pool and workers, from any thread.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// The rows of each shard.
    pub fn shards(&self) -> &[Range<usize>] {
        &self.memory.plan().shards
    }

    /// The call that was begun and not finished.
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

    /// Stores the actions of the next step, one leaf at a time: `fill` writes the `rows * row_len` elements
    /// to where the workers will read them, and can look at them there before any worker does. Until
    /// [`Pool::begin`] they are nobody's: a step whose actions are refused has not happened.
    ///
    /// # Errors
    ///
    /// As [`Pool::check`] for a step, and that of `fill`.
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

    /// Begins a call: publishes its task to every worker. `flags` reach the shards as they are.
    ///
    /// # Errors
    ///
    /// As [`Pool::check`]; for a reset also [`Error::BadPlan`] when it would fill the first batch of a rollout
    /// once more and its [lease](Lease) is held. Then nothing was published.
    pub fn begin(&mut self, call: Call, flags: u32) -> Result<(), Error> {
        self.check(call)?;
        if call == Call::Reset {
            self.check_recording()?;
        }
        self.task = Command::next(self.task);
        let recorded = self.recorded(call);
        let lease = match (call, self.memory.slab_backing()) {
            (Call::Step | Call::Reset, Some(backing)) => {
                Some(recorded.unwrap_or_else(|| self.slabs.acquire(backing)))
            }
            _ => None,
        };
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

    /// Waits for the pending call and hands its result out.
    ///
    /// `interrupted` is asked about once a slice, 1 to 50 ms apart, and ends the wait by `true`. The
    /// caller's own part is whole shards, of a crew at least one: who asks again and again, with no
    /// time at all, comes to the end.
    ///
    /// # Errors
    ///
    /// [`Error::NotPending`] when `call` is not what is pending. [`Error::Timeout`],
    /// [`Error::StillWaiting`] and [`Error::Interrupted`] leave the call pending: it can be waited for
    /// again. After [`Error::WorkerDied`] the pool can only be closed, unless it [can be
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
                    // Nobody else is counted or woken.
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
            if let Some(episodes) = self.episodes.as_mut().filter(|_| call == Call::Step) {
                episodes.stepped(lease);
            }
        }
        if self.recording.is_some() && self.reports().any(|report| report.failed) {
            self.recording = None; // what follows is no continuation of it
        }
        Ok(Finished { lease, task })
    }

    /// Whether no task is pending, and none is whose end nobody waited for.
    fn is_open(&self) -> bool {
        self.pending.is_none() && self.broken.is_none() && !self.closed
    }

    /// What each shard says of the call that finished last, until the next one begins.
    pub fn reports(&self) -> impl Iterator<Item = Report> + '_ {
        let control = &self.memory.control;
        let status = |shard| control.slot(shard).status.load(Ordering::Relaxed);
        (0..control.workers()).map(move |shard| Report::from_word(status(shard)))
    }

    /// Copies the info stream of shard `shard` for the call that finished last into `into`.
    ///
    /// # Panics
    ///
    /// When a worker may be writing infos: a call is pending, rows are in flight, or the pool was closed or
    /// broken, which late workers do not know.
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
