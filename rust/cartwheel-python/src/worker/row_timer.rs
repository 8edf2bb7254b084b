//! The time that each row of a task takes.

use std::time::{Duration, Instant};

use cartwheel_engine::protocol::Counters;
use cartwheel_engine::wake::Op;

use crate::worker::rows::LastResult;

/// Times the rows of a task one after the other, with one clock reading for each row.
pub(super) struct RowTimer<'a> {
    op: Op,
    counters: Counters<'a>,
    began: Instant,
    /// Time that was spent on the first row before.
    before: Duration,
}

impl<'a> RowTimer<'a> {
    /// Begins with the first row, for which `before` was spent already.
    pub(super) fn begin(op: Op, counters: Counters<'a>, before: Duration) -> Self {
        Self { op, counters, began: Instant::now(), before }
    }

    /// The row is done.
    pub(super) fn end(&mut self, row: usize, held: &mut LastResult) {
        let now = Instant::now();
        let spent = now - self.began + std::mem::take(&mut self.before);
        self.began = now;
        match self.op {
            Op::Step => self.counters.time_step(row, spent),
            _ => self.counters.time_other(spent),
        }
        if held.resets > 0 {
            self.counters.count_resets(row, std::mem::take(&mut held.resets));
        }
        if held.replacements > 0 {
            self.counters.count_replacements(row, std::mem::take(&mut held.replacements));
        }
    }
}
