//! The leaves of a space in memory: arrays `[rows, *shape]`, one for each.
//!
//! # Invariants
//!
//! 1. **Arrays.** The maker of [`Leaves`] or [`LeavesMut`] has one pointer for each leaf (or none
//!    for any, which means no rows), to an
//!    array of its element type and of `rows` times its shape, aligned to its elements, whose bytes
//!    are initialized, and which no other code changes (for [`LeavesMut`]: accesses) while the
//!    lifetime `'a` lasts.
//! 2. **Apart.** Leaves are handed out in order, each once, and their arrays are disjoint.
//! 3. **Type.** Slots are made only of a leaf of their dtype and length. The dtype of a leaf is that
//!    of its space; where the maker of the [`Leaves`] gave other dtypes, it is that one for a leaf
//!    which is taken as [`Leaves::floats`], and the same for any other.
#![expect(unsafe_code, reason = "slices of arrays that the host owns, see the invariants")]

use std::ffi::c_void;
use std::marker::PhantomData;

use cartwheel_core::{DType, Leaf};

use super::cell::{Cell, Slot};

/// The leaves of rows, taken in order, for writing.
#[derive(Debug)]
pub struct LeavesMut<'p, 'a> {
    pointers: &'p [*mut c_void],
    kinds: &'p [Leaf],
    rows: usize,
    arrays: PhantomData<&'a mut ()>,
}

/// The leaves of rows, taken in order, for reading.
#[derive(Debug)]
pub struct Leaves<'p, 'a> {
    pointers: &'p [*const c_void],
    kinds: &'p [Leaf],
    /// The dtypes that elements have, as `cartwheel_abi` counts them; empty for those of `kinds`.
    dtypes: &'p [u32],
    rows: usize,
    arrays: PhantomData<&'a ()>,
}

impl<'p, 'a> LeavesMut<'p, 'a> {
    /// The arrays at `pointers`, one for each of `kinds`.
    ///
    /// # Safety
    ///
    /// Invariant 1.
    pub(crate) unsafe fn new(pointers: &'p [*mut c_void], kinds: &'p [Leaf], rows: usize) -> Self {
        Self { pointers, kinds, rows, arrays: PhantomData }
    }

    /// The leaves that were not taken.
    pub fn kinds(&self) -> &'p [Leaf] {
        self.kinds
    }

    /// The next leaf, one cell for each row.
    ///
    /// # Panics
    ///
    /// When there is no further leaf, or its rows are not such cells.
    pub fn cells<C: Cell>(&mut self) -> &'a mut [Slot<C>] {
        let (first, row_len) = take(&mut self.pointers, &mut self.kinds, C::DTYPE);
        assert_eq!(row_len, C::LEN, "elements of a row");
        let Some(first) = first else { return &mut [] };
        // SAFETY: the array consists of such cells (invariants 1 and 3), and this is the only slice
        // of it (invariant 2).
        unsafe { std::slice::from_raw_parts_mut(first.cast(), self.rows) }
    }

    /// The elements of the next leaf, and the number of elements in a row.
    ///
    /// # Panics
    ///
    /// When there is no further leaf, or its dtype is another one.
    pub fn elements<T: Cell<Element = T>>(&mut self) -> (&'a mut [Slot<T>], usize) {
        let (first, row_len) = take(&mut self.pointers, &mut self.kinds, T::DTYPE);
        let Some(first) = first else { return (&mut [], row_len) };
        // SAFETY: the array consists of such elements (invariants 1 and 3), and this is the only slice
        // of it (invariant 2).
        (unsafe { std::slice::from_raw_parts_mut(first.cast(), self.rows * row_len) }, row_len)
    }
}

impl<'p, 'a> Leaves<'p, 'a> {
    /// The arrays at `pointers`, one for each of `kinds`.
    ///
    /// # Safety
    ///
    /// Invariant 1.
    pub(crate) unsafe fn new(
        pointers: &'p [*const c_void],
        kinds: &'p [Leaf],
        rows: usize,
    ) -> Self {
        Self { pointers, kinds, dtypes: &[], rows, arrays: PhantomData }
    }

    /// The same arrays, whose elements have these dtypes; an empty list for those of the spaces.
    ///
    /// # Safety
    ///
    /// Invariant 3.
    pub(crate) unsafe fn with_dtypes(self, dtypes: &'p [u32]) -> Self {
        Self { dtypes, ..self }
    }

    /// The leaves that were not taken.
    pub fn kinds(&self) -> &'p [Leaf] {
        self.kinds
    }

    /// The dtype that the elements of the next leaf have.
    fn next_dtype(&mut self, of_space: DType) -> DType {
        let given = self.dtypes.split_off_first().map(|&given| u8::try_from(given));
        match given {
            None => of_space,
            Some(given) => given.ok().and_then(DType::from_tag).expect("a dtype of the ABI"),
        }
    }

    /// The next leaf, one cell for each row.
    ///
    /// # Panics
    ///
    /// When there is no further leaf, or its rows are not such cells.
    pub fn cells<C: Cell>(&mut self) -> &'a [Slot<C>] {
        assert_eq!(self.next_dtype(C::DTYPE), C::DTYPE, "dtype of a leaf");
        let (first, row_len) = take(&mut self.pointers, &mut self.kinds, C::DTYPE);
        assert_eq!(row_len, C::LEN, "elements of a row");
        let Some(first) = first else { return &[] };
        // SAFETY: the array consists of such cells (invariants 1 and 3), and does not change.
        unsafe { std::slice::from_raw_parts(first.cast(), self.rows) }
    }

    /// The elements of the next leaf, and the number of elements in a row.
    ///
    /// # Panics
    ///
    /// When there is no further leaf, or its dtype is another one.
    pub fn elements<T: Cell<Element = T>>(&mut self) -> (&'a [Slot<T>], usize) {
        assert_eq!(self.next_dtype(T::DTYPE), T::DTYPE, "dtype of a leaf");
        let (first, row_len) = take(&mut self.pointers, &mut self.kinds, T::DTYPE);
        let Some(first) = first else { return (&[], row_len) };
        // SAFETY: the array consists of such elements (invariants 1 and 3), and does not change.
        (unsafe { std::slice::from_raw_parts(first.cast(), self.rows * row_len) }, row_len)
    }

    /// The elements of the next leaf, a `float32` one whose elements may be `float64`, and the
    /// number of elements in a row.
    ///
    /// # Panics
    ///
    /// When there is no further leaf, or its dtype is another one.
    pub fn floats(&mut self) -> FloatSlots<'a> {
        let dtype = self.next_dtype(DType::F32);
        let (first, row_len) = take(&mut self.pointers, &mut self.kinds, DType::F32);
        let len = self.rows * row_len;
        match (first, dtype) {
            (None, _) => FloatSlots::F32(&[], row_len),
            (Some(first), DType::F32) => {
                // SAFETY: the array consists of such elements (invariants 1 and 3), and does not
                // change.
                let slots = unsafe { std::slice::from_raw_parts(first.cast(), len) };
                FloatSlots::F32(slots, row_len)
            }
            (Some(first), DType::F64) => {
                // SAFETY: the array consists of `float64`, as its dtype says (invariants 1 and 3), and
                // does not change.
                let slots = unsafe { std::slice::from_raw_parts(first.cast(), len) };
                FloatSlots::F64(slots, row_len)
            }
            (Some(_), other) => panic!("a leaf of floats has the dtype {}", other.name()),
        }
    }
}

/// The elements of a leaf of either dtype, and the number of elements in a row.
#[derive(Debug, Clone, Copy)]
pub enum FloatSlots<'a> {
    /// `float32` elements.
    F32(&'a [Slot<f32>], usize),
    /// `float64` elements.
    F64(&'a [Slot<f64>], usize),
}

/// The array of the next leaf, which has elements of `dtype`, and the number of elements in a row.
/// There is none if there are no arrays, because there are no rows.
fn take<P: Copy>(pointers: &mut &[P], leaves: &mut &[Leaf], dtype: DType) -> (Option<P>, usize) {
    let leaf = leaves.split_off_first().expect("a view takes as many leaves as the space has");
    assert_eq!(leaf.dtype, dtype, "dtype of a leaf");
    (pointers.split_off_first().copied(), leaf.row_len())
}

/// Arrays that Rust owns, for the leaves of some rows: zeros at first.
#[derive(Debug)]
pub struct Arrays {
    leaves: Vec<Leaf>,
    rows: usize,
    /// Words of the largest alignment that an element has.
    words: Vec<Vec<u64>>,
}

impl Arrays {
    /// Arrays for `rows` rows of these leaves.
    pub fn new(leaves: Vec<Leaf>, rows: usize) -> Self {
        let words = |leaf: &Leaf| vec![0; (rows * leaf.row_bytes()).div_ceil(8)];
        Self { words: leaves.iter().map(words).collect(), leaves, rows }
    }

    /// Number of leaves.
    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }

    /// The bytes of one leaf.
    ///
    /// # Panics
    ///
    /// When there is no such leaf.
    pub fn bytes(&self, leaf: usize) -> &[u8] {
        let len = self.rows * self.leaves[leaf].row_bytes();
        &super::cell::bytes_of(&self.words[leaf])[..len]
    }

    /// Stores the bytes of one leaf.
    ///
    /// # Panics
    ///
    /// When there is no such leaf, or `bytes` are not as long as its rows.
    pub fn store(&mut self, leaf: usize, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.bytes(leaf).len(), "bytes of the leaf");
        for (word, bytes) in self.words[leaf].iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
    }

    /// Passes the arrays to `take`, for writing: it takes the rows of a view.
    pub fn rows_mut<'a, R>(&'a mut self, take: impl FnOnce(&mut LeavesMut<'_, 'a>) -> R) -> R {
        let pointers: Vec<_> =
            self.words.iter_mut().map(|words| words.as_mut_ptr().cast()).collect();
        // SAFETY: the arrays are as the leaves say, initialized, and borrowed mutably (invariant 1).
        take(&mut unsafe { LeavesMut::new(&pointers, &self.leaves, self.rows) })
    }

    /// Passes the arrays to `take`, for reading: it takes the rows of a view.
    pub fn rows<'a, R>(&'a self, take: impl FnOnce(&mut Leaves<'_, 'a>) -> R) -> R {
        let pointers: Vec<_> = self.words.iter().map(|words| words.as_ptr().cast()).collect();
        // SAFETY: the arrays are as the leaves say, initialized, and borrowed (invariant 1).
        take(&mut unsafe { Leaves::new(&pointers, &self.leaves, self.rows) })
    }
}
