//! Arrays by name: what wrappers keep from one process to the next.

use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Adds a copy of `numbers`.
pub(super) fn put<T: Element + Copy>(
    state: &Bound<'_, PyDict>,
    name: &str,
    numbers: &[T],
) -> PyResult<()> {
    state.set_item(name, PyArray1::from_slice(state.py(), numbers))
}

/// Reads an array of `expected` entries.
pub(super) fn entry<T: Element + Copy>(
    state: &Bound<'_, PyDict>,
    name: &str,
    expected: usize,
) -> PyResult<Vec<T>> {
    let numbers = entries::<T>(state, name)?;
    if numbers.len() == expected {
        return Ok(numbers);
    }
    let text = format!("`{name}` must have {expected} entries, got {}", numbers.len());
    Err(PyValueError::new_err(text))
}

/// Reads an array of any length.
pub(super) fn entries<T: Element + Copy>(
    state: &Bound<'_, PyDict>,
    name: &str,
) -> PyResult<Vec<T>> {
    let Some(value) = state.get_item(name)? else {
        return Err(PyKeyError::new_err(name.to_owned()));
    };
    let array = value.cast::<PyArray1<T>>().map_err(|_| {
        let dtype = numpy::dtype::<T>(state.py());
        PyValueError::new_err(format!("`{name}` must be a list of numbers of dtype {dtype}"))
    })?;
    let read: PyReadonlyArray1<'_, T> = array.try_readonly()?;
    Ok(read.as_array().iter().copied().collect())
}
