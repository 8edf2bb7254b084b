//! The number of sent rows that are stepped together.
//!
//! Rows that are stepped together get their places in a batch together, after the last of them. For
//! very cheap rows this makes sending cheap: one claim, one clock reading and one block of vector
//! instructions serve all of them. For expensive rows, a slow row would hold up the others. So a
//! shard steps together only as many rows as take some microseconds in total, by the recent cost of
//! its rows, and begins with single rows. Single rows are all timed; rows that are stepped together
//! are so cheap that reading the clock costs a noticeable part of the time, so only one time in
//! eight is measured.
//!
//! Most steps may be cheap and a reset expensive. So resets are timed, too, and where one takes longer
//! than rows that are stepped together may take, rows are stepped one at a time.

use std::time::Duration;

use crate::wake::Op;

/// Maximum time for rows that are stepped together.
const TOGETHER: Duration = Duration::from_micros(20);
/// Maximum number of rows that are stepped together.
const MAX_ROWS: usize = 256;
/// Number of slow resets that are not an accident.
const MIN_SLOW_RESETS: usize = 3;
/// One in this many times is measured, where rows are stepped together.
const SAMPLED: u32 = 8;

/// The chunk size of one shard.
#[derive(Debug, Default)]
pub(super) struct ChunkSize {
    rows: usize,
    /// Number of rows whose resets, the last ones that were timed, took too long each for rows that
    /// are stepped together.
    slow_resets: usize,
    /// Times since the last measured one.
    untimed: u32,
}

impl ChunkSize {
    /// Maximum number of rows to step together next.
    pub(super) fn rows(&self) -> usize {
        if self.slow_resets >= MIN_SLOW_RESETS { 1 } else { self.rows.max(1) }
    }

    /// Whether the next rows should be timed.
    pub(super) fn is_due(&mut self) -> bool {
        self.untimed = if self.rows() == 1 { 0 } else { (self.untimed + 1) % SAMPLED };
        self.untimed == 0
    }

    /// `rows` rows were stepped or reset in `spent`.
    pub(super) fn note(&mut self, op: Op, spent: Duration, rows: usize) {
        let fitting = TOGETHER.as_nanos() * rows as u128 / spent.as_nanos().max(1);
        let fitting = usize::try_from(fitting).unwrap_or(MAX_ROWS).min(MAX_ROWS);
        if op == Op::Reset {
            self.slow_resets = if fitting == 0 { self.slow_resets.saturating_add(rows) } else { 0 };
        } else {
            // A single quick row is weak evidence.
            self.rows = fitting.clamp(1, 2 * self.rows.max(1));
        }
    }
}
