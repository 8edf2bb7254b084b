//! Parts of a batch, copied out of NumPy's arrays: columns with one entry for each place, and rows.

use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::NoSuchRow;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::array::{Number, Numbers, as_contiguous, copy_bytes, copy_numbers, dtype};

/// A column that is ready to be copied.
pub(super) struct Column<'py>(Bound<'py, PyUntypedArray>);

impl<'py> Column<'py> {
    /// Flags of `len` places, one byte each.
    pub(super) fn flags(what: &str, value: &Bound<'py, PyAny>, len: usize) -> PyResult<Self> {
        Self::new(what, value, DType::Bool, len)
    }

    /// Kinds of `len` places, one byte each.
    pub(super) fn kinds(value: &Bound<'py, PyAny>, len: usize) -> PyResult<Self> {
        Self::new("kinds", value, DType::U8, len)
    }

    fn new(what: &str, value: &Bound<'py, PyAny>, dtype: DType, len: usize) -> PyResult<Self> {
        let array = as_contiguous(value, dtype)?;
        let text = match array.shape() {
            [found] if *found == len => return Ok(Self(array)),
            [found] => format!("`{what}` must have {len} entries, got {found}"),
            shape => format!(
                "`{what}` must have one entry for each place, got an array of shape {shape:?}"
            ),
        };
        Err(PyValueError::new_err(text))
    }

    /// The number of places.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Replaces `into` with the bytes.
    pub(super) fn copy_to(&self, into: &mut Vec<u8>) {
        into.resize(self.len(), 0);
        copy_bytes(&self.0, 0, into);
    }
}

/// The elements of each row, checked and ready to be copied.
pub(super) struct RowValues<'py>(Bound<'py, PyUntypedArray>);

impl<'py> RowValues<'py> {
    /// Checks the shape, `[count, *shape]`.
    pub(super) fn new(
        what: &str,
        value: &Bound<'py, PyAny>,
        dtype: DType,
        count: usize,
        shape: &[usize],
    ) -> PyResult<Self> {
        let array = as_contiguous(value, dtype)?;
        check_shape(what, &array, count, shape)?;
        Ok(Self(array))
    }

    /// The numbers, where they are.
    pub(super) fn into_numbers<T: Number>(self) -> PyResult<Numbers<'py, T>> {
        Numbers::of(self.0)
    }

    /// Replaces `into` with the numbers.
    pub(super) fn copy_numbers_to<T: Number>(&self, into: &mut Vec<T>) {
        copy_numbers(&self.0, into);
    }

    /// Copies the bytes into a buffer of their size.
    pub(super) fn read(&self, buffer: &mut [u8]) {
        copy_bytes(&self.0, 0, buffer);
    }

    /// Replaces `into` with the bytes, of which there are `bytes`.
    pub(super) fn copy_bytes_to(&self, bytes: usize, into: &mut Vec<u8>) {
        into.resize(bytes, 0);
        copy_bytes(&self.0, 0, into);
    }
}

/// Whether a value is an array of `count` numbers of 64 bits, of NumPy's own class.
pub(super) fn are_plain_numbers(value: &Bound<'_, PyAny>, count: usize) -> bool {
    value
        .cast_exact::<PyUntypedArray>()
        .is_ok_and(|array| array.shape() == [count] && dtype::is(&array.dtype(), DType::F64))
}

fn check_shape(
    what: &str,
    array: &Bound<'_, PyUntypedArray>,
    count: usize,
    shape: &[usize],
) -> PyResult<()> {
    let found = array.shape();
    if found.len() == shape.len() + 1 && found[0] == count && found[1..] == *shape {
        return Ok(());
    }
    let expected: Vec<_> = std::iter::once(count).chain(shape.iter().copied()).collect();
    Err(PyValueError::new_err(format!("`{what}` must have shape {expected:?}, got {found:?}")))
}

/// Row numbers or places, as a list.
pub(super) fn numbers(value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let mut numbers = Vec::new();
    copy_numbers(&as_contiguous(value, DType::I64)?, &mut numbers);
    Ok(numbers)
}

pub(super) fn no_such_row(error: NoSuchRow) -> PyErr {
    PyIndexError::new_err(error.to_string())
}
