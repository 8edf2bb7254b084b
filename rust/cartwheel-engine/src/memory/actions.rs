//! The actions of one batch, which the pool passes to the workers.
//!
//! Every leaf of the action space has an array `[rows, *shape]` here. Its dtype is not fixed: an
//! environment receives the dtype that the caller passed, as in Gymnasium. So each row of a leaf has
//! a tag that names the dtype of its elements.
//!
//! The location of a row's elements depends on their dtype. Floats of different dtypes never
//! overlap, so rows in flight may have either; any other dtype is shared by all rows in flight.
#![expect(unsafe_code, reason = "copies into and out of mapped memory, see the invariants")]

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::mapping::Mapping;
use crate::space::{ActionTag, DType, Extent, LEAF_ALIGN, Leaf};
use crate::wake::Op;

/// Bytes of a line of the cache, or fewer: lines are longer on some processors.
const CACHE_LINE: usize = 64;

/// Bytes kept for one element, whatever its dtype.
const ELEMENT_BYTES: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Place {
    /// Offset of the tag that was stored last; the tags of the rows follow.
    tags: usize,
    /// Offset of the elements.
    elements: usize,
    /// Number of elements of a row.
    row_len: usize,
    /// Bytes from the `float64` elements of all rows to the `float32` ones, and from these to the
    /// `float16` ones.
    floats: [usize; 2],
}

impl Place {
    /// Offset of the elements with this tag.
    fn start(&self, tag: ActionTag) -> usize {
        let [singles, halves] = self.floats;
        self.elements
            + match tag {
                ActionTag::Array(DType::F32) => singles,
                ActionTag::Array(DType::F16) => singles + halves,
                _ => 0,
            }
    }
}

/// Whether elements with these two tags have places of their own.
fn are_apart(one: ActionTag, other: ActionTag) -> bool {
    let is_float = |tag| matches!(tag, ActionTag::Array(DType::F16 | DType::F32 | DType::F64));
    one != other && is_float(one) && is_float(other)
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
        let tags = extent.take(rows.checked_add(1)?, 1, LEAF_ALIGN)?;
        let elements = extent.take(rows, row_len.checked_mul(ELEMENT_BYTES)?, LEAF_ALIGN)?;
        let floats = [DType::F64, DType::F32]
            .map(|dtype| (rows * row_len * dtype.size()).next_multiple_of(LEAF_ALIGN));
        extent.take(2, LEAF_ALIGN, LEAF_ALIGN)?; // the floats round up twice
        places.push(Place { tags, elements, row_len, floats });
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

    /// The number of leaves.
    pub(crate) fn leaves(&self) -> usize {
        self.places.len()
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
    /// No task is pending and the rows are not in flight; and the tag [fits](Self::fits) if a row
    /// is being stepped (invariant 5).
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
        let (tags, rows_from) = (self.places[leaf].tags, self.places[leaf].tags + 1);
        assert!(rows.end <= self.rows, "{rows:?} are rows of the batch");
        // The tag that was stored last is just before that of the first row.
        let from = if rows.start == 0 { tags } else { rows_from + rows.start };
        // SAFETY: these rows are not in flight, and the pool alone accesses the tag that was stored
        // last (invariant 5).
        unsafe { self.mapping.fill(from..rows_from + rows.end, tag.to_byte()) }
        if from != tags {
            // SAFETY: tags of rows, of which none is in flight; the pool alone accesses the one that was
            // stored last (invariant 5).
            unsafe { self.mapping.fill(tags..rows_from, tag.to_byte()) }
        }
        let count = rows.len();
        let (first, row_len) = self.rows(leaf, tag, rows);
        let bytes = count * row_len * tag.size();
        // SAFETY: the range is inside the mapping, whose bytes are initialized (invariant 7). No
        // task is pending and these rows are not in flight, so no other thread or process accesses
        // them (invariant 5).
        fill(unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), bytes) })
    }

    /// Erases the tags of `rows` from leaf `leaf` on, so that no worker reads elements of theirs.
    ///
    /// # Safety
    ///
    /// No task is pending and the rows are not in flight (invariant 5).
    ///
    /// # Panics
    ///
    /// When the rows are not in the batch.
    pub(crate) unsafe fn erase(&self, leaf: usize, rows: Range<usize>) {
        assert!(rows.end <= self.rows, "{rows:?} are rows of the batch");
        for place in self.places.iter().skip(leaf) {
            let first = place.tags + 1;
            let tags = first + rows.start..first + rows.end;
            // SAFETY: these rows are not in flight (invariant 5).
            unsafe { self.mapping.fill(tags, ActionTag::NONE) }
        }
    }

    /// Whether actions with this tag can be stored while others are in flight: they have the tag
    /// that was stored last, or do not overlap those that may be in flight then. If none was ever
    /// stored, the rows in flight have no elements.
    ///
    /// # Safety
    ///
    /// The caller is the pool (invariant 5).
    pub(crate) unsafe fn fits(&self, leaf: usize, tag: ActionTag) -> bool {
        // SAFETY: the pool alone accesses the leaf's own tag (invariant 5).
        let last = unsafe { self.tag_at(self.places[leaf].tags) };
        last.is_none_or(|last| last == tag || are_apart(last, tag))
    }

    /// Tag of one row of a leaf; `None` when it was never stored, or was erased.
    ///
    /// # Safety
    ///
    /// The row is being stepped, and the caller does that (invariant 5).
    unsafe fn tag(&self, leaf: usize, row: usize) -> Option<ActionTag> {
        assert!(row < self.rows, "row {row} is in the batch");
        // SAFETY: the pool does not write it meanwhile, as the caller promises.
        unsafe { self.tag_at(self.places[leaf].tags + 1 + row) }
    }

    /// The tag at an offset.
    ///
    /// # Safety
    ///
    /// Nothing writes it during the call (invariant 5).
    unsafe fn tag_at(&self, offset: usize) -> Option<ActionTag> {
        let mut tag = [0];
        // SAFETY: as the caller promises.
        unsafe { self.mapping.read(offset, &mut tag) }
        ActionTag::from_byte(tag[0])
    }

    /// Address of the elements of `rows` of one leaf, which have this tag; and the number of elements
    /// of a row.
    ///
    /// # Panics
    ///
    /// When the rows are not in the batch.
    fn rows(&self, leaf: usize, tag: ActionTag, rows: Range<usize>) -> (NonNull<u8>, usize) {
        let place = self.places[leaf];
        let row_bytes = place.row_len * tag.size();
        assert!(rows.end <= self.rows, "{rows:?} are rows of the batch");
        let start = place.start(tag);
        let range = start + rows.start * row_bytes..start + rows.end * row_bytes;
        (self.mapping.at(range), place.row_len)
    }
}

/// The actions of one worker's rows, valid while they are being stepped; rows that are being reset
/// have none.
///
/// Rows that are stepped together were stored together, and so have one tag or none. Elements are
/// read only as it says: an offset for another dtype would be in other rows, which the pool may be
/// writing.
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

    /// Tag of one leaf; `None` when the rows were sent without actions, or are not stepped.
    pub fn tag(&self, leaf: usize) -> Option<ActionTag> {
        // SAFETY: the rows are being stepped, as the maker of this value promised (invariant 5).
        unsafe { self.area?.tag(leaf, self.rows.start) }
    }

    /// Copies the elements of `rows` of one leaf, whose tag is `tag`, to `into`.
    ///
    /// # Panics
    ///
    /// When the tag of the leaf is not `tag`, `into` is not as long as those rows, or the rows are
    /// not among these.
    pub fn load(&self, leaf: usize, tag: ActionTag, rows: Range<usize>, into: &mut [u8]) {
        assert_eq!(self.tag(leaf), Some(tag), "tag of leaf {leaf}");
        let (first, row_len) = self.place(leaf, tag, rows.clone());
        assert_eq!(into.len(), rows.len() * row_len * tag.size(), "room for exactly these rows");
        // SAFETY: the elements are inside the mapping and at rest while their rows are stepped
        // (invariant 5); `into` is a live Rust slice and so cannot overlap them.
        unsafe { first.as_ptr().copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) }
    }

    /// Address of the elements of one leaf, whose tag is `tag`. They are loaded into the cache of this
    /// core, since the pool wrote them on another one: an environment that computes between its reads
    /// would wait for each line; here the processor waits for all of them at once.
    ///
    /// # Panics
    ///
    /// As [`ActionRows::place`].
    pub(super) fn fetch(&self, leaf: usize, tag: ActionTag) -> NonNull<u8> {
        let (first, row_len) = self.place(leaf, tag, self.rows());
        let bytes = self.rows.len() * row_len * tag.size();
        if bytes > CACHE_LINE {
            for at in (0..bytes).step_by(CACHE_LINE) {
                // SAFETY: the byte is one of these elements, which are inside the mapping.
                let byte = unsafe { first.add(at) };
                // SAFETY: the elements are at rest while their rows are stepped (invariant 5). The read
                // is volatile so that it is not left out.
                unsafe { byte.read_volatile() };
            }
        }
        first
    }

    /// Address of the elements of `rows` of one leaf, which have this tag; and the number of elements
    /// of a row.
    ///
    /// # Panics
    ///
    /// When the rows are not among these, or are not stepped.
    pub(super) fn place(
        &self,
        leaf: usize,
        tag: ActionTag,
        rows: Range<usize>,
    ) -> (NonNull<u8>, usize) {
        let own = &self.rows;
        assert!(own.start <= rows.start && rows.end <= own.end, "{rows:?} are not among {own:?}");
        self.area.expect("only stored actions have a tag").rows(leaf, tag, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a batch in flight have these tags at the same time only if no element of one
    /// overlaps an element of another, whatever the rows.
    #[test]
    fn tags_are_apart_only_where_their_elements_do_not_overlap() {
        let tags: Vec<ActionTag> = (0..=u8::MAX).filter_map(ActionTag::from_byte).collect();
        assert!(tags.contains(&ActionTag::Integers) && tags.len() > 10, "every tag: {tags:?}");
        for (rows, row_len) in [(1, 1), (3, 1), (7, 5), (64, 17)] {
            let leaf = Leaf { dtype: DType::F32, shape: vec![row_len] };
            let (places, bytes) = places(&[leaf], rows).expect("it fits");
            let elements = |tag: ActionTag| {
                let start = places[0].start(tag);
                start..start + rows * row_len * tag.size()
            };
            for &one in &tags {
                assert!(elements(one).end <= bytes, "{one:?}");
                for &other in &tags {
                    let (a, b) = (elements(one), elements(other));
                    let overlap = a.start < b.end && b.start < a.end;
                    assert!(!(are_apart(one, other) && overlap), "{one:?} and {other:?}");
                }
            }
        }
    }

    #[test]
    fn every_tag_has_a_byte_and_new_memory_has_no_tag() {
        let arrays = DType::ALL.iter().map(|dtype| ActionTag::Array(*dtype));
        for tag in arrays.chain([ActionTag::Integers]) {
            assert_eq!(ActionTag::from_byte(tag.to_byte()), Some(tag));
        }
        assert_eq!(ActionTag::from_byte(ActionTag::NONE), None);
    }

    #[test]
    fn floats_of_different_dtypes_are_apart() {
        let floats = [DType::F16, DType::F32, DType::F64].map(ActionTag::Array);
        for one in floats {
            for other in floats {
                assert_eq!(are_apart(one, other), one != other, "{one:?} and {other:?}");
            }
        }
    }
}
