//! A worker: takes a task, carries it out on its rows, acknowledges it.
//!
//! The loop is the same for a thread and for a process; only the scope of the memory differs. What
//! the rows are is the business of the [`Shard`].
//!
//! Rows come in two ways. A task is for all rows of every shard, whose places in the batch are their
//! own numbers; it is acknowledged as a whole. Rows that were sent are taken from a queue, a few at a
//! time, get places when they are done, and are counted as filled one by one. Both end in
//! [`Shard::run`].

mod crew;
mod guard;
mod limit;
mod process;
mod sent;

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

/// Longest sleep of an idle worker before it looks again. Only a lost wake-up would ever need it.
const IDLE_SLICE: Duration = Duration::from_millis(50);

/// What a worker says of a task beside the rows it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Some row failed; the reasons follow by the shard's own channel.
    pub failed: bool,
    /// The infos did not fit into shared memory; they follow by the shard's own channel.
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
    /// The rows to do it to, counted from the start of the environments: those of the shard, or some of
    /// them that were sent.
    pub rows: Range<usize>,
    /// The first row of the shard.
    pub first: usize,
    /// Whether the rows were sent.
    pub sent: bool,
    /// What the pool's caller told the shards beside the operation; the core gives it no meaning.
    pub flags: u32,
    /// Their places in the batch, in order; they are written by step and reset only.
    pub slab: SlabRows<'a>,
    /// Their actions.
    pub actions: ActionRows<'a>,
    /// What is counted of the shard's rows.
    pub tally: Tally<'a>,
    infos: &'a InfoArea,
    /// The shard, and of rows that were sent which they are: where their infos go, whatever becomes of the
    /// numbers above.
    shard: usize,
    cells: Option<Range<usize>>,
    info_bytes: usize,
}

impl Task<'_> {
    /// The rows, counted from the start of the shard.
    pub fn own_rows(&self) -> Range<usize> {
        self.rows.start - self.first..self.rows.end - self.first
    }

    /// The actions of the rows to read in place, and their places to write in place.
    pub fn columns(&mut self) -> (ActionColumns<'_>, SlabColumns<'_>) {
        (self.actions.columns(), self.slab.columns())
    }

    /// Stores the rows' info stream; `false` when it does not fit and has to go another way.
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

    /// Whether [`Shard::run`] times each row of a step or reset itself. Otherwise some steps are timed,
    /// all their rows together.
    fn times_rows(&self) -> bool {
        false
    }

    /// Most rows that are taken from the queue at once. They get their places together, so more than
    /// one only where rows cost next to nothing; a single one is prepared first.
    fn batch_of_sent(&self) -> usize {
        1
    }

    /// Does to a single row that was sent what takes time, before it gets its place in a batch. The
    /// next [`Shard::run`] is for this row. `first` is the first row of the shard.
    fn prepare(&mut self, work: &Work, first: usize, actions: &ActionRows<'_>) {
        let _ = (work, first, actions);
    }

    /// Called when [`Shard::run`] or [`Shard::prepare`] panicked: remembers that every row of the task
    /// failed, for which reason, and says what follows. In the batch the rows have failed already.
    fn panicked(&mut self, task: &Task<'_>, message: &str) -> Report {
        let _ = (task, message);
        Report { failed: true, spilled: false }
    }

    /// Sends what [`Report`] announced. Called after the task was acknowledged; by a [`Crew`], whose shards
    /// tell everything in memory, before.
    fn flush(&mut self, report: Report);

    /// Called when [`Shard::flush`] panicked: sends something else in the place of each message that was not
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

/// Carries out the task that `command` announces; the acknowledgement is left to the caller.
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
    // Claimed here alone: the command says that the slab is filling, the plan that the rows are
    // ours, and the claim ends with `task`, before the acknowledgement.
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

/// Notes how long a task on so many rows took.
fn note_time(tally: &Tally<'_>, op: Op, rows: usize, spent: Duration) {
    if op == Op::Step { tally.time_steps(rows, spent) } else { tally.time_other(spent) }
}

/// Waits for a command: looks for it as long as there is patience, then sleeps.
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

/// Serves worker `worker` until it is told to close: the loop of a worker thread or process.
///
/// `spin` allows looking for the next task before sleeping.
///
/// # Errors
///
/// [`Error::AlreadyServed`] when somebody serves this worker, or did; then nothing was done. A worker is
/// served once, unless its process died and the pool [asked what was lost](crate::pool::Pool::lost).
///
/// # Panics
///
/// When there is no such worker.
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
            // Rows that are pushed after the last look come with a command of their own.
            while !is_closing(&word) && perform_sent(memory, worker, shard) > 0 {}
            continue;
        }
        let report = perform(memory, worker, command, shard);
        acknowledge(&slot.done, &header.remaining, &doorbell, command.task);
        guard::flush(shard, report);
    }
}
