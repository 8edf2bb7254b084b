//! A worker: takes a task, carries it out on its rows, acknowledges it.
//!
//! The loop is the same for a thread and for a process; only the scope of the memory differs. The
//! [`Shard`] decides what its rows are.
//!
//! Rows arrive in two ways. A task is for all rows of every shard, whose places in the batch are
//! their own numbers; it is acknowledged as a whole. Sent rows are taken from a queue, a few at a
//! time, get places when they are done, and are counted as filled one by one. Both lead to
//! [`Shard::run`].

mod crew;
mod guard;
mod handover;
mod limit;
mod process;
mod sent;
mod share;

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub use crew::{Crew, CrewSettings};
pub(crate) use guard::{close, flush, message_of};
pub(crate) use limit::Limit;
pub(crate) use process::has_ended;
pub use process::{ProcessHandle, exit_with_parent};
pub(crate) use sent::perform_sent;

use crate::error::Error;
use crate::failpoint::{Failpoint, die};
use crate::memory::{ActionColumns, ActionRows, InfoArea, SlabColumns, SlabRows};
use crate::protocol::{Memory, Tally, Work};
use crate::schedule::usable_cpus;
use crate::wake::{Command, Futex, Op, Patience, acknowledge, is_closing, park, ring, take};

/// Longest sleep of an idle worker before it checks again. Only a lost wake-up would need the
/// check.
const IDLE_SLICE: Duration = Duration::from_millis(50);

/// What a worker reports about a task, besides the rows that it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Some row failed; the reasons follow through the shard's own channel.
    pub failed: bool,
    /// The infos did not fit into shared memory; they follow through the shard's own channel.
    pub spilled: bool,
}

impl Report {
    pub(crate) fn to_word(self) -> u32 {
        u32::from(self.failed) | u32::from(self.spilled) << 1
    }

    pub(crate) fn from_word(word: u32) -> Self {
        Self { failed: word & 1 != 0, spilled: word & 2 != 0 }
    }
}

/// One task, as a shard sees it.
#[derive(Debug)]
pub struct Task<'a> {
    /// What to do: [`Op::Step`], [`Op::Reset`] or [`Op::Call`].
    pub op: Op,
    /// The rows to do it to, counted from the first row of the pool: all rows of the shard, or some
    /// of them that were sent.
    pub rows: Range<usize>,
    /// The first row of the shard.
    pub first: usize,
    /// Whether the rows were sent.
    pub sent: bool,
    /// Flags that the pool's caller passes to the shards; the core gives them no meaning.
    pub flags: u32,
    /// The rows' places in the batch, in order; only step and reset write them.
    pub slab: SlabRows<'a>,
    /// Their actions.
    pub actions: ActionRows<'a>,
    /// The counters of the shard's rows.
    pub tally: Tally<'a>,
    infos: &'a InfoArea,
    /// The shard, and for sent rows the rows themselves: they determine where the infos go, even if
    /// the public fields above are changed.
    shard: usize,
    cells: Option<Range<usize>>,
    info_bytes: usize,
}

impl Task<'_> {
    /// The rows, counted from the first row of the shard.
    pub fn own_rows(&self) -> Range<usize> {
        self.rows.start - self.first..self.rows.end - self.first
    }

    /// The actions of the rows, for reading in place, and their places, for writing in place.
    pub fn columns(&mut self) -> (ActionColumns<'_>, SlabColumns<'_>) {
        (self.actions.columns(), self.slab.columns())
    }

    /// Stores the rows' info stream; returns `false` when it does not fit and has to be sent in
    /// another way.
    pub fn store_infos(&mut self, stream: &[u8]) -> bool {
        let stored = self.infos.store(self.shard, self.cells.as_ref(), stream);
        self.info_bytes = if stored { stream.len() } else { 0 };
        stored
    }
}

/// The environments of one worker.
pub trait Shard {
    /// Carries out one task on its rows.
    fn run(&mut self, task: &mut Task<'_>) -> Report;

    /// Whether [`Shard::run`] itself times each row of a step or reset. Otherwise some steps are
    /// timed, with all their rows together.
    fn times_rows(&self) -> bool {
        false
    }

    /// Maximum number of rows that are taken from the queue at once. They get their places
    /// together, so more than one only where rows are very cheap; a single row is prepared first.
    fn batch_of_sent(&self) -> usize {
        1
    }

    /// Does the slow part of a single sent row's work before the row gets its place in a batch. The
    /// next [`Shard::run`] is for this row. `first` is the first row of the shard.
    fn prepare(&mut self, work: &Work, first: usize, actions: &ActionRows<'_>) {
        let _ = (work, first, actions);
    }

    /// Called when [`Shard::run`] or [`Shard::prepare`] panicked: records that every row of the
    /// task failed, and the reason, and returns what follows. The rows in the batch are already
    /// marked as failed.
    fn panicked(&mut self, task: &Task<'_>, message: &str) -> Report {
        let _ = (task, message);
        Report { failed: true, spilled: false }
    }

    /// Sends what [`Report`] announced. Called after the task was acknowledged; a [`Crew`] calls it
    /// before, because its shards report everything in memory.
    fn flush(&mut self, report: Report);

    /// Called when [`Shard::flush`] panicked: sends a substitute for each message that was not
    /// sent, because the pool's caller waits for what was announced.
    fn flush_panicked(&mut self, message: &str) {
        let _ = message;
    }

    /// Ends the environments.
    fn close(&mut self);
}

/// A [`Shard`] that the calling thread steps itself.
pub trait OwnShard: Shard + Send + std::fmt::Debug {}

impl<S: Shard + Send + std::fmt::Debug> OwnShard for S {}

/// Carries out the task that `command` announces; the caller has to acknowledge it.
pub(crate) fn perform(
    memory: &Memory,
    worker: usize,
    command: Command,
    shard: &mut dyn Shard,
) -> Report {
    let slot = memory.control.slot(worker);
    let rows: Range<usize> = memory.plan().shards[worker].clone();
    let slab = slot.slab.load(Ordering::Relaxed); // ordered by the command word
    // A control call has no slab, and a batch may have fewer places than there are rows.
    let places = if command.op == Op::Call { 0..0 } else { rows.clone() };
    // Only this code claims these rows: the command says that the slab is filling, the plan says
    // that the rows belong to this worker, and the claim ends with `task`, before the acknowledgement.
    let slab = memory.slabs.claim(slab, places);
    let tally = memory.control.tally(worker);
    let started = is_timed(command.op, shard, &tally).then(Instant::now);
    let mut task = Task {
        op: command.op,
        first: rows.start,
        sent: false,
        flags: slot.flags.load(Ordering::Relaxed),
        slab,
        actions: ActionRows::new(&memory.actions, rows.clone(), command.op),
        rows,
        tally,
        infos: &memory.infos,
        shard: worker,
        cells: None,
        info_bytes: 0,
    };
    let report = guard::run(shard, &mut task, Ok(()));
    if let Some(started) = started {
        note_time(&tally, command.op, task.rows.len(), started.elapsed());
    }
    if command.op == Op::Step {
        tally.count_batch();
    }
    let info_bytes = u32::try_from(task.info_bytes).expect("an info region is below 4 GiB");
    slot.info_bytes.store(info_bytes, Ordering::Relaxed);
    slot.status.store(report.to_word(), Ordering::Relaxed);
    if Failpoint::DieBeforeAck.hit() {
        die();
    }
    report
}

/// Whether a task is timed as a whole.
fn is_timed(op: Op, shard: &dyn Shard, tally: &Tally<'_>) -> bool {
    match op {
        Op::Step => !shard.times_rows() && tally.is_due(),
        Op::Reset => !shard.times_rows(),
        Op::Call | Op::Take | Op::Close => true,
    }
}

/// Records how long a task on `rows` rows took.
fn note_time(tally: &Tally<'_>, op: Op, rows: usize, spent: Duration) {
    if op == Op::Step { tally.time_steps(rows, spent) } else { tally.time_other(spent) }
}

/// Waits for a command: polls as long as there is patience, then sleeps.
fn next_command(word: &Futex<'_>, patience: &mut Patience) -> Command {
    let mut found = None;
    patience.wait(|| {
        found = take(word);
        found.is_some()
    });
    loop {
        if let Some(command) = found.take().or_else(|| take(word)) {
            return command;
        }
        park(word, IDLE_SLICE);
    }
}

/// Serves worker `worker` until the pool closes it: the loop of a worker thread or process.
///
/// `spin` allows polling for the next task before sleeping.
///
/// # Errors
///
/// [`Error::AlreadyServed`] when this worker is or was already served; then nothing was done. A
/// worker is served once, unless its process died and the pool [asked what was
/// lost](crate::pool::Pool::lost).
///
/// # Panics
///
/// When the worker does not exist.
pub fn serve(
    memory: &Memory,
    worker: usize,
    shard: &mut dyn Shard,
    spin: bool,
) -> Result<(), Error> {
    memory.claim_worker(worker)?;
    let scope = memory.scope();
    let (slot, header) = (memory.control.slot(worker), memory.control.header());
    let word = Futex::new(&slot.word, scope);
    let doorbell = Futex::new(&header.doorbell, scope);
    let mut patience = Patience::new(memory.control.workers() + 1, usable_cpus(), spin);
    loop {
        let command = next_command(&word, &mut patience);
        if command.op == Op::Close {
            guard::close(shard);
            slot.done.store(command.task, Ordering::Release);
            ring(&doorbell);
            return Ok(());
        }
        if command.op == Op::Take {
            // Rows that are pushed after the last check come with their own command.
            while !is_closing(&word) && perform_sent(memory, worker, shard) > 0 {}
            continue;
        }
        let report = perform(memory, worker, command, shard);
        acknowledge(&slot.done, &header.remaining, &doorbell, command.task);
        guard::flush(shard, report);
    }
}
