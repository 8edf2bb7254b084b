//! Row numbers from the `env_index` of a caller.

use cartwheel_engine::space::DType;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::{as_array, as_contiguous, copy_bytes, copy_numbers, dtype};
use crate::pool::actions::shown;

/// Rows from an array of integers, or from a list of integers.
pub(super) fn to_rows(rows: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    // Callers usually pass the array that `recv` returned.
    if let Ok(array) = rows.cast_exact::<PyUntypedArray>()
        && array.ndim() == 1
        && array.len() > 0
        && array.is_c_contiguous()
    {
        let numbers = match dtype::from_descr(&array.dtype()) {
            Some(DType::I64) => {
                let bytes = copied(array, size_of::<i64>());
                to_numbers(bytes.as_chunks().0.iter().map(|number| i64::from_ne_bytes(*number)))
            }
            Some(DType::I32) => {
                let bytes = copied(array, size_of::<i32>());
                to_numbers(
                    bytes.as_chunks().0.iter().map(|number| i32::from_ne_bytes(*number).into()),
                )
            }
            _ => return to_rows_by_numpy(rows),
        };
        return numbers;
    }
    to_rows_by_numpy(rows)
}

/// The bytes of a contiguous array's elements, of `size` bytes each.
fn copied(array: &Bound<'_, PyUntypedArray>, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; array.len() * size];
    copy_bytes(array, 0, &mut bytes);
    bytes
}

fn to_rows_by_numpy(rows: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let array = as_array(rows)?;
    let kind = array.dtype().kind();
    if array.ndim() != 1 || (!matches!(kind, b'i' | b'u') && array.len() > 0) {
        return Err(PyTypeError::new_err(format!(
            "`env_index` must be a one-dimensional array of integers, got shape {} of {}",
            shown(array.shape()),
            array.dtype()
        )));
    }
    if array.len() == 0 {
        return Err(PyValueError::new_err("`env_index` is empty: it must name at least one row"));
    }
    let mut numbers = Vec::<i64>::new();
    copy_numbers(&as_contiguous(&array, DType::I64)?, &mut numbers);
    if kind == b'u' {
        // The pool refuses large numbers, whose bits are those of negative ones.
        #[expect(clippy::cast_possible_truncation, reason = "pointers have 64 bits")]
        return Ok(numbers.iter().map(|row| row.cast_unsigned() as usize).collect());
    }
    to_numbers(numbers.iter().copied())
}

fn to_numbers(rows: impl Iterator<Item = i64> + Clone) -> PyResult<Vec<usize>> {
    // Without an exit, and apart from the copy, the search is compiled for vectors.
    if rows.clone().fold(0, |any, row| any | row) < 0
        && let Some(row) = rows.clone().find(|row| *row < 0)
    {
        return Err(PyValueError::new_err(format!(
            "`env_index` names row {row}; rows are counted from 0"
        )));
    }
    #[expect(clippy::cast_sign_loss, reason = "none is negative")]
    #[expect(clippy::cast_possible_truncation, reason = "pointers have 64 bits")]
    Ok(rows.map(|row| row as usize).collect())
}
