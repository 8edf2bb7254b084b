//! Arrays that a function reads or fills where they are, while other threads may be attached.
//!
//! They are borrowed by the rules of `rust-numpy`: an output overlaps no other array of the call. A
//! program that writes an input in the meantime gets numbers that depend on it, and nothing worse:
//! every bit pattern of a [`Number`] is a value, and what the loops read as an index is copied and
//! checked first.

use numpy::{
    PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::{Number, flags_as_bytes};

/// An array that is read.
pub(crate) struct Borrowed<'py, T: Number>(PyReadonlyArrayDyn<'py, T>);

impl<'py, T: Number> Borrowed<'py, T> {
    /// Borrows a C-contiguous array of `ndim` dimensions, which `what` names in errors.
    pub(crate) fn new(what: &str, array: &Bound<'py, PyAny>, ndim: usize) -> PyResult<Self> {
        Ok(Self(of_numbers(what, array, ndim)?.try_readonly()?))
    }

    /// Its shape.
    pub(crate) fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// Its elements, row-major.
    pub(crate) fn cells(&self) -> PyResult<&[T]> {
        Ok(self.0.as_slice()?)
    }
}

impl<'py> Borrowed<'py, u8> {
    /// The same for an array of flags, as bytes: NumPy takes every byte but zero for true.
    pub(crate) fn flags(what: &str, array: &Bound<'py, PyAny>, ndim: usize) -> PyResult<Self> {
        Ok(Self(of_flags(what, array, ndim)?.try_readonly()?))
    }
}

/// An array that is filled.
pub(crate) struct BorrowedMut<'py, T: Number>(PyReadwriteArrayDyn<'py, T>);

impl<'py, T: Number> BorrowedMut<'py, T> {
    /// Borrows a writable C-contiguous array of `ndim` dimensions, which `what` names in errors.
    pub(crate) fn new(what: &str, array: &Bound<'py, PyAny>, ndim: usize) -> PyResult<Self> {
        Ok(Self(of_numbers(what, array, ndim)?.try_readwrite()?))
    }

    /// Its shape.
    pub(crate) fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// Its elements, row-major.
    pub(crate) fn cells(&mut self) -> PyResult<&mut [T]> {
        Ok(self.0.as_slice_mut()?)
    }
}

impl<'py> BorrowedMut<'py, u8> {
    /// The same for an array of flags, as bytes.
    pub(crate) fn flags(what: &str, array: &Bound<'py, PyAny>, ndim: usize) -> PyResult<Self> {
        Ok(Self(of_flags(what, array, ndim)?.try_readwrite()?))
    }
}

fn of_numbers<'a, 'py, T: Number>(
    what: &str,
    array: &'a Bound<'py, PyAny>,
    ndim: usize,
) -> PyResult<&'a Bound<'py, PyArrayDyn<T>>> {
    checked(what, array.cast().map_err(|_| wrong(what))?, ndim)
}

fn of_flags<'a, 'py>(
    what: &str,
    array: &'a Bound<'py, PyAny>,
    ndim: usize,
) -> PyResult<&'a Bound<'py, PyArrayDyn<u8>>> {
    let flags = array.cast().map_err(|_| wrong(what))?;
    checked(what, flags_as_bytes(flags), ndim)
}

fn checked<'a, 'py, T: Number>(
    what: &str,
    array: &'a Bound<'py, PyArrayDyn<T>>,
    ndim: usize,
) -> PyResult<&'a Bound<'py, PyArrayDyn<T>>> {
    if array.ndim() != ndim {
        return Err(wrong(what));
    }
    // `as_slice` takes a column-major array, too.
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err(format!("`{what}` is not C-contiguous")));
    }
    Ok(array)
}

fn wrong(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "`{what}` is not a NumPy array with the required dtype and dimensions"
    ))
}
