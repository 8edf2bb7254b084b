//! Columns of a batch, one entry for each place, copied out of NumPy's arrays.

use cartwheel_engine::space::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::dtype::{descr, from_descr};
use crate::array::{as_array, copy_bytes};

/// A C-contiguous array of `dtype`: `value` itself, if it is one, or else a copy. Numbers are cast
/// as by `astype`.
pub(super) fn as_contiguous<'py>(
    value: &Bound<'py, PyAny>,
    dtype: DType,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let array = match value.cast::<PyUntypedArray>() {
        Ok(array) => array.clone(),
        Err(_) => as_array(value)?,
    };
    if array.is_c_contiguous() && from_descr(&array.dtype()) == Some(dtype) {
        return Ok(array);
    }
    let cast = array.call_method1("astype", (descr(value.py(), dtype)?, "C"))?;
    Ok(cast.cast_into::<PyUntypedArray>()?)
}

/// A column that is ready to be copied.
pub(super) struct Column<'py>(Bound<'py, PyUntypedArray>);

impl<'py> Column<'py> {
    /// Flags, one byte each.
    pub(super) fn of_flags(what: &str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::new(what, value, DType::Bool)
    }

    /// Kinds of places, one byte each.
    pub(super) fn of_kinds(value: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::new("kinds", value, DType::U8)
    }

    fn new(what: &str, value: &Bound<'py, PyAny>, dtype: DType) -> PyResult<Self> {
        let array = as_contiguous(value, dtype)?;
        if array.ndim() == 1 {
            return Ok(Self(array));
        }
        let text = format!(
            "`{what}` must have one entry for each place, got an array of shape {:?}",
            array.shape()
        );
        Err(PyValueError::new_err(text))
    }

    /// The number of places.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Refuses a column of another length.
    pub(super) fn check_len(&self, what: &str, expected: usize) -> PyResult<()> {
        if self.len() == expected {
            return Ok(());
        }
        let text = format!("`{what}` must have {expected} entries, got {}", self.len());
        Err(PyValueError::new_err(text))
    }

    /// Copies the bytes, in place of what `into` has.
    pub(super) fn copy_to(&self, into: &mut Vec<u8>) {
        into.resize(self.len(), 0);
        copy_bytes(&self.0, 0, into);
    }
}

/// Row numbers, as a list.
pub(super) fn numbers(value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let array = as_contiguous(value, DType::I64)?;
    let mut bytes = vec![0; array.len() * 8];
    copy_bytes(&array, 0, &mut bytes);
    Ok(bytes.as_chunks().0.iter().map(|number| i64::from_ne_bytes(*number)).collect())
}
