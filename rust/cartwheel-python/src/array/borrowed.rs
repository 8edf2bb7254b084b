//! Arrays that a function reads or fills where they are, while other threads may be attached.
//!
//! They are borrowed by the rules of `rust-numpy`: an output overlaps no other array of the call. A
//! program that writes an input in the meantime gets numbers that depend on it, and nothing worse:
//! every bit pattern of a [`Number`] is a value, and what the loops read as an index is copied and
//! checked first.

use cartwheel_core::DType;
use numpy::{
    BorrowError, Element, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::{Number, flags_as_bytes};

/// An array that is read.
pub(crate) struct Borrowed<'py, T: Number>(PyReadonlyArrayDyn<'py, T>);

impl<'py, T: Number> Borrowed<'py, T> {
    /// Borrows a C-contiguous array of `ndim` dimensions, which `what` names in errors.
    pub(crate) fn new(what: &str, array: &Bound<'py, PyAny>, ndim: usize) -> PyResult<Self> {
        let array = checked::<T>(what, array, T::DTYPE, ndim)?;
        Ok(Self(array.try_readonly().map_err(|error| refused(what, error))?))
    }

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
        let array = flags_as_bytes(checked(what, array, DType::Bool, ndim)?);
        Ok(Self(array.try_readonly().map_err(|error| refused(what, error))?))
    }
}

/// An array that is filled.
pub(crate) struct BorrowedMut<'py, T: Number>(PyReadwriteArrayDyn<'py, T>);

impl<'py, T: Number> BorrowedMut<'py, T> {
    /// Borrows a writable C-contiguous array of `ndim` dimensions, which `what` names in errors.
    pub(crate) fn new(what: &str, array: &Bound<'py, PyAny>, ndim: usize) -> PyResult<Self> {
        let array = checked::<T>(what, array, T::DTYPE, ndim)?;
        Ok(Self(array.try_readwrite().map_err(|error| refused(what, error))?))
    }

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
        let array = flags_as_bytes(checked(what, array, DType::Bool, ndim)?);
        Ok(Self(array.try_readwrite().map_err(|error| refused(what, error))?))
    }
}

/// An array of this dtype with `ndim` dimensions, whose elements are where the loops read them.
fn checked<'a, 'py, E: Element>(
    what: &str,
    given: &'a Bound<'py, PyAny>,
    dtype: DType,
    ndim: usize,
) -> PyResult<&'a Bound<'py, PyArrayDyn<E>>> {
    let array = match given.cast::<PyArrayDyn<E>>() {
        Ok(array) if array.ndim() == ndim => array,
        _ => return Err(wrong(what, given, dtype, ndim)),
    };
    // `as_slice` takes a column-major array, too.
    if array.is_c_contiguous() {
        return Ok(array);
    }
    let (shape, strides) = (array.shape(), array.strides());
    Err(PyValueError::new_err(format!(
        "`{what}` must be C-contiguous, got shape {shape:?} with strides {strides:?} in bytes"
    )))
}

/// The error for what is not an array of this dtype with `ndim` dimensions.
fn wrong(what: &str, given: &Bound<'_, PyAny>, dtype: DType, ndim: usize) -> PyErr {
    let got = match given.cast::<PyUntypedArray>() {
        Ok(array) => format!("dtype {} and shape {:?}", array.dtype(), array.shape()),
        Err(_) => format!("{}", given.get_type()),
    };
    let name = dtype.name();
    let dimensions =
        if ndim == 1 { "1 dimension".to_owned() } else { format!("{ndim} dimensions") };
    PyTypeError::new_err(format!(
        "`{what}` must be a NumPy array of dtype {name} with {dimensions}, got {got}"
    ))
}

/// The error for an array that cannot be borrowed.
fn refused(what: &str, error: BorrowError) -> PyErr {
    PyTypeError::new_err(match error {
        BorrowError::NotWriteable => {
            format!("`{what}` is read-only: its `flags.writeable` must be True")
        }
        _ => format!("`{what}` shares memory with another array of this call"),
    })
}
