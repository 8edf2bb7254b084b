//! Cells: the Rust type of one row of a leaf, a number or an array of numbers.
//!
//! # Invariants
//!
//! 1. **Form.** A cell is [`Cell::LEN`] consecutive elements of [`Cell::DTYPE`] and nothing else,
//!    without padding; it has the alignment of its elements.
//! 2. **Values.** Every bit pattern is a valid value. `bool` is therefore not a cell; `MultiBinary`
//!    spaces are `int8`, as in Gymnasium.
#![expect(unsafe_code, reason = "cells are seen as bytes, see the invariants")]

use crate::space::DType;

/// A number, or an array of numbers of fixed size: `f32`, `[f32; 4]`, `[[[u8; 4]; 84]; 84]`.
///
/// # Safety
///
/// An implementation promises the invariants of this file.
pub unsafe trait Cell: Copy + Send + Sync + 'static {
    /// The number type.
    type Element: Cell;
    /// The dtype of the numbers.
    const DTYPE: DType;
    /// Number of numbers in a cell.
    const LEN: usize;
    /// Shape of the array; empty for a number.
    const SHAPE: Shape;
}

/// Maximum number of dimensions of a cell.
const MOST_DIMENSIONS: usize = 8;

/// The shape of a cell, a constant.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    lengths: [usize; MOST_DIMENSIONS],
    dimensions: usize,
}

impl Shape {
    /// The shape of a number.
    pub const NUMBER: Self = Self { lengths: [0; MOST_DIMENSIONS], dimensions: 0 };

    /// The shape of an array of `length` cells of this shape.
    ///
    /// # Panics
    ///
    /// At compile time, when the result would have more than eight dimensions.
    #[must_use]
    pub const fn times(self, length: usize) -> Self {
        assert!(self.dimensions < MOST_DIMENSIONS, "a cell has at most eight dimensions");
        let mut lengths = [0; MOST_DIMENSIONS];
        lengths[0] = length;
        let mut at = 0;
        while at < self.dimensions {
            lengths[at + 1] = self.lengths[at];
            at += 1;
        }
        Self { lengths, dimensions: self.dimensions + 1 }
    }

    /// The lengths, outermost first.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths[..self.dimensions]
    }
}

macro_rules! numbers {
    ($($type:ident $dtype:ident;)*) => {$(
        // SAFETY: one primitive number; every bit pattern is a value.
        unsafe impl Cell for $type {
            type Element = Self;
            const DTYPE: DType = DType::$dtype;
            const LEN: usize = 1;
            const SHAPE: Shape = Shape::NUMBER;
        }
    )*};
}

numbers! {
    i8 I8; i16 I16; i32 I32; i64 I64;
    u8 U8; u16 U16; u32 U32; u64 U64;
    f32 F32; f64 F64;
}

// SAFETY: arrays have no padding between or around their elements.
unsafe impl<C: Cell, const N: usize> Cell for [C; N] {
    type Element = C::Element;
    const DTYPE: DType = C::DTYPE;
    const LEN: usize = C::LEN * N;
    const SHAPE: Shape = C::SHAPE.times(N);
}

/// The bytes of cells.
pub fn bytes_of<C: Cell>(cells: &[C]) -> &[u8] {
    // SAFETY: a cell is numbers without padding (invariant 1), so all its bytes are initialised; the
    // slice borrows them.
    unsafe { std::slice::from_raw_parts(cells.as_ptr().cast(), size_of_val(cells)) }
}
