//! How many rows that were sent are stepped together.
//!
//! Rows stepped together get their places in the batch together, before the first of them is stepped.
//! Where a row costs next to nothing that is what makes sending them cheap: one claim, one look at the
//! clock, one block of vector instructions for all. Where it costs something, a slow row would hold up
//! the places of the others; so a shard steps together only what takes some microseconds in all, by what
//! rows cost in the recent past, and begins with single rows. Single rows are all timed; where rows go
//! together they are so cheap that a look at the clock is felt, and one in eight times has to do.

use std::time::Duration;

/// Time that rows which are stepped together may take.
const TOGETHER: Duration = Duration::from_micros(20);
/// Most rows that are stepped together.
const MOST: usize = 256;
/// One in so many times is timed, where rows are stepped together.
const SAMPLED: u32 = 8;

/// The pace of one shard.
#[derive(Debug, Default)]
pub(super) struct Pace {
    rows: usize,
    /// Time spent on the present rows so far.
    spent: Duration,
    /// Times since the last one that was timed.
    untimed: u32,
}

impl Pace {
    /// Most rows to step together next.
    pub(super) fn rows(&self) -> usize {
        self.rows.max(1)
    }

    /// Whether the present rows are to be timed.
    pub(super) fn is_due(&mut self) -> bool {
        self.untimed = if self.rows() == 1 { 0 } else { (self.untimed + 1) % SAMPLED };
        self.untimed == 0
    }

    /// Part of the work on the present rows is done.
    pub(super) fn begin(&mut self, spent: Duration) {
        self.spent = spent;
    }

    /// The rest of it is done, on `rows` rows.
    pub(super) fn end(&mut self, spent: Duration, rows: usize) {
        let spent = std::mem::take(&mut self.spent) + spent;
        let fitting = TOGETHER.as_nanos() * rows as u128 / spent.as_nanos().max(1);
        let fitting = usize::try_from(fitting).unwrap_or(MOST).clamp(1, MOST);
        self.rows = fitting.min(2 * self.rows()); // one quick row proves little
    }
}
