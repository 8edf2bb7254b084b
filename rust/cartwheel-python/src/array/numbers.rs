//! Numbers that are read where an array has them, and written where Python gets them.
//!
//! # Invariants
//!
//! 1. The array of [`Numbers`] was C-contiguous, aligned and of the dtype of `T`, or of flags, which are
//!    bytes, so its memory has as many values of `T`: every bit pattern is one (see [`Number`]). It stays
//!    while the array is referenced, whatever form a program gives the array, unless it is resized by force:
//!    invariant 1 of the module above.
//!    No slice is kept while a function of the caller runs. A program that writes the array in the
//!    meantime, on another thread, gets numbers that depend on it, and nothing worse: no number is an
//!    index.
//! 2. [`Unwritten`] has an array that was made here and is known to no other code but its block, with
//!    room for its numbers, aligned. [`NewNumbers`] has one that is written, and is known to no other
//!    code until [`NewNumbers::into_shown`].
#![expect(unsafe_code, reason = "reads and writes NumPy arrays in place, see the invariants")]

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use cartwheel_engine::space::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::{Block, Blocks, Number, dtype, first_byte};

/// The numbers of an array that other code may have.
pub(crate) struct Numbers<'py, T: Number> {
    array: Bound<'py, PyUntypedArray>,
    /// Its memory, whatever shape and dtype a program gives the array later.
    first: NonNull<T>,
    count: usize,
}

impl<'py, T: Number> Numbers<'py, T> {
    /// Of a C-contiguous array; copies one that is not aligned.
    ///
    /// # Panics
    ///
    /// When the array is not contiguous, or has another dtype.
    pub(crate) fn of(array: Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        assert!(array.is_c_contiguous(), "only contiguous arrays are read as numbers");
        assert!(dtype::is(&array.dtype(), T::DTYPE), "numbers of {}", array.dtype());
        if first_byte(&array).cast::<T>().is_aligned() {
            return Ok(Self::aligned(array));
        }
        Ok(Self::aligned(array.call_method0("copy")?.cast_into()?))
    }

    fn aligned(array: Bound<'py, PyUntypedArray>) -> Self {
        let first = first_byte(&array).cast::<T>();
        assert!(first.is_aligned(), "memory that is allocated is aligned");
        let (first, count) = (NonNull::new(first).unwrap_or(NonNull::dangling()), array.len());
        Self { array, first, count }
    }

    /// The numbers, row-major.
    pub(crate) fn cells(&self) -> &[T] {
        // SAFETY: the array has `count` numbers and is borrowed (invariant 1).
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }

    /// A copy of the numbers, in one dimension.
    pub(crate) fn copied(&self, blocks: &mut Blocks) -> PyResult<NewNumbers<'py, T>> {
        Ok(Unwritten::alone(self.array.py(), blocks, self.count)?.filled(self.cells()))
    }

    /// The same values in another type, in the same shape.
    pub(crate) fn converted<N: Number + From<T>>(
        &self,
        blocks: &mut Blocks,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.array.shape().to_vec(); // a function of Python may change it below
        let (&rows, shape) = shape.split_first().expect("an axis of rows");
        // SAFETY: other code gets the array when it is written (invariant 2).
        let (array, _) = unsafe { blocks.unwritten(self.array.py(), N::DTYPE, rows, shape) }?;
        Ok(Unwritten::<N>::of_array(array)?.filled(self.cells()).into_shown().0)
    }
}

/// A new array that is not written yet.
pub(crate) struct Unwritten<'py, T: Number>(Numbers<'py, T>);

impl<'py, T: Number> Unwritten<'py, T> {
    /// An array of shape `[rows, *shape]`.
    pub(crate) fn new(
        py: Python<'py>,
        block: &Block,
        rows: usize,
        shape: &[usize],
    ) -> PyResult<Self> {
        Self::of_dtype(py, block, T::DTYPE, rows, shape)
    }

    /// An array of `count` numbers in one dimension, with a block of its own.
    pub(crate) fn alone(py: Python<'py>, blocks: &mut Blocks, count: usize) -> PyResult<Self> {
        Self::new(py, blocks.next(py, Block::space(count * size_of::<T>()))?, count, &[])
    }

    fn of_dtype(
        py: Python<'py>,
        block: &Block,
        dtype: DType,
        rows: usize,
        shape: &[usize],
    ) -> PyResult<Self> {
        // SAFETY: other code gets the array when it is written (invariant 2).
        let (array, _) = unsafe { block.unwritten(py, dtype, rows, shape) }?;
        Self::of_array(array)
    }

    /// Of an array that is not written.
    fn of_array(array: Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(Self(Numbers::aligned(array.cast_into()?)))
    }

    /// Room for the numbers.
    pub(crate) fn room(&mut self) -> &mut [MaybeUninit<T>] {
        let Numbers { first, count, .. } = self.0;
        // SAFETY: there is room for `count` numbers, which need not be initialized and are borrowed
        // alone (invariant 2).
        unsafe { std::slice::from_raw_parts_mut(first.as_ptr().cast(), count) }
    }

    /// The same array with these numbers.
    fn filled<F: Copy + Into<T>>(mut self, numbers: &[F]) -> NewNumbers<'py, T> {
        let room = self.room();
        assert_eq!(room.len(), numbers.len(), "numbers");
        room.iter_mut().zip(numbers).for_each(|(room, &number)| _ = room.write(number.into()));
        // SAFETY: as many numbers were written.
        unsafe { self.written() }
    }

    /// The same array, written.
    ///
    /// # Safety
    ///
    /// Every number of [the room](Self::room) was written.
    pub(crate) unsafe fn written(self) -> NewNumbers<'py, T> {
        NewNumbers(self.0)
    }
}

impl<'py> Unwritten<'py, u8> {
    /// An array of `count` flags, as bytes; other bytes than 0 and 1 are not flags.
    pub(crate) fn flags(py: Python<'py>, block: &Block, count: usize) -> PyResult<Self> {
        Self::of_dtype(py, block, DType::Bool, count, &[])
    }
}

pub(crate) struct NewNumbers<'py, T: Number>(Numbers<'py, T>);

impl<'py, T: Number> NewNumbers<'py, T> {
    /// The numbers.
    pub(crate) fn cells(&self) -> &[T] {
        self.0.cells()
    }

    /// The numbers, to be changed.
    pub(crate) fn cells_mut(&mut self) -> &mut [T] {
        let Numbers { first, count, .. } = self.0;
        // SAFETY: the array has `count` numbers, is borrowed, and no other code has it
        // (invariants 1 and 2).
        unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), count) }
    }

    /// The array, which other code may have from now on, and its numbers.
    pub(crate) fn into_shown(self) -> (Bound<'py, PyAny>, Numbers<'py, T>) {
        (self.0.array.clone().into_any(), self.0)
    }
}
