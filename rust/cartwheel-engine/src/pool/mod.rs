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
//!
//! # Invariants
//!
//! These rest on the invariants of [`memory`](crate::memory), cited as "memory 4" and so on, and of
//! [`worker`](crate::worker). Every call takes `&mut Pool`, and a memory has one pool (memory 9).
//!
//! 1. **Own workers.** The pool has the tokens of the workers that it steps itself (worker 1 and 2).
//! 2. **Actions** are stored after a check that no task is pending and none of the rows is in
//!    flight. [`Sending`] borrows the pool mutably from the check to the send, stores a tag that
//!    differs only while no row that steps is in flight, and erases the tags of rows whose actions
//!    it did not store (memory 5).
//! 3. **Leases** on slabs that are being filled stay in the pool, unread, and are handed out when
//!    every worker has acknowledged the task, or every place of the batch is filled (memory 3). Before
//!    that, only places that are committed are read: these are not written any more.
//! 4. **Infos** are loaded while the pool is open and no task is pending, those of a row while it is
//!    not in flight (memory 6).
//! 5. **Private copies.** A pool that closes makes its memory private after its worker processes have
//!    ended or were killed; it reads no slab that one of them was filling (memory 8).

mod broken;
mod check;
mod dropped;
mod in_flight;
mod received;
mod recording;
mod restart;
mod sending;
mod sent;
mod stats;
mod task;
mod waiting;
mod waker;
mod watchdog;
mod workers;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cartwheel_core::schedule::usable_cpus;

use crate::call::Call;
use crate::error::Error;
use crate::memory::{Lease, SlabPool};
use crate::platform::process_id;
use crate::protocol::{Memory, PoolToken};
use crate::transition::PhaseTag;
use crate::wake::SpinPolicy;
use crate::worker::Shard;
use broken::Broken;
use dropped::Dropped;
pub use dropped::DroppedRow;
use in_flight::InFlight;
pub use in_flight::RecvOrder;
use received::Found;
pub use received::{Event, Received, ReceivedRows};
pub use recording::Recorded;
use recording::Recording;
use restart::Interrupted;
pub use restart::Lost;
pub use sending::Sending;
pub use stats::{Meter, RowStats, ShardStats, Stats};
use task::Pending;
use waiting::Look;
pub use waker::Waker;
use watchdog::Watchdog;
pub use workers::Workers;

/// The consequence of a worker process's death.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDeath {
    /// The pool can only be closed.
    #[default]
    Break,
    /// Another process can replace it, see [`Pool::resume`], before anything else is received.
    Resume,
    /// Another process can replace it at any time; the rows of other workers are received meanwhile.
    Defer,
}

/// Settings for the rows of a pool and for waits. By default nothing is refused, and no wait polls.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "choices that do not depend on each other")]
pub struct Policy {
    /// Refuse to step when a row is over: autoreset is disabled and over rows do not freeze.
    pub refuse_over: bool,
    /// Refuse to step rows that were never reset. Otherwise the environments decide what such a
    /// step does.
    pub refuse_unstarted: bool,
    /// The consequence of a worker process's death.
    pub on_death: OnDeath,
    /// Poll for a result before sleeping.
    pub spin: bool,
    /// A step of all rows is done by halves: [`Call::Step`] and [`Call::Settle`]. See
    /// [`ShardSettings::has_external_rewards`](crate::native::ShardSettings::has_external_rewards).
    pub has_external_rewards: bool,
}

/// Environments, their workers and their memory.
#[derive(Debug)]
pub struct Pool {
    memory: Memory,
    slabs: Arc<SlabPool>,
    /// The slab of the last batch, if the caller has copied it.
    parked: Option<Lease>,
    workers: Workers,
    policy: Policy,
    spin_policy: SpinPolicy,
    /// When the last wait ended, see [`crate::wake::Caller`].
    call_ended: Option<Instant>,
    /// Duration of a wait after which [`Error::StillWaiting`] interrupts it.
    reminder: Option<Duration>,
    look: Look,
    waker: Arc<Waker>,
    watchdog: Watchdog,
    task: u32,
    pending: Option<Pending>,
    /// Results that the last wait has found, until they are handed out.
    found: Option<Found>,
    phases: Vec<u8>,
    /// Whether the call that finished last was the first half of a step.
    half_done: bool,
    recording: Option<Recording>,
    sent: InFlight,
    /// Results that no caller saw.
    dropped: Dropped,
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
    /// The pool of a memory, whose workers are running or will be started.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when the workers do not match the memory's shards.
    pub fn new(token: PoolToken, workers: Workers, policy: Policy) -> Result<Self, Error> {
        let PoolToken { memory } = token;
        workers.check(&memory)?;
        let shards = memory.plan().shards.len();
        let interrupted = Interrupted::absent(&workers);
        let phase = if policy.refuse_unstarted { PhaseTag::Unstarted } else { PhaseTag::Running };
        let slabs =
            Arc::new(SlabPool::new(Arc::clone(&memory.slabs), memory.plan().open_batches()));
        let rows_are_timed = match &workers {
            Workers::Inline(_, shard) => shard.times_rows(),
            Workers::Threads | Workers::Processes(_) => true,
            Workers::ThreadPool(_) => false,
        };
        Ok(Self {
            meter: Arc::new(Meter::new(&memory, Arc::clone(&slabs), rows_are_timed)),
            slabs,
            parked: None,
            spin_policy: SpinPolicy::new(workers.threads(shards), usable_cpus(), policy.spin),
            call_ended: None,
            reminder: None,
            look: Look::now(),
            waker: Arc::new(Waker::new(&memory)),
            watchdog: Watchdog::new(shards),
            phases: vec![phase as u8; memory.plan().rows()],
            sent: InFlight::new(memory.plan()),
            dropped: Dropped::default(),
            memory,
            workers,
            policy,
            task: 0,
            pending: None,
            found: None,
            half_done: false,
            recording: None,
            broken: None,
            interrupted,
            closed: false,
            owner: process_id(),
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

    /// Ends waits in [`Pool::receive_ready`], from any thread.
    pub fn waker(&self) -> &Arc<Waker> {
        &self.waker
    }

    /// The rows of each shard.
    pub fn shards(&self) -> &[Range<usize>] {
        &self.memory.plan().shards
    }

    /// The shard that the calling thread steps, where it steps all rows by itself.
    pub fn inline_shard(&self) -> Option<&dyn Any> {
        let Workers::Inline(_, shard) = &self.workers else { return None };
        let shard: &dyn Shard = &**shard;
        Some(shard)
    }

    /// These rows need a reset from now on, as their shards know, too.
    ///
    /// # Panics
    ///
    /// When a row does not exist.
    pub fn fail_rows(&mut self, rows: &[usize]) {
        for &row in rows {
            self.phases[row] = PhaseTag::Failed as u8;
        }
    }

    /// The call that has begun and not finished.
    pub fn pending(&self) -> Option<Call> {
        self.pending.as_ref().map(|pending| pending.call)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
    }
}
