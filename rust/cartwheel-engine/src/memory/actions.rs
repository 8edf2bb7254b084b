//! The actions of one batch, which the pool passes to the workers.
//!
//! Every leaf of the action space has an array `[rows, *shape]` here. Its dtype is not fixed: an
//! environment receives the dtype that the caller passed, as in Gymnasium. So a tag beside each
//! leaf names the dtype of the bytes.
#![expect(unsafe_code, reason = "copies into and out of mapped memory, see the invariants")]

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::mapping::Mapping;
use crate::space::{ActionTag, Extent, LEAF_ALIGN, Leaf};
use crate::wake::Op;

/// Bytes kept for one element, whatever its dtype.
const ELEMENT_BYTES: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Place {
    /// Offset of the tag; the elements follow at the next [`LEAF_ALIGN`].
    offset: usize,
    row_len: usize,
}

/// The action mapping.
#[derive(Debug, Clone)]
pub(crate) struct ActionArea {
    mapping: Arc<Mapping>,
    places: Arc<[Place]>,
    rows: usize,
}

/// Offsets of `rows` rows of every leaf, and the bytes of all of them; `None` when they do not fit
/// into the address space.
fn places(leaves: &[Leaf], rows: usize) -> Option<(Vec<Place>, usize)> {
    let mut extent = Extent::default();
    let mut places = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        let row_len = leaf.checked_row_len()?;
        let offset = extent.take(1, LEAF_ALIGN, LEAF_ALIGN)?;
        extent.take(rows, row_len.checked_mul(ELEMENT_BYTES)?, LEAF_ALIGN)?;
        places.push(Place { offset, row_len });
    }
    Some((places, extent.bytes(LEAF_ALIGN)))
}

impl ActionArea {
    /// Bytes of the mapping; `None` when they do not fit into the address space.
    pub(crate) fn bytes(leaves: &[Leaf], rows: usize) -> Option<usize> {
        places(leaves, rows).map(|(_, bytes)| bytes)
    }

    pub(crate) fn new(mapping: Arc<Mapping>, leaves: &[Leaf], rows: usize) -> Self {
        let (places, bytes) = places(leaves, rows).expect("the plan was checked");
        assert!(mapping.len() >= bytes, "actions fit their mapping");
        Self { mapping, places: places.into(), rows }
    }

    /// The rows of a batch.
    pub(crate) fn all_rows(&self) -> Range<usize> {
        0..self.rows
    }

    /// Stores one leaf of `rows`: `fill` writes the elements, row-major, over those that are there.
    /// Returns what `fill` returns.
    ///
    /// # Safety
    ///
    /// No task is pending and the rows are not in flight; and no row is being stepped if the leaf
    /// has another tag now (invariant 5).
    ///
    /// # Panics
    ///
    /// When the rows are not in the batch.
    pub(crate) unsafe fn store<T>(
        &self,
        leaf: usize,
        tag: ActionTag,
        rows: Range<usize>,
        fill: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        // SAFETY: the caller is the one that writes tags.
        if unsafe { self.tag(leaf) } != Some(tag) {
            // SAFETY: the caller changes a tag only while no step is in flight (invariant 5).
            unsafe { self.mapping.write(self.places[leaf].offset, &[tag.to_byte()]) }
        }
        let count = rows.len();
        let (first, row_len) = self.rows(leaf, tag.size(), rows);
        let bytes = count * row_len * tag.size();
        // SAFETY: the range is inside the mapping, whose bytes are initialised (invariant 7). No
        // task is pending and these rows are not in flight, so no other thread or process accesses
        // them (invariant 5).
        fill(unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), bytes) })
    }

    /// Tag of one leaf; `None` when it was never stored.
    ///
    /// # Safety
    ///
    /// The caller is the pool, or has rows that are being stepped (invariant 5).
    pub(crate) unsafe fn tag(&self, leaf: usize) -> Option<ActionTag> {
        let mut tag = [0];
        // SAFETY: the caller is the pool, which alone writes the tag, or has a step in flight,
        // during which the pool does not write it (invariant 5).
        unsafe { self.mapping.read(self.places[leaf].offset, &mut tag) }
        ActionTag::from_byte(tag[0])
    }

    /// Address of the elements of `rows` of one leaf, `size` bytes each; and the number of elements
    /// of a row.
    ///
    /// # Panics
    ///
    /// When the rows are not in the batch.
    fn rows(&self, leaf: usize, size: usize, rows: Range<usize>) -> (NonNull<u8>, usize) {
        let place = self.places[leaf];
        let row_bytes = place.row_len * size;
        assert!(rows.end <= self.rows, "{rows:?} are rows of the batch");
        let start = place.offset + LEAF_ALIGN;
        let range = start + rows.start * row_bytes..start + rows.end * row_bytes;
        (self.mapping.at(range), place.row_len)
    }
}

/// The actions of one worker's rows, valid while they are being stepped; rows that are being reset
/// have none.
///
/// The offset of a row's elements depends on their dtype. So elements are read only as the tag
/// says: an offset for another dtype would be in other rows, which the pool may be writing.
#[derive(Debug, Clone)]
pub struct ActionRows<'a> {
    /// `None` when nothing is stepped: the tags may change then.
    area: Option<&'a ActionArea>,
    rows: Range<usize>,
}

impl<'a> ActionRows<'a> {
    /// The actions of `rows`, which are being stepped if `op` is a step.
    ///
    /// # Safety
    ///
    /// As long as the result or a clone of it exists, no actions of these rows are stored, nor a
    /// tag: the caller took a task or the rows from a queue, and has not acknowledged the task nor
    /// counted the rows (invariant 5).
    pub(crate) unsafe fn new(area: &'a ActionArea, rows: Range<usize>, op: Op) -> Self {
        Self { area: (op == Op::Step).then_some(area), rows }
    }

    /// The rows, counted from the start of the environments.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Tag of one leaf; `None` when it was never stored, or the rows are not stepped.
    pub fn tag(&self, leaf: usize) -> Option<ActionTag> {
        // SAFETY: the rows are being stepped, as the maker of this value promised (invariant 5).
        unsafe { self.area?.tag(leaf) }
    }

    /// Copies the elements of `rows` of one leaf, whose tag is `tag`, to `into`.
    ///
    /// # Panics
    ///
    /// When the tag of the leaf is not `tag`, `into` is not as long as those rows, or the rows are
    /// not among these.
    pub fn load(&self, leaf: usize, tag: ActionTag, rows: Range<usize>, into: &mut [u8]) {
        assert_eq!(self.tag(leaf), Some(tag), "tag of leaf {leaf}");
        let (first, row_len) = self.place(leaf, tag.size(), rows.clone());
        assert_eq!(into.len(), rows.len() * row_len * tag.size(), "room for exactly these rows");
        // SAFETY: the elements are inside the mapping and at rest while their rows are stepped
        // (invariant 5); `into` is a live Rust slice and so cannot overlap them.
        unsafe { first.as_ptr().copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) }
    }

    /// Address of the elements of `rows` of one leaf, `size` bytes each as their tag says; and the
    /// number of elements of a row.
    ///
    /// # Panics
    ///
    /// When the rows are not among these, or are not stepped.
    pub(super) fn place(
        &self,
        leaf: usize,
        size: usize,
        rows: Range<usize>,
    ) -> (NonNull<u8>, usize) {
        let own = &self.rows;
        assert!(own.start <= rows.start && rows.end <= own.end, "{rows:?} are not among {own:?}");
        self.area.expect("only stored actions have a tag").rows(leaf, size, rows)
    }
}
