//! Memory with the layout of a slab that belongs to one shard.
//!
//! # Invariants
//!
//! 1. The memory is owned by the value, as zeros at first, and its columns borrow the value mutably.
#![expect(unsafe_code, reason = "columns of plain memory, see the invariants")]

use std::ops::Range;
use std::ptr::NonNull;

use super::columns::{Addresses, LeafColumns, columns};
use crate::autoreset::Outcomes;
use crate::error::Error;
use crate::space::{LEAF_ALIGN, Layout, Leaf};

/// Memory for rows, with their outcomes.
#[derive(Debug)]
pub(crate) struct Scratch {
    layout: Layout,
    lines: Vec<Line>,
    room: Addresses,
}

#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
struct Line([u8; LEAF_ALIGN]);

impl Scratch {
    /// Memory of zeros for `rows` rows.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when they do not fit into the address space.
    pub(crate) fn new(leaves: &[Leaf], rows: usize) -> Result<Self, Error> {
        Self::with_finals(leaves, rows, false)
    }

    /// The same; with `finals` also for the final observations of rows.
    ///
    /// # Errors
    ///
    /// As [`Scratch::new`].
    pub(crate) fn with_finals(leaves: &[Leaf], rows: usize, finals: bool) -> Result<Self, Error> {
        let layout = Layout::with_finals(leaves, rows, finals, 1)?;
        let lines = vec![Line([0; LEAF_ALIGN]); layout.bytes() / LEAF_ALIGN];
        Ok(Self { layout, lines, room: Addresses::default() })
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.layout.rows()
    }

    /// The leaves of some of the rows, and their outcomes.
    ///
    /// # Panics
    ///
    /// When there are no such rows.
    pub(crate) fn columns(&mut self, rows: Range<usize>) -> (LeafColumns<'_>, Outcomes<'_>) {
        let Self { layout, lines, room } = self;
        let first = NonNull::from(lines.as_mut_slice()).cast::<u8>();
        // SAFETY: the memory was made for the layout, and the result borrows it mutably
        // (invariant 1).
        unsafe { columns(first, layout.batch(), rows, room) }
    }
}
