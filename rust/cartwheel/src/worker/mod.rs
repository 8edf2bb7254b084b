//! A worker: takes a task, carries it out on its rows, acknowledges it.
//!
//! The loop is the same for a thread and for a process; only the scope of the memory differs. What
//! the rows are is the business of the [`Shard`].

mod crew;
mod process;

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub use crew::{Crew, Settings as CrewSettings};
pub use process::{ProcessHandle, exit_with_parent};

use crate::memory::{ActionArea, ActionColumns, Columns, InfoArea, Memory, Scope, SlabRows};
use crate::schedule::usable_cpus;
use crate::wake::{Command, Futex, Op, Patience, park, ring, take};

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
    /// What to do; never [`Op::Close`].
    pub op: Op,
    /// Number of the task.
    pub number: u32,
    /// What the pool's caller told the shards beside the operation; the core gives it no meaning.
    pub flags: u32,
    /// Where the rows go; they are written by step and reset only.
    pub slab: SlabRows<'a>,
    /// The actions of the batch.
    pub actions: &'a ActionArea,
    infos: &'a InfoArea,
    shard: usize,
    info_bytes: usize,
}

impl Task<'_> {
    /// The actions of the shard's rows to read in place, and the rows to write in place.
    pub fn columns(&mut self) -> (ActionColumns<'_>, Columns<'_>) {
        let rows = self.slab.rows();
        (ActionColumns::new(self.actions, rows), self.slab.columns())
    }

    /// Stores the shard's info stream; `false` when it does not fit and has to go another way.
    pub fn store_infos(&mut self, stream: &[u8]) -> bool {
        let stored = self.infos.store(self.shard, stream);
        self.info_bytes = if stored { stream.len() } else { 0 };
        stored
    }
}

/// The environments of one worker.
pub trait Shard {
    /// Carries out one task on every row of the shard.
    fn run(&mut self, task: &mut Task<'_>) -> Report;

    /// Called after the task was acknowledged: sends what [`Report`] announced.
    fn flush(&mut self, report: Report);

    /// Ends the environments.
    fn close(&mut self);
}

/// Carries out the task that `command` announces, up to the acknowledgement.
pub(crate) fn perform(memory: &Memory, worker: usize, command: Command, shard: &mut dyn Shard) {
    let slot = memory.control.slot(worker);
    let rows: Range<usize> = memory.plan().shards[worker].clone();
    let slab = slot.slab.load(Ordering::Relaxed); // ordered by the command word
    // Claimed here alone: the command says that the slab is filling, the plan that the rows are
    // ours, and the claim ends with `task`, before the acknowledgement.
    let slab = memory.slabs.claim(slab, rows);
    let mut task = Task {
        op: command.op,
        number: command.task,
        flags: slot.flags.load(Ordering::Relaxed),
        slab,
        actions: &memory.actions,
        infos: &memory.infos,
        shard: worker,
        info_bytes: 0,
    };
    let report = shard.run(&mut task);
    let info_bytes = u32::try_from(task.info_bytes).expect("an info region is below 4 GiB");
    slot.info_bytes.store(info_bytes, Ordering::Relaxed);
    slot.status.store(report.to_word(), Ordering::Relaxed);
    // `Release` publishes rows, infos and the two words above; it pairs with the `Acquire` loads of
    // `done` in `Pool::waiting`.
    slot.done.store(command.task, Ordering::Release);
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
pub fn serve(memory: &Memory, worker: usize, shard: &mut dyn Shard, scope: Scope, spin: bool) {
    let (slot, header) = (memory.control.slot(worker), memory.control.header());
    let word = Futex::new(&slot.word, scope);
    let doorbell = Futex::new(&header.doorbell, scope);
    let mut patience = Patience::new(memory.control.workers() + 1, usable_cpus(), spin);
    loop {
        let command = next_command(&word, &mut patience);
        if command.op == Op::Close {
            shard.close();
            slot.done.store(command.task, Ordering::Release);
            ring(&doorbell);
            return;
        }
        perform(memory, worker, command, shard);
        let report = Report::from_word(slot.status.load(Ordering::Relaxed));
        // `AcqRel`: the last one to come here has seen every other acknowledgement.
        if header.remaining.fetch_sub(1, Ordering::AcqRel) == 1 {
            ring(&doorbell);
        }
        if report != Report::default() {
            shard.flush(report);
        }
    }
}
