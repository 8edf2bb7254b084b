//! How many sent rows are stepped together.
//!
//! Rows that are stepped together get their places in the batch together, before the first of them
//! is stepped. For very cheap rows this makes sending cheap: one claim, one clock reading and one
//! block of vector instructions serve all of them. For expensive rows, a slow row would hold up the
//! places of the others. So a shard steps together only as many rows as take some microseconds in
//! total, by the recent cost of its rows, and begins with single rows. Single rows are all timed;
//! rows that are stepped together are so cheap that reading the clock costs a noticeable part of
//! the time, so only one time in eight is measured.

use std::time::Duration;

/// Maximum time for rows that are stepped together.
const TOGETHER: Duration = Duration::from_micros(20);
/// Maximum number of rows that are stepped together.
const MOST: usize = 256;
/// One in this many times is measured, where rows are stepped together.
const SAMPLED: u32 = 8;

/// The pace of one shard.
#[derive(Debug, Default)]
pub(super) struct Pace {
    rows: usize,
    /// Time spent on the present rows so far.
    spent: Duration,
    /// Times since the last measured one.
    untimed: u32,
}

impl Pace {
    /// Maximum number of rows to step together next.
    pub(super) fn rows(&self) -> usize {
        self.rows.max(1)
    }

    /// Whether the present rows should be timed.
    pub(super) fn is_due(&mut self) -> bool {
        self.untimed = if self.rows() == 1 { 0 } else { (self.untimed + 1) % SAMPLED };
        self.untimed == 0
    }

    /// A part of the work on the present rows is done.
    pub(super) fn begin(&mut self, spent: Duration) {
        self.spent = spent;
    }

    /// The rest of the work is done, on `rows` rows.
    pub(super) fn end(&mut self, spent: Duration, rows: usize) {
        let spent = std::mem::take(&mut self.spent) + spent;
        let fitting = TOGETHER.as_nanos() * rows as u128 / spent.as_nanos().max(1);
        let fitting = usize::try_from(fitting).unwrap_or(MOST).clamp(1, MOST);
        self.rows = fitting.min(2 * self.rows()); // a single quick row is weak evidence
    }
}
