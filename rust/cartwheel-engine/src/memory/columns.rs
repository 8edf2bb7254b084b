//! The rows of a shard as typed slices, which workers read and write in place.
//!
//! # Invariants
//!
//! These rest on the invariants of [`super`], cited as "memory 4" and so on.
//!
//! 1. **One hold.** [`SlabColumns`] borrows its [`SlabRows`] mutably, and [`ActionColumns`] borrows
//!    the actions of a task or of rows taken from a queue; so all slices are gone before the task
//!    is acknowledged or the rows' places are counted as filled (memory 4 and 5). A plain loop owns
//!    its memory.
//! 2. **Apart.** Leaves are handed out in order, each once; leaves, rewards, flags and phases are
//!    disjoint ranges of the slab, and no slice contains rows of another shard.
//! 3. **Type.** A slice of cells is made only from a leaf of their dtype and length. Leaves start
//!    at multiples of [`LEAF_ALIGN`](crate::space::LEAF_ALIGN), in a rollout with an offset of
//!    whole batches, and rows are whole cells, so every cell is aligned; every bit pattern is a
//!    value (invariant 2 of [`super::cell`], memory 7).
#![expect(unsafe_code, reason = "slices of mapped memory, see the invariants")]

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

use super::actions::ActionRows;
use super::cell::Cell;
use super::mapping::Mapping;
use super::slab::SlabRows;
use crate::autoreset::Outcomes;
use crate::error::Error;
use crate::space::{ActionTag, DType, Layout};

/// The leaves of one shard's rows, taken in order, and after them the rows' [`Outcomes`].
#[derive(Debug)]
pub struct SlabColumns<'a> {
    mapping: &'a Mapping,
    layout: &'a Layout,
    start: usize,
    rows: Range<usize>,
    next: usize,
    hold: PhantomData<&'a mut ()>,
}

impl SlabRows<'_> {
    /// The rows as typed slices.
    pub fn columns(&mut self) -> SlabColumns<'_> {
        let (mapping, layout) = (self.mapping(), self.layout());
        SlabColumns {
            mapping,
            layout,
            start: self.start,
            rows: self.rows(),
            next: 0,
            hold: PhantomData,
        }
    }
}

impl<'a> SlabColumns<'a> {
    /// The rows, counted from the start of the batch.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// The next leaf, one cell for each row.
    ///
    /// # Panics
    ///
    /// When there is no further leaf, or its rows are not such cells.
    pub fn leaf<C: Cell>(&mut self) -> &'a mut [C] {
        let (place, row_len) = self.take(C::DTYPE);
        assert_eq!(row_len, C::LEN, "elements of a row");
        // SAFETY: the range of these rows is inside the mapping, accessed only here (invariants 1
        // and 2), and consists of such cells (invariant 3).
        unsafe { std::slice::from_raw_parts_mut(place.cast().as_ptr(), self.rows.len()) }
    }

    /// The elements of the next leaf, and the number of elements in a row.
    ///
    /// # Panics
    ///
    /// When there is no further leaf, or its dtype is another one.
    pub fn elements<C: Cell<Element = C>>(&mut self) -> (&'a mut [C], usize) {
        let (place, row_len) = self.take(C::DTYPE);
        let length = row_len * self.rows.len();
        // SAFETY: as in `leaf`.
        (unsafe { std::slice::from_raw_parts_mut(place.cast().as_ptr(), length) }, row_len)
    }

    /// Address of the next leaf's rows, and the number of elements in a row.
    fn take(&mut self, dtype: DType) -> (NonNull<u8>, usize) {
        let layout = self.layout;
        let leaf = layout.leaf(self.next);
        assert_eq!(leaf.dtype, dtype, "dtype of leaf {}", self.next);
        let place = self.range(layout.leaf_offset(self.next), leaf.row_bytes());
        self.next += 1;
        (place, leaf.row_len())
    }

    /// Address of these rows in the array that starts at `offset` of the slab.
    fn range(&self, offset: usize, row_bytes: usize) -> NonNull<u8> {
        let start = self.start + offset;
        let range = start + self.rows.start * row_bytes..start + self.rows.end * row_bytes;
        self.mapping.at(range)
    }

    /// Rewards, flags and phases of the rows.
    pub fn outcomes(self) -> Outcomes<'a> {
        let (layout, rows) = (self.layout, self.rows.len());
        let bytes = |offset| {
            let place = self.range(offset, 1);
            // SAFETY: as in `leaf`; the three arrays of bytes are disjoint (invariant 2).
            unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), rows) }
        };
        let rewards = self.range(layout.rewards_offset(), size_of::<f64>()).cast();
        Outcomes {
            // SAFETY: as in `leaf`, for the array of `f64` rewards.
            rewards: unsafe { std::slice::from_raw_parts_mut(rewards.as_ptr(), rows) },
            terminations: bytes(layout.terminations_offset()),
            truncations: bytes(layout.truncations_offset()),
            phases: bytes(layout.phases_offset()),
        }
    }
}

/// The actions of one shard's rows, leaf by leaf.
#[derive(Debug)]
pub struct ActionColumns<'a> {
    actions: ActionRows<'a>,
    next: usize,
}

impl<'a> ActionRows<'a> {
    /// The leaves in order, for reading in place.
    pub fn columns(&self) -> ActionColumns<'a> {
        ActionColumns { actions: self.clone(), next: 0 }
    }
}

impl<'a> ActionColumns<'a> {
    /// The next leaf, one cell for each row.
    ///
    /// # Errors
    ///
    /// [`Error::WrongActionDType`] when the caller stored another dtype. Integers of the calling
    /// language count as `int64`.
    ///
    /// # Panics
    ///
    /// When there is no further leaf, or its rows are not such cells.
    pub fn leaf<C: Cell>(&mut self) -> Result<&'a [C], Error> {
        let (place, row_len) = self.take(C::DTYPE)?;
        assert_eq!(row_len, C::LEN, "elements of a row");
        // SAFETY: the range of these rows is inside the mapping, not written while the task lasts
        // (invariant 1), and consists of such cells (invariant 3).
        Ok(unsafe { std::slice::from_raw_parts(place.cast().as_ptr(), self.actions.rows().len()) })
    }

    /// The elements of the next leaf, and the number of elements in a row.
    ///
    /// # Errors
    ///
    /// As [`ActionColumns::leaf`].
    ///
    /// # Panics
    ///
    /// When there is no further leaf.
    pub fn elements<C: Cell<Element = C>>(&mut self) -> Result<(&'a [C], usize), Error> {
        let (place, row_len) = self.take(C::DTYPE)?;
        let length = row_len * self.actions.rows().len();
        // SAFETY: as in `leaf`.
        Ok((unsafe { std::slice::from_raw_parts(place.cast().as_ptr(), length) }, row_len))
    }

    fn take(&mut self, dtype: DType) -> Result<(NonNull<u8>, usize), Error> {
        let leaf = self.next;
        self.next += 1;
        match self.actions.tag(leaf) {
            Some(ActionTag::Array(got)) if got == dtype => {}
            Some(ActionTag::Integers) if dtype == DType::I64 => {}
            got => return Err(Error::WrongActionDType { leaf, expected: dtype, got }),
        }
        Ok(self.actions.place(leaf, dtype.size(), self.actions.rows()))
    }
}
