//! Masks of transitions, beginnings of episodes, next values, and statistics of valid transitions;
//! documented in the stub.

use cartwheel_engine::space::DType;
use cartwheel_kernels::returns::{self, FinalValues, Restart};
use numpy::PyUntypedArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::array::{Input, detached, with_type_of};
use super::transitions::{BorrowedFlags, to_bootstrap};
use crate::array::{Borrowed, BorrowedMut, as_contiguous};
use crate::convert::{to_autoreset_mode, to_on_done};
use crate::error::returns_error;

/// The value of an `AutoresetMode`, and whether over rows are frozen.
type Mode = (String, bool);

/// Terminated and truncated flags.
type TwoFlags<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

fn restart((value, freeze): &Mode) -> PyResult<Restart> {
    Ok(Restart::new(to_autoreset_mode(value)?, to_on_done(*freeze)))
}

#[pyfunction]
pub(crate) fn valid_mask(
    py: Python<'_>,
    mode: Mode,
    flags: TwoFlags<'_>,
    prev_done: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let restart = restart(&mode)?;
    let borrowed = BorrowedFlags::new(&flags.0, &flags.1)?;
    let prev_done = Borrowed::flags("prev_done", prev_done, 1)?;
    let mut valid = BorrowedMut::flags("valid", out, 2)?;
    let (flags, prev_done, valid) = (borrowed.flags()?, prev_done.cells()?, valid.cells()?);
    py.detach(|| returns::valid_mask(flags, restart, prev_done, valid)).map_err(returns_error)
}

#[pyfunction]
pub(crate) fn is_first(
    py: Python<'_>,
    mode: Mode,
    flags: TwoFlags<'_>,
    prev_done: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let restart = restart(&mode)?;
    let borrowed = BorrowedFlags::new(&flags.0, &flags.1)?;
    let (prev_done, initial) =
        (Borrowed::flags("prev_done", prev_done, 1)?, Borrowed::flags("initial", initial, 1)?);
    let mut is_first = BorrowedMut::flags("is_first", out, 2)?;
    let (flags, is_first) = (borrowed.flags()?, is_first.cells()?);
    let (prev_done, initial) = (prev_done.cells()?, initial.cells()?);
    py.detach(|| returns::is_first(flags, restart, prev_done, initial, is_first))
        .map_err(returns_error)
}

#[pyfunction]
pub(crate) fn next_values(
    py: Python<'_>,
    mode: Mode,
    values: &Bound<'_, PyUntypedArray>,
    flags: TwoFlags<'_>,
    bootstrap: &str,
    finals: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let (restart, bootstrap) = (restart(&mode)?, to_bootstrap(bootstrap)?);
    let borrowed = BorrowedFlags::new(&flags.0, &flags.1)?;
    with_type_of!(values, F => {
        let values = Input::<F>::new("values", values)?;
        let mut next_values = BorrowedMut::<F>::new("next_values", out, 2)?;
        let finals = finals.as_ref().map(|(values, index)| {
            PyResult::Ok((Borrowed::<F>::new("final_values", values, 1)?, rows(index)?))
        });
        let finals = finals.transpose()?;
        let finals = finals.as_ref().map(|(values, index)| {
            PyResult::Ok(FinalValues { values: values.cells()?, index })
        });
        let (values, flags) = (values.time_major()?, borrowed.flags()?);
        let (finals, next_values) = (finals.transpose()?, next_values.cells()?);
        py.detach(|| returns::next_values(values, flags, restart, bootstrap, finals, next_values))
            .map_err(returns_error)
    })
}

/// Steps and environments; none may be negative.
fn rows(index: &Bound<'_, PyAny>) -> PyResult<Vec<[usize; 2]>> {
    let index = as_contiguous(index, DType::I64)?;
    let index = Borrowed::<i64>::new("final_index", &index, 2)?;
    if index.shape()[1] != 2 {
        let text = format!("`final_index` must have shape (K, 2), got {:?}", index.shape());
        return Err(PyValueError::new_err(text));
    }
    let row = |(at, &[step, env]): (usize, &[i64; 2])| {
        let (Ok(step), Ok(env)) = (usize::try_from(step), usize::try_from(env)) else {
            let text = format!("`final_index[{at}]` is [{step}, {env}]: negative");
            return Err(PyValueError::new_err(text));
        };
        Ok([step, env])
    };
    index.cells()?.as_chunks().0.iter().enumerate().map(row).collect()
}

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
