//! Rows that were sent and carried out before they get their places in a batch.
//!
//! A row's place is claimed when its result is there, so a row that is slow holds up no batch:
//! neither its step nor a reset that follows it.

use std::ops::Range;

use crate::error::Error;
use crate::memory::{Addresses, Scratch, SlabRows};
use crate::space::Leaf;

/// The results of rows that were sent.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    memory: Option<Scratch>,
    /// The rows, counted from the first row of the pool.
    pub(super) rows: Range<usize>,
    room: Addresses,
}

impl Prepared {
    /// Memory for at least `rows` rows, with `finals` also for their final observations. The caller gives it back with [`Prepared::keep`].
    pub(super) fn take(
        &mut self,
        leaves: &[Leaf],
        rows: usize,
        finals: bool,
    ) -> Result<Scratch, Error> {
        let fitting = self.memory.take().filter(|memory| memory.rows() >= rows);
        let new = || Scratch::with_finals(leaves, rows.next_power_of_two(), finals);
        fitting.map_or_else(new, Ok)
    }

    /// Keeps the results of `rows`, which begin in the first row of `memory`.
    pub(super) fn keep(&mut self, memory: Scratch, rows: Range<usize>) {
        self.memory = Some(memory);
        self.rows = rows;
    }

    /// Copies the results of `rows` to their places; returns `false` where they were not prepared.
    pub(super) fn write(&mut self, rows: &Range<usize>, slab: &mut SlabRows<'_>) -> bool {
        let is_there = self.rows.start <= rows.start && rows.end <= self.rows.end;
        let Some(memory) = self.memory.as_mut().filter(|_| is_there) else { return false };
        let from = rows.start - self.rows.start;
        let (leaves, outcomes) = memory.columns(from..from + rows.len());
        let (mut places, into) = slab.columns(&mut self.room);
        places.copy(0, &leaves, 0, rows.len());
        into.rewards.copy_from_slice(outcomes.rewards);
        into.terminations.copy_from_slice(outcomes.terminations);
        into.truncations.copy_from_slice(outcomes.truncations);
        into.phases.copy_from_slice(outcomes.phases);
        true
    }
}
