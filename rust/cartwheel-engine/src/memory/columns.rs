//! The rows of a task as columns: the address of each leaf, and slices of rewards, flags and phases.
//!
//! # Invariants
//!
//! These rest on the invariants of [`super`], cited as "memory 4" and so on.
//!
//! 1. **One hold.** [`LeafColumns`] and [`Outcomes`] borrow their [`SlabRows`] or [`Scratch`](super::Scratch)
//!    mutably, and [`ActionColumns`] borrows the actions of a task or of rows taken from a queue; so
//!    all addresses are out of use before the task is acknowledged or the rows' places are counted
//!    as filled (memory 4 and 5).
//! 2. **Apart.** Leaves, rewards, flags and phases are disjoint ranges, and no range contains rows of
//!    another shard.
//! 3. **Form.** An address points at [`LeafColumns::rows`] rows of its leaf. Leaves start at multiples
//!    of [`LEAF_ALIGN`](crate::space::LEAF_ALIGN), in a rollout with an offset of whole batches, and rows are whole elements, so
//!    every element is aligned; every bit pattern is a value (memory 7).
//! 4. **Kept addresses.** [`Addresses`] keeps the room of a list from task to task. The addresses in
//!    it are used only through the columns that filled it.
#![expect(unsafe_code, reason = "slices of mapped memory, see the invariants")]

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

use super::actions::ActionRows;
use super::slab::SlabRows;
use crate::autoreset::Outcomes;
use crate::error::Error;
use crate::space::{ActionTag, BatchLayout, DType, Leaf};

/// Room for the addresses of leaves and for the dtypes of actions, so that no task allocates.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    leaves: Vec<*mut c_void>,
    dtypes: Vec<u32>,
}

// SAFETY: addresses are read only through the columns of one task (invariant 4).
unsafe impl Send for Addresses {}

/// The observations of a task: one array for each leaf.
#[derive(Debug)]
pub(crate) struct LeafColumns<'a> {
    addresses: &'a [*mut c_void],
    layout: BatchLayout<'a>,
    rows: usize,
    /// One byte for each row that says whether its episode ended; `None` without final observations.
    ended: Option<&'a mut [u8]>,
    hold: PhantomData<&'a mut u8>,
}

impl SlabRows<'_> {
    /// The leaves of the rows, and their outcomes.
    #[expect(
        clippy::inline_always,
        reason = "a move of all addresses waits for the stores before it"
    )]
    #[inline(always)]
    pub(crate) fn columns<'a>(
        &'a mut self,
        room: &'a mut Addresses,
    ) -> (LeafColumns<'a>, Outcomes<'a>) {
        let (start, layout) = (self.start, self.layout());
        let first = self.mapping().at(start..start + layout.bytes());
        // SAFETY: the slab is inside the mapping, as was just checked; only this shard accesses its
        // rows while the slab is filling, and the result borrows `self` (invariants 1 and 2).
        unsafe { columns(first, layout, self.rows(), room) }
    }
}

/// The columns of `rows` of memory with this layout, which begins at `first`.
///
/// # Safety
///
/// The memory has as many bytes as the layout. For `'a`, the ranges of these rows are accessed
/// through the result alone (invariants 1 and 2).
#[expect(clippy::inline_always, reason = "see `SlabRows::columns`")]
#[inline(always)]
pub(super) unsafe fn columns<'a>(
    first: NonNull<u8>,
    layout: BatchLayout<'a>,
    rows: Range<usize>,
    room: &'a mut Addresses,
) -> (LeafColumns<'a>, Outcomes<'a>) {
    assert!(rows.start <= rows.end && rows.end <= layout.rows(), "{rows:?} are rows of the layout");
    let count = rows.len();
    let place = |offset: usize, row_bytes: usize| {
        // SAFETY: the rows are rows of the layout, which the memory holds.
        unsafe { first.add(offset + rows.start * row_bytes) }.as_ptr()
    };
    let bytes = |offset: usize| {
        // SAFETY: one byte for each row, in ranges that are disjoint (invariant 2).
        unsafe { std::slice::from_raw_parts_mut(place(offset, 1), count) }
    };
    let rewards = place(layout.rewards_offset(), layout.reward_bytes()).cast();
    let outcomes = Outcomes {
        // SAFETY: at least one aligned `f64` for each row (invariants 2 and 3). Native rows have one.
        rewards: unsafe { std::slice::from_raw_parts_mut(rewards, count) },
        terminations: bytes(layout.terminations_offset()),
        truncations: bytes(layout.truncations_offset()),
        phases: bytes(layout.phases_offset()),
    };
    let leaves = 0..layout.num_arrays();
    let ended = layout.ended_offset().map(bytes);
    let address = |leaf| place(layout.leaf_offset(leaf), layout.row_bytes(leaf)).cast();
    room.leaves.clear();
    room.leaves.extend(leaves.map(address));
    (
        LeafColumns { addresses: &room.leaves, layout, rows: count, ended, hold: PhantomData },
        outcomes,
    )
}

impl LeafColumns<'_> {
    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The address of the first row of each leaf; those of final observations are the last ones.
    pub(crate) fn addresses(&self) -> &[*mut c_void] {
        self.addresses
    }

    /// The leaves.
    pub(crate) fn layout(&self) -> BatchLayout<'_> {
        self.layout
    }

    /// Address and number of bytes of `rows` of a leaf.
    fn place(&self, leaf: usize, rows: Range<usize>) -> (*mut u8, usize) {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "{rows:?} are rows of the task");
        let bytes = self.layout.row_bytes(leaf);
        // SAFETY: the offset is inside the array of this leaf (invariant 3).
        let first = unsafe { self.addresses[leaf].cast::<u8>().add(rows.start * bytes) };
        (first, rows.len() * bytes)
    }

    /// The bytes of `rows` of a leaf.
    ///
    /// # Panics
    ///
    /// When these are not rows of the task, or there is no such leaf.
    pub(crate) fn bytes(&self, leaf: usize, rows: Range<usize>) -> &[u8] {
        let (first, bytes) = self.place(leaf, rows);
        // SAFETY: inside the array of this leaf, which nothing else accesses (invariants 1 and 3).
        unsafe { std::slice::from_raw_parts(first, bytes) }
    }

    /// The same, for writing.
    ///
    /// # Panics
    ///
    /// As [`LeafColumns::bytes`].
    pub(crate) fn bytes_mut(&mut self, leaf: usize, rows: Range<usize>) -> &mut [u8] {
        let (first, bytes) = self.place(leaf, rows);
        // SAFETY: inside the array of this leaf, which nothing else accesses (invariants 1 and 3), since
        // `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(first, bytes) }
    }

    /// Whether there are final observations, see [`BatchLayout::has_finals`].
    pub(crate) fn has_finals(&self) -> bool {
        self.ended.is_some()
    }

    /// Copies the observations of all rows to their final observations, where there are any; so far
    /// no episode ended.
    pub(crate) fn keep_finals(&mut self) {
        let Some(ended) = &mut self.ended else { return };
        ended.fill(0);
        let (count, rows) = (self.layout.num_leaves(), self.rows);
        for leaf in 0..count {
            let ((from, bytes), (to, _)) =
                (self.place(leaf, 0..rows), self.place(count + leaf, 0..rows));
            // SAFETY: the arrays of two leaves, which nothing else accesses and which are disjoint
            // (invariants 1, 2 and 3).
            unsafe { from.copy_to_nonoverlapping(to, bytes) }
        }
    }

    /// Marks a row whose episode ended, where there are final observations.
    pub(crate) fn mark_ended(&mut self, row: usize) {
        if let Some(ended) = &mut self.ended {
            ended[row] = 1;
        }
    }

    /// Writes zeros to the observation of a row.
    pub(crate) fn zero(&mut self, row: usize) {
        for leaf in 0..self.layout.num_leaves() {
            self.bytes_mut(leaf, row..row + 1).fill(0);
        }
    }

    /// Copies `count` rows from row `from` of other columns with the same leaves to row `to`, with
    /// their final observations if both have some.
    pub(crate) fn copy(&mut self, to: usize, other: &LeafColumns<'_>, from: usize, count: usize) {
        for leaf in 0..self.addresses.len().min(other.addresses.len()) {
            let bytes = other.bytes(leaf, from..from + count);
            self.bytes_mut(leaf, to..to + count).copy_from_slice(bytes);
        }
        if let (Some(ended), Some(flags)) = (&mut self.ended, &other.ended) {
            ended[to..to + count].copy_from_slice(&flags[from..from + count]);
        }
    }
}

/// The actions of a task: one array for each leaf, or none where no row steps.
#[derive(Debug)]
pub(crate) struct ActionColumns<'a> {
    addresses: &'a [*mut c_void],
    /// The dtype of each leaf, as `cartwheel_abi` counts them.
    dtypes: &'a [u32],
    /// `None` where no row steps.
    rows: Option<usize>,
    hold: PhantomData<&'a u8>,
}

impl ActionRows<'_> {
    /// The actions of the rows, as the action space has them. `floats` says of which leaves
    /// `float32` and `float64` elements are taken alike; leaves behind its end are none of them.
    ///
    /// # Errors
    ///
    /// [`Error::WrongActionDType`] when the caller stored another dtype. Integers of the calling
    /// language count as `int64`.
    pub(crate) fn columns<'r>(
        &'r self,
        leaves: &[Leaf],
        floats: &[bool],
        room: &'r mut Addresses,
    ) -> Result<ActionColumns<'r>, Error> {
        room.leaves.clear();
        room.dtypes.clear();
        for (leaf, Leaf { dtype: expected, .. }) in leaves.iter().enumerate() {
            let takes = |dtype| {
                let is_float = matches!(dtype, DType::F32 | DType::F64);
                dtype == *expected || (is_float && floats.get(leaf) == Some(&true))
            };
            let (tag, dtype) = match self.tag(leaf) {
                Some(tag @ ActionTag::Array(got)) if takes(got) => (tag, got),
                Some(tag @ ActionTag::Integers) if takes(DType::I64) => (tag, DType::I64),
                got => return Err(Error::WrongActionDType { leaf, expected: *expected, got }),
            };
            room.leaves.push(self.fetch(leaf, tag).as_ptr().cast());
            room.dtypes.push(dtype.tag().into());
        }
        let (addresses, dtypes) = (&room.leaves, &room.dtypes);
        Ok(ActionColumns { addresses, dtypes, rows: Some(self.rows().len()), hold: PhantomData })
    }
}

impl ActionColumns<'_> {
    /// No actions, of rows that do not step.
    pub(crate) const NONE: Self =
        Self { addresses: &[], dtypes: &[], rows: None, hold: PhantomData };

    /// The address of the first row of each leaf; null where no row steps.
    pub(crate) fn addresses(&self) -> *const *const c_void {
        self.rows.map_or(std::ptr::null(), |_| self.addresses.as_ptr().cast())
    }

    /// The dtype of each leaf; null where no row steps.
    pub(crate) fn dtypes(&self) -> *const u32 {
        self.rows.map_or(std::ptr::null(), |_| self.dtypes.as_ptr())
    }

    /// Number of rows that have actions; `None` where no row steps.
    pub(crate) fn rows(&self) -> Option<usize> {
        self.rows
    }
}
