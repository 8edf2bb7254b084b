//! The actions of one batch, on their way from the pool to the workers.
//!
//! Every leaf of the action space has an array `[rows, *shape]` here. Its dtype is not fixed: an
//! environment receives the very dtype that the caller passed, as it does from Gymnasium, so each
//! batch says in a tag what the bytes are.
#![expect(unsafe_code, reason = "copies into and out of mapped memory, see the invariants")]

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::Mapping;
use crate::space::{DType, LEAF_ALIGN, Leaf};

/// Bytes kept for one element, whatever its dtype.
const ELEMENT_BYTES: usize = 16;

/// What the bytes of an action leaf are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionTag {
    /// Array elements of this dtype.
    Array(DType),
    /// `int64` values that were integers of the calling language, not array elements.
    Integers,
}

impl ActionTag {
    const INTEGERS: u8 = u8::MAX;

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::Array(dtype) => dtype.size(),
            Self::Integers => size_of::<i64>(),
        }
    }

    fn to_byte(self) -> u8 {
        match self {
            Self::Array(dtype) => dtype.tag(),
            Self::Integers => Self::INTEGERS,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        if byte == Self::INTEGERS {
            return Some(Self::Integers);
        }
        DType::from_tag(byte).map(Self::Array)
    }
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// Where the tag lies; the elements follow on the next [`LEAF_ALIGN`].
    offset: usize,
    row_len: usize,
}

/// The action mapping; cheap to clone.
#[derive(Debug, Clone)]
pub struct ActionArea {
    mapping: Arc<Mapping>,
    places: Arc<[Place]>,
    rows: usize,
}

fn places(leaves: &[Leaf], rows: usize) -> (Vec<Place>, usize) {
    let mut end = 0;
    let places = leaves
        .iter()
        .map(|leaf| {
            let place = Place { offset: end, row_len: leaf.row_len() };
            end += LEAF_ALIGN + (place.row_len * ELEMENT_BYTES * rows).next_multiple_of(LEAF_ALIGN);
            place
        })
        .collect();
    (places, end)
}

impl ActionArea {
    pub(super) fn bytes(leaves: &[Leaf], rows: usize) -> usize {
        places(leaves, rows).1
    }

    pub(super) fn new(mapping: Arc<Mapping>, leaves: &[Leaf], rows: usize) -> Self {
        Self { mapping, places: places(leaves, rows).0.into(), rows }
    }

    /// Stores one leaf of a batch: `rows * row_len` elements, row-major.
    ///
    /// Only a pool calls this, and only while no task is pending; [`crate::pool::Pool::actions`]
    /// hands the area out under that condition. And a plain loop does, before anything is stepped.
    ///
    /// # Panics
    ///
    /// When the number of bytes is not that of a batch.
    pub(crate) fn store(&self, leaf: usize, tag: ActionTag, elements: &[u8]) {
        let place = self.places[leaf];
        assert_eq!(elements.len(), place.row_len * self.rows * tag.size(), "one action per row");
        // SAFETY: no task is pending, so no worker reads (invariant 5).
        unsafe { self.mapping.write(place.offset, &[tag.to_byte()]) }
        // SAFETY: as above.
        unsafe { self.mapping.write(place.offset + LEAF_ALIGN, elements) }
    }

    /// Stores one leaf of `count` rows from row `first` on.
    ///
    /// Only a pool calls this, for rows that are not in flight.
    ///
    /// # Panics
    ///
    /// When the number of bytes is not that of those rows.
    pub(crate) fn store_rows(&self, leaf: usize, tag: ActionTag, first: usize, elements: &[u8]) {
        let place = self.places[leaf];
        let row_bytes = place.row_len * tag.size();
        if self.tag(leaf) != Some(tag) {
            // SAFETY: the caller changes a tag only while nothing is in flight (invariant 5).
            unsafe { self.mapping.write(place.offset, &[tag.to_byte()]) }
        }
        let end = first * row_bytes + elements.len();
        assert!(end <= self.rows * row_bytes, "rows of the environments");
        // SAFETY: these rows are not in flight, so nobody reads their actions (invariant 5).
        unsafe { self.mapping.write(place.offset + LEAF_ALIGN + first * row_bytes, elements) }
    }

    /// Tag of one leaf; `None` when it was never stored.
    pub fn tag(&self, leaf: usize) -> Option<ActionTag> {
        let mut tag = [0];
        // SAFETY: called by a worker between taking and acknowledging a task, when the pool does
        // not write (invariant 5).
        unsafe { self.mapping.read(self.places[leaf].offset, &mut tag) }
        ActionTag::from_byte(tag[0])
    }

    /// Copies the elements of `rows` of one leaf, of the dtype that `tag` names, to `into`.
    ///
    /// # Panics
    ///
    /// When `into` is not as long as those rows, or the rows are not in the batch.
    pub fn load(&self, leaf: usize, tag: ActionTag, rows: Range<usize>, into: &mut [u8]) {
        let place = self.places[leaf];
        let row_bytes = place.row_len * tag.size();
        assert!(rows.end <= self.rows, "{rows:?} are rows of the batch");
        assert_eq!(into.len(), rows.len() * row_bytes, "room for exactly these rows");
        // SAFETY: as in `tag`.
        unsafe {
            self.mapping.read(place.offset + LEAF_ALIGN + rows.start * row_bytes, into);
        }
    }

    /// Address of the elements, of `size` bytes each, of `rows` of one leaf; and elements of a row.
    ///
    /// # Panics
    ///
    /// When the rows are not in the batch.
    pub(super) fn rows(
        &self,
        leaf: usize,
        size: usize,
        rows: Range<usize>,
    ) -> (NonNull<u8>, usize) {
        let place = self.places[leaf];
        let row_bytes = place.row_len * size;
        assert!(rows.end <= self.rows, "{rows:?} are rows of the batch");
        let start = place.offset + LEAF_ALIGN;
        let range = start + rows.start * row_bytes..start + rows.end * row_bytes;
        (self.mapping.at(range), place.row_len)
    }
}
