//! Statistics over valid rows, documented in the stub.

use cartwheel_engine::returns;
use numpy::PyUntypedArray;
use pyo3::prelude::*;

use super::array::{list, list_output, with_type_of};
use crate::error::returns_error;

#[pyfunction]
pub(crate) fn masked_mean(
    py: Python<'_>,
    numbers: &Bound<'_, PyUntypedArray>,
    valid: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    with_type_of!(numbers, F => {
        let (numbers, valid) = (list::<F>("numbers", numbers)?, list::<bool>("valid", valid)?);
        let (numbers, valid) = (numbers.as_slice()?, valid.as_slice()?);
        py.detach(|| returns::masked_mean(numbers, valid)).map_err(returns_error)
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
        let (numbers, valid) = (list::<F>("numbers", numbers)?, list::<bool>("valid", valid)?);
        let mut normalized = list_output::<F>("normalized", out)?;
        let (numbers, valid) = (numbers.as_slice()?, valid.as_slice()?);
        let normalized = normalized.as_slice_mut()?;
        py.detach(|| returns::masked_normalize(numbers, valid, epsilon, normalized))
            .map_err(returns_error)
    })
}
