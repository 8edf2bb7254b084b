//! Arrays that a function reads or fills where they are, while other threads may be attached.
//!
//! They are borrowed by the rules of `rust-numpy`: an output overlaps no other array of the call. A
//! program that writes an input in the meantime gets numbers that depend on it, and nothing worse:
//! every bit pattern of a [`Number`] is a value, and what the loops read as an index is copied and
//! checked first.

use numpy::{
    PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::Number;
use super::dtype::{descr, is};
use cartwheel_engine::space::DType;

use crate::known::intern;

/// An array that is read.
pub(crate) struct Borrowed<'py, T: Number>(PyReadonlyArrayDyn<'py, T>);

impl<'py, T: Number> Borrowed<'py, T> {
    /// Borrows a C-contiguous array of `ndim` dimensions, which `what` names in errors.
    pub(crate) fn new(what: &str, array: &Bound<'py, PyAny>, ndim: usize) -> PyResult<Self> {
        Ok(Self(typed(what, array, ndim)?.try_readonly()?))
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
        Self::new(what, &bytes(what, array)?, ndim)
    }
}

/// An array that is filled.
pub(crate) struct BorrowedMut<'py, T: Number>(PyReadwriteArrayDyn<'py, T>);

impl<'py, T: Number> BorrowedMut<'py, T> {
    /// Borrows a writable C-contiguous array of `ndim` dimensions, which `what` names in errors.
    pub(crate) fn new(what: &str, array: &Bound<'py, PyAny>, ndim: usize) -> PyResult<Self> {
        Ok(Self(typed(what, array, ndim)?.try_readwrite()?))
    }

    /// Its elements, row-major.
    pub(crate) fn cells(&mut self) -> PyResult<&mut [T]> {
        Ok(self.0.as_slice_mut()?)
    }
}

impl<'py> BorrowedMut<'py, u8> {
    /// The same for an array of flags, as bytes.
    pub(crate) fn flags(what: &str, array: &Bound<'py, PyAny>, ndim: usize) -> PyResult<Self> {
        Self::new(what, &bytes(what, array)?, ndim)
    }
}

/// The bytes of an array of flags, a view.
fn bytes<'py>(what: &str, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    match array.cast::<PyUntypedArray>() {
        Ok(flags) if is(&flags.dtype(), DType::Bool) => {
            array.call_method1(intern!(py, "view"), (descr(py, DType::U8)?,))
        }
        _ => Err(wrong(what)),
    }
}

fn typed<'a, 'py, T: Number>(
    what: &str,
    array: &'a Bound<'py, PyAny>,
    ndim: usize,
) -> PyResult<&'a Bound<'py, PyArrayDyn<T>>> {
    let array = array.cast::<PyArrayDyn<T>>().map_err(|_| wrong(what))?;
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
