//! Observations that rows show although their state has changed.
//!
//! An observation is a function of the state, so a row that was not touched since can show its
//! observation again. Nothing has to be kept for that: neither a copy for each step nor the slab of
//! the batch before, which belongs to the caller by now and may have been written to. Only before
//! parameters are set, the rows show their observations into this memory; and a step by halves keeps those of
//! its first half there.

use crate::error::Error;
use crate::memory::{LeafColumns, Scratch};
use crate::space::Leaf;

/// The kept observations of a shard.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Rows that have one; empty if there is no such row.
    kept: Vec<bool>,
    memory: Option<Scratch>,
}

impl Shown {
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Memory for `rows` rows, and which of them have an observation there.
    pub(super) fn room(
        &mut self,
        leaves: &[Leaf],
        rows: usize,
    ) -> Result<(&mut Scratch, &mut [bool]), Error> {
        let memory = match self.memory.take() {
            Some(memory) => memory,
            None => Scratch::new(leaves, rows)?,
        };
        self.kept.resize(rows, false);
        Ok((self.memory.insert(memory), &mut self.kept))
    }

    /// Keeps the observations that neighboring rows show from row `first` on; the shard has `rows` rows.
    pub(super) fn keep(
        &mut self,
        leaves: &[Leaf],
        rows: usize,
        first: usize,
        shown: &LeafColumns<'_>,
    ) -> Result<(), Error> {
        let (memory, kept) = self.room(leaves, rows)?;
        let own = first..first + shown.rows();
        kept[own.clone()].fill(true);
        memory.columns(own).0.copy(0, shown, 0, shown.rows());
        Ok(())
    }

    /// The row is about to be shown in its present state.
    pub(super) fn forget(&mut self, row: usize) {
        if let Some(kept) = self.kept.get_mut(row) {
            *kept = false;
        }
    }

    /// Rows were forgotten; the next steps need not look if there is none left.
    pub(super) fn tidy(&mut self) {
        if !self.kept.contains(&true) {
            self.kept.clear();
        }
    }

    /// Writes the kept observation of a row to row `to` of `leaves`; returns whether there is one.
    pub(super) fn write(&mut self, row: usize, leaves: &mut LeafColumns<'_>, to: usize) -> bool {
        let Some(memory) = self.memory.as_mut().filter(|_| self.kept.get(row) == Some(&true))
        else {
            return false;
        };
        let (kept, _) = memory.columns(row..row + 1);
        leaves.copy(to, &kept, 0, 1);
        true
    }
}
