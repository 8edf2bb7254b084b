//! The trait of the environments that a worker steps.

use std::any::Any;
use std::ops::Range;

use super::Task;
use crate::memory::ActionRows;
use crate::protocol::{Counters, QueuedRows};

/// A worker's report about a task, apart from the rows that it wrote.
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

/// The environments of one worker.
pub trait Shard: Any + Send + std::fmt::Debug {
    /// Carries out one task on its rows.
    fn run(&mut self, task: &mut Task<'_>) -> Report;

    /// Whether [`Shard::run`] itself times each row of a step or reset. Otherwise some steps are
    /// timed, with all their rows together.
    fn times_rows(&self) -> bool {
        false
    }

    /// Maximum number of rows that are taken from the queue at once. They are prepared and get their
    /// places together, so more than one only where rows are very cheap.
    fn batch_of_sent(&self) -> usize {
        1
    }

    /// Number of these rows, which are prepared, that get their places together, at least the
    /// first. A row that has infos or failed gets its place alone, because the caller may receive
    /// the rows before it and leave the others.
    fn together(&mut self, rows: &Range<usize>) -> usize {
        rows.len()
    }

    /// Calls the environments of sent rows before the rows get their places in a batch, because a row
    /// that has its place holds up the whole batch. So all calls that the work requires belong here:
    /// the step, an autoreset in every mode, an explicit reset, and the replacement of a failed
    /// environment. In `SAME_STEP` the terminal observation and info are kept first, then the row is
    /// reset. The next calls of [`Shard::run`] are for these rows, each for some of them, and only
    /// write. `first` is the first row of the shard, and `counters` has the counters of its rows.
    fn prepare(
        &mut self,
        queued: &QueuedRows,
        first: usize,
        actions: &ActionRows<'_>,
        counters: Counters<'_>,
    ) {
        let _ = (queued, first, actions, counters);
    }

    /// Called when [`Shard::run`] or [`Shard::prepare`] panicked: records that every row of the
    /// task failed, and the reason, and returns what follows. The rows in the batch are already
    /// marked as failed.
    fn panicked(&mut self, task: &Task<'_>, message: &str) -> Report {
        let _ = (task, message);
        Report { failed: true, spilled: false }
    }

    /// Sends what [`Report`] announced, where that is not in memory already. Called after the task was
    /// acknowledged; a [`ThreadPool`](super::ThreadPool) calls it before, because its shards report
    /// everything in memory.
    fn flush(&mut self, report: Report) {
        let _ = report;
    }

    /// Ends the environments, where dropping the shard is too late for that.
    fn close(&mut self) {}
}
