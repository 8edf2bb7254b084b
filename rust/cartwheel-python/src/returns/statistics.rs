//! Statistics over valid rows, documented in the stub.

use cartwheel_kernels::returns;
use numpy::PyUntypedArray;
use pyo3::prelude::*;

use super::array::{detached, with_type_of};
use crate::array::{Borrowed, BorrowedMut};
use crate::error::returns_error;

#[pyfunction]
pub(crate) fn masked_mean(
    py: Python<'_>,
    numbers: &Bound<'_, PyUntypedArray>,
    valid: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    with_type_of!(numbers, F => {
        let (numbers, valid) = (Borrowed::<F>::new("numbers", numbers, 1)?, Borrowed::flags("valid", valid, 1)?);
        let (numbers, valid) = (numbers.cells()?, valid.cells()?);
        detached(py, || returns::masked_mean(numbers, valid)).map_err(returns_error)
    })
}

#[pyfunction]
pub(crate) fn masked_normalize(
    py: Python<'_>,
    numbers: &Bound<'_, PyUntypedArray>,
    valid: &Bound<'_, PyAny>,
    epsilon: f64,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    with_type_of!(numbers, F => {
        let (numbers, valid) = (Borrowed::<F>::new("numbers", numbers, 1)?, Borrowed::flags("valid", valid, 1)?);
        let mut normalized = BorrowedMut::<F>::new("normalized", out, 1)?;
        let (numbers, valid) = (numbers.cells()?, valid.cells()?);
        let normalized = normalized.cells()?;
        detached(py, || returns::masked_normalize(numbers, valid, epsilon, normalized))
            .map_err(returns_error)
    })
}
