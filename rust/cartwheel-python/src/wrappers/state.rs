//! Arrays by name: what wrappers keep from one process to the next.

use cartwheel_engine::space::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{
    Number, as_contiguous, copied_flags, copy_numbers, dtype, from_bytes, from_numbers,
};

/// Adds a copy of `numbers`.
pub(super) fn put<T: Number>(state: &Bound<'_, PyDict>, name: &str, numbers: &[T]) -> PyResult<()> {
    state.set_item(name, from_numbers(state.py(), numbers.len(), &[], numbers)?)
}

/// Adds flags, each 0 or 1.
pub(super) fn put_flags(state: &Bound<'_, PyDict>, name: &str, flags: &[u8]) -> PyResult<()> {
    state.set_item(name, from_bytes(state.py(), DType::Bool, Some(flags.len()), &[], flags)?)
}

/// Reads an array of `expected` entries.
pub(super) fn entry<T: Number>(
    state: &Bound<'_, PyDict>,
    name: &str,
    expected: usize,
) -> PyResult<Vec<T>> {
    checked(name, entries(state, name)?, expected)
}

/// Reads an array of any length.
pub(super) fn entries<T: Number>(state: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<T>> {
    let mut numbers = Vec::new();
    copy_numbers(&found(state, name, T::DTYPE)?, &mut numbers);
    Ok(numbers)
}

/// Reads an array of `expected` flags, as 0 and 1.
pub(super) fn flags(state: &Bound<'_, PyDict>, name: &str, expected: usize) -> PyResult<Vec<u8>> {
    checked(name, copied_flags(&found(state, name, DType::Bool)?), expected)
}

fn found<'py>(
    state: &Bound<'py, PyDict>,
    name: &str,
    dtype: DType,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let Some(value) = state.get_item(name)? else {
        return Err(PyKeyError::new_err(name.to_owned()));
    };
    match value.cast::<PyUntypedArray>() {
        Ok(array) if array.ndim() == 1 && dtype::is(&array.dtype(), dtype) => {
            as_contiguous(&value, dtype)
        }
        _ => Err(PyValueError::new_err(format!(
            "`{name}` must be a list of numbers of dtype {}",
            dtype.name()
        ))),
    }
}

fn checked<T>(name: &str, entries: Vec<T>, expected: usize) -> PyResult<Vec<T>> {
    if entries.len() == expected {
        return Ok(entries);
    }
    let text = format!("`{name}` must have {expected} entries, got {}", entries.len());
    Err(PyValueError::new_err(text))
}
