//! Results that no caller sees: those of a call that was given up, or that raises.
//!
//! The followers of a row know from batches alone what it does. So the pool notes the rows that
//! went on without one, and what happened to them; followers ask for that after resets and errors.
//! Nothing is noted of rows that failed: they have to be reset.
//!
//! Followers may be nested: an inner one can hand a batch on that an outer one never gets. So each
//! drop has a level, and only followers above it hear of it. The pool's own level is 0.

use std::collections::BTreeMap;

use super::{Pool, Received};
use crate::transition::PhaseTag;

/// The last dropped result of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedRow {
    /// The row.
    pub row: usize,
    /// Whether it was an explicit reset.
    pub was_reset: bool,
    /// Whether it ended an episode.
    pub over: bool,
}

/// The last drop of a row's result.
#[derive(Debug, Clone, Copy)]
struct Drop {
    number: u64,
    level: u32,
    row: DroppedRow,
}

/// The dropped results of all rows: the last one of each.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    /// Number of drops.
    number: u64,
    /// The last drop of each row.
    last: BTreeMap<usize, Drop>,
}

impl Pool {
    /// Notes that the results of a call are dropped. `resets` says of the rows of a reset task which
    /// of them were reset: the others showed again what they had shown. `None`: the call was a step,
    /// or rows were sent.
    pub fn drop_results(&mut self, received: &Received, resets: Option<&dyn Fn(usize) -> bool>) {
        let over = received.over();
        let mut dropped = Vec::new();
        for (place, row) in received.rows.iter().enumerate() {
            let phase = self.phases[row];
            let was_reset =
                resets.map_or(received.resets.binary_search(&place).is_ok(), |resets| resets(row));
            let is_shown = resets.is_some() && !was_reset;
            if phase <= PhaseTag::Over as u8 && !is_shown {
                let is_over = phase == PhaseTag::Over as u8;
                let over = over.as_ref().map_or(is_over, |over| over[place] != 0);
                dropped.push(DroppedRow { row, was_reset, over });
            }
        }
        self.drop_rows(dropped, 0);
    }

    /// Notes that results of these rows are dropped, by a follower of this level or by the pool.
    pub fn drop_rows(&mut self, rows: impl IntoIterator<Item = DroppedRow>, level: u32) {
        self.dropped.number += 1;
        let number = self.dropped.number;
        for row in rows {
            self.dropped.last.insert(row.row, Drop { number, level, row });
        }
    }

    /// The present number, and the rows whose results were dropped below `level` since `number`,
    /// which is 0 at first.
    pub fn dropped_since(&self, number: u64, level: u32) -> (u64, Vec<DroppedRow>) {
        if self.dropped.number == number {
            return (number, Vec::new());
        }
        let last = self.dropped.last.values();
        let since = last.filter(|last| last.number > number && last.level < level);
        (self.dropped.number, since.map(|last| last.row).collect())
    }

    /// The rows whose episode is over, as far as results were received.
    pub fn rows_over(&self) -> Vec<usize> {
        self.rows_where(|phase| phase == PhaseTag::Over as u8)
    }

    /// The rows that were ever reset, as far as results were received; all of them unless
    /// [`Policy::refuse_unstarted`](super::Policy::refuse_unstarted) is set.
    pub fn rows_begun(&self) -> Vec<usize> {
        self.rows_where(|phase| phase != PhaseTag::Unstarted as u8)
    }

    fn rows_where(&self, is_in: impl Fn(u8) -> bool) -> Vec<usize> {
        (0..self.phases.len()).filter(|&row| is_in(self.phases[row])).collect()
    }
}
