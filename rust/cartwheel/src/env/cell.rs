//! Cells: the Rust type of one row of a leaf, a number or an array of numbers.
//!
//! # Invariants
//!
//! 1. **Form.** A cell is [`Cell::LEN`] consecutive elements of [`Cell::DTYPE`] and nothing else,
//!    without padding; it has the alignment of its elements.
//! 2. **Values.** Where [`Cell::ANY_BITS`], every bit pattern is a value. The only other element is
//!    `bool`, whose bytes are 0 or 1.
//! 3. **Slots.** The bytes of a [`Slot`] are initialized: they lie in an array of the host, or of
//!    Rust. They may be any bytes, since users of the host write to its arrays. So a slot becomes a
//!    cell for writing only after a `bool` in it was set to `false`, and for reading only after its
//!    bytes were checked.
#![expect(unsafe_code, reason = "bytes are seen as cells and cells as bytes, see the invariants")]

use std::mem::MaybeUninit;

use cartwheel_core::DType;

use crate::sealed::Sealed;

/// A number, a `bool`, or an array of them of fixed size: `f32`, `[f32; 4]`, `[[[u8; 4]; 84]; 84]`.
///
/// # Safety
///
/// An implementation promises the invariants of this file. Sealed: there are no others.
pub unsafe trait Cell:
    Sealed + Copy + std::fmt::Debug + PartialEq + Send + Sync + 'static
{
    /// The number type.
    type Element: Cell;
    /// The dtype of the numbers.
    const DTYPE: DType;
    /// Number of numbers in a cell.
    const LEN: usize;
    /// Shape of the array; empty for a number.
    const SHAPE: Shape;
    /// Whether every bit pattern is a value.
    const ANY_BITS: bool;
}

/// Maximum number of dimensions of a cell.
const MAX_DIMENSIONS: usize = 8;

/// The shape of a cell, a constant.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    lengths: [usize; MAX_DIMENSIONS],
    dimensions: usize,
}

impl Shape {
    /// The shape of a number.
    const NUMBER: Self = Self { lengths: [0; MAX_DIMENSIONS], dimensions: 0 };

    /// The shape of an array of `length` cells of this shape.
    const fn times(self, length: usize) -> Self {
        assert!(self.dimensions < MAX_DIMENSIONS, "a cell has at most eight dimensions");
        let mut lengths = [0; MAX_DIMENSIONS];
        lengths[0] = length;
        let mut at = 0;
        while at < self.dimensions {
            lengths[at + 1] = self.lengths[at];
            at += 1;
        }
        Self { lengths, dimensions: self.dimensions + 1 }
    }

    /// The shape of `length` numbers.
    pub(super) const fn vector(length: usize) -> Self {
        Self::NUMBER.times(length)
    }

    /// The shape when every number is replaced by a vector of `length` numbers.
    pub(super) fn of_vectors(mut self, length: usize) -> Self {
        self.lengths[self.dimensions] = length; // fails beyond eight dimensions
        self.dimensions += 1;
        self
    }

    /// The lengths, outermost first.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths[..self.dimensions]
    }
}

macro_rules! elements {
    ($($type:ident $dtype:ident $any_bits:literal;)*) => {$(
        impl Sealed for $type {}

        // SAFETY: one primitive value (invariants 1 and 2).
        unsafe impl Cell for $type {
            type Element = Self;
            const DTYPE: DType = DType::$dtype;
            const LEN: usize = 1;
            const SHAPE: Shape = Shape::NUMBER;
            const ANY_BITS: bool = $any_bits;
        }
    )*};
}

elements! {
    i8 I8 true; i16 I16 true; i32 I32 true; i64 I64 true;
    u8 U8 true; u16 U16 true; u32 U32 true; u64 U64 true;
    f32 F32 true; f64 F64 true;
    bool Bool false;
}

impl<C: Cell, const N: usize> Sealed for [C; N] {}

// SAFETY: arrays have no padding between or around their elements (invariant 1).
unsafe impl<C: Cell, const N: usize> Cell for [C; N] {
    type Element = C::Element;
    const DTYPE: DType = C::DTYPE;
    const LEN: usize = C::LEN * N;
    const SHAPE: Shape = C::SHAPE.times(N);
    const ANY_BITS: bool = C::ANY_BITS;
}

pub(crate) fn bytes_of<C: Cell>(cells: &[C]) -> &[u8] {
    // SAFETY: a cell is elements without padding (invariant 1), so all its bytes are initialized;
    // the slice borrows them.
    unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), size_of_val(cells)) }
}

/// The place of a cell in an array that Rust does not own alone.
#[repr(transparent)]
#[derive(Debug)]
pub struct Slot<C>(MaybeUninit<C>);

impl<C: Cell> Slot<C> {
    /// The cell, for writing. What was there may be read, except that a `bool` is `false`.
    #[inline]
    pub fn get_mut(&mut self) -> &mut C {
        if !C::ANY_BITS {
            self.0 = MaybeUninit::zeroed();
        }
        // SAFETY: the bytes are initialized and are a value (invariants 2 and 3).
        unsafe { self.0.assume_init_mut() }
    }

    /// The cell, for reading.
    ///
    /// # Panics
    ///
    /// When a byte of a `bool` is neither 0 nor 1.
    #[inline]
    pub fn get(&self) -> &C {
        if !C::ANY_BITS {
            let first = self.0.as_ptr().cast::<u8>();
            // SAFETY: these are the bytes of this slot, initialized (invariant 3).
            check(unsafe { std::slice::from_raw_parts(first, size_of::<C>()) });
        }
        // SAFETY: the bytes are initialized and are a value (invariants 2 and 3).
        unsafe { self.0.assume_init_ref() }
    }

    /// The cells of several slots, for writing.
    #[inline]
    pub fn slice_mut(slots: &mut [Self]) -> &mut [C] {
        if !C::ANY_BITS {
            for slot in slots.iter_mut() {
                slot.0 = MaybeUninit::zeroed();
            }
        }
        // SAFETY: a slot has the layout of its cell, and is one (invariants 2 and 3).
        unsafe { &mut *(std::ptr::from_mut(slots) as *mut [C]) }
    }

    /// The cells of several slots, for reading.
    ///
    /// # Panics
    ///
    /// As [`Slot::get`].
    #[inline]
    pub fn slice(slots: &[Self]) -> &[C] {
        if !C::ANY_BITS {
            for slot in slots {
                slot.get();
            }
        }
        // SAFETY: a slot has the form of its cell (invariant 3), whose values were checked (invariant 2).
        unsafe { &*(std::ptr::from_ref(slots) as *const [C]) }
    }
}

/// Refuses bytes that are not truth values.
fn check(bytes: &[u8]) {
    if let Some(byte) = bytes.iter().find(|&&byte| byte > 1) {
        panic!("a truth value is the byte {byte}, expected 0 or 1");
    }
}
