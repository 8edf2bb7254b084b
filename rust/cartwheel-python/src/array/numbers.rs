//! Numbers that are read where an array has them, and written where Python gets them.
//!
//! # Invariants
//!
//! 1. The array of [`Numbers`] is C-contiguous, aligned and of the dtype of `T`, so its memory has as many
//!    values of `T`: every bit pattern is one (see [`Number`]). It stays while the array is referenced.
//!    No slice is kept while a function of the caller runs. A program that writes the array in the
//!    meantime, on another thread, gets numbers that depend on it, and nothing worse: no number is an
//!    index.
//! 2. [`Unwritten`] has an array that was made here and is known to no other code, with room for its
//!    numbers, aligned. [`NewNumbers`] has one that is written, and is known to no other code until
//!    [`NewNumbers::into_shown`].
#![expect(unsafe_code, reason = "reads and writes NumPy arrays in place, see the invariants")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::{Number, dtype, first_byte, make};

/// The numbers of an array that other code may have.
pub(crate) struct Numbers<'py, T: Number> {
    array: Bound<'py, PyUntypedArray>,
    of: PhantomData<T>,
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
        let is_aligned = |array| first_byte(array).cast::<T>().is_aligned();
        if is_aligned(&array) {
            return Ok(Self { array, of: PhantomData });
        }
        let array = array.call_method0("copy")?.cast_into()?;
        assert!(is_aligned(&array), "NumPy's memory is aligned");
        Ok(Self { array, of: PhantomData })
    }

    /// The numbers, row-major.
    pub(crate) fn cells(&self) -> &[T] {
        // SAFETY: so many numbers of the array, which is borrowed (invariant 1).
        unsafe { std::slice::from_raw_parts(first_byte(&self.array).cast(), self.array.len()) }
    }

    /// A copy of the numbers.
    pub(crate) fn copied(&self) -> PyResult<NewNumbers<'py, T>> {
        let (py, numbers) = (self.array.py(), self.cells());
        let copy = |room: &mut [MaybeUninit<T>]| {
            room.iter_mut().zip(numbers).for_each(|(room, &number)| _ = room.write(number));
        };
        // SAFETY: there are as many numbers.
        unsafe { NewNumbers::written(py, numbers.len(), copy) }
    }
}

/// A new array of one dimension that is not written yet.
pub(crate) struct Unwritten<'py, T: Number>(Numbers<'py, T>);

impl<'py, T: Number> Unwritten<'py, T> {
    /// An array with room for `count` numbers.
    pub(crate) fn new(py: Python<'py>, count: usize) -> PyResult<Self> {
        // SAFETY: no memory is passed, so NumPy allocates as much as the shape needs (invariant 3 of
        // the module above).
        let (array, first) = unsafe { make(py, T::DTYPE, Some(count), &[], None) }?;
        assert!(first.cast::<T>().is_aligned(), "NumPy's memory is aligned");
        Ok(Self(Numbers { array: array.cast_into()?, of: PhantomData }))
    }

    /// Room for the numbers.
    pub(crate) fn room(&mut self) -> &mut [MaybeUninit<T>] {
        let Numbers { array, .. } = &self.0;
        // SAFETY: there is room for so many numbers, which need not be initialized and are borrowed
        // alone (invariant 2).
        unsafe { std::slice::from_raw_parts_mut(first_byte(array).cast(), array.len()) }
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

/// The numbers of a new array, of one dimension.
pub(crate) struct NewNumbers<'py, T: Number>(Numbers<'py, T>);

impl<'py, T: Number> NewNumbers<'py, T> {
    /// An array of `count` numbers, which `fill` writes.
    ///
    /// # Safety
    ///
    /// `fill` writes every number of its buffer, unless it panics.
    pub(crate) unsafe fn written(
        py: Python<'py>,
        count: usize,
        fill: impl FnOnce(&mut [MaybeUninit<T>]),
    ) -> PyResult<Self> {
        let mut new = Unwritten::new(py, count)?;
        fill(new.room());
        // SAFETY: `fill` wrote every number, as the caller promises.
        Ok(unsafe { new.written() })
    }

    /// The numbers.
    pub(crate) fn cells(&self) -> &[T] {
        self.0.cells()
    }

    /// The numbers, to be changed.
    pub(crate) fn cells_mut(&mut self) -> &mut [T] {
        let Numbers { array, .. } = &self.0;
        // SAFETY: so many numbers, which are borrowed, of an array that no other code has
        // (invariants 1 and 2).
        unsafe { std::slice::from_raw_parts_mut(first_byte(array).cast(), array.len()) }
    }

    /// The array, which other code may have from now on, and its numbers.
    pub(crate) fn into_shown(self) -> (Bound<'py, PyAny>, Numbers<'py, T>) {
        (self.0.array.clone().into_any(), self.0)
    }
}
