//! The estimators, documented in the stub.

use std::num::NonZero;

use cartwheel_kernels::returns::{self, Clipping, Traces};
use pyo3::prelude::*;

use super::array::{Input, Numbers, detached, with_type_of};
use super::transitions::PyTransitions;
use crate::array::BorrowedMut;
use crate::error::returns_error;

#[pyfunction]
pub(crate) fn gae(
    py: Python<'_>,
    transitions: PyTransitions<'_>,
    values: &Bound<'_, PyAny>,
    next_values: &Bound<'_, PyAny>,
    gae_lambda: &Bound<'_, PyAny>,
    normalized: bool,
    out: (Bound<'_, PyAny>, Bound<'_, PyAny>),
) -> PyResult<()> {
    with_type_of!(&transitions.rewards, F => {
        let borrowed = transitions.borrow::<F>()?;
        let values = Input::<F>::new("values", values)?;
        let next_values = Input::<F>::new("next_values", next_values)?;
        let gae_lambda = Numbers::<F>::new("gae_lambda", gae_lambda)?;
        let mut advantages = BorrowedMut::<F>::new("advantages", &out.0, 2)?;
        let mut returns = BorrowedMut::<F>::new("returns", &out.1, 2)?;
        let (transitions, values) = (borrowed.transitions()?, values.time_major()?);
        let (next_values, gae_lambda) = (next_values.time_major()?, gae_lambda.per_step()?);
        let (advantages, returns) = (advantages.cells()?, returns.cells()?);
        let estimator = if normalized { returns::gae_normalized } else { returns::gae };
        detached(py, || estimator(&transitions, values, next_values, gae_lambda, advantages, returns))
            .map_err(returns_error)
    })
}

#[pyfunction]
pub(crate) fn lambda_returns(
    py: Python<'_>,
    transitions: PyTransitions<'_>,
    next_values: &Bound<'_, PyAny>,
    lambda_: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    with_type_of!(&transitions.rewards, F => {
        let borrowed = transitions.borrow::<F>()?;
        let next_values = Input::<F>::new("next_values", next_values)?;
        let lambda_ = Numbers::<F>::new("lambda_", lambda_)?;
        let mut returns = BorrowedMut::<F>::new("returns", out, 2)?;
        let (transitions, returns) = (borrowed.transitions()?, returns.cells()?);
        let (next_values, lambda_) = (next_values.time_major()?, lambda_.per_step()?);
        detached(py, || returns::lambda_returns(&transitions, next_values, lambda_, returns))
            .map_err(returns_error)
    })
}

#[pyfunction]
pub(crate) fn discounted(
    py: Python<'_>,
    transitions: PyTransitions<'_>,
    next_values: Option<&Bound<'_, PyAny>>,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    with_type_of!(&transitions.rewards, F => {
        let borrowed = transitions.borrow::<F>()?;
        let next_values = next_values.map(|values| Input::<F>::new("next_values", values));
        let next_values = next_values.transpose()?;
        let mut returns = BorrowedMut::<F>::new("returns", out, 2)?;
        let (transitions, returns) = (borrowed.transitions()?, returns.cells()?);
        let next_values = next_values.as_ref().map(Input::time_major).transpose()?;
        detached(py, || returns::discounted(&transitions, next_values, returns))
            .map_err(returns_error)
    })
}

#[pyfunction]
pub(crate) fn n_step(
    py: Python<'_>,
    transitions: PyTransitions<'_>,
    next_values: Option<&Bound<'_, PyAny>>,
    n: NonZero<usize>,
    out: (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>),
) -> PyResult<()> {
    with_type_of!(&transitions.rewards, F => {
        let borrowed = transitions.borrow::<F>()?;
        let next_values = next_values.map(|values| Input::<F>::new("next_values", values));
        let next_values = next_values.transpose()?;
        let mut returns = BorrowedMut::<F>::new("returns", &out.0, 2)?;
        let mut discounts = BorrowedMut::<F>::new("discounts", &out.1, 2)?;
        let mut lengths = BorrowedMut::<i64>::new("lengths", &out.2, 2)?;
        let next_values = next_values.as_ref().map(Input::time_major).transpose()?;
        let (transitions, returns) = (borrowed.transitions()?, returns.cells()?);
        let (discounts, lengths) = (discounts.cells()?, lengths.cells()?);
        detached(py, || returns::n_step(&transitions, next_values, n, returns, discounts, lengths))
            .map_err(returns_error)
    })
}

/// The arrays of an off-policy estimator: values, next values, ratios.
type OffPolicy<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

#[pyfunction]
pub(crate) fn vtrace(
    py: Python<'_>,
    transitions: PyTransitions<'_>,
    arrays: OffPolicy<'_>,
    lambda_: &Bound<'_, PyAny>,
    caps: (f64, f64, f64),
    out: (Bound<'_, PyAny>, Bound<'_, PyAny>),
) -> PyResult<()> {
    with_type_of!(&transitions.rewards, F => {
        let borrowed = transitions.borrow::<F>()?;
        let values = Input::<F>::new("values", &arrays.0)?;
        let next_values = Input::<F>::new("next_values", &arrays.1)?;
        let ratios = Input::<F>::new("ratios", &arrays.2)?;
        let lambda_ = Numbers::<F>::new("lambda_", lambda_)?;
        let mut targets = BorrowedMut::<F>::new("targets", &out.0, 2)?;
        let mut pg_advantages = BorrowedMut::<F>::new("pg_advantages", &out.1, 2)?;
        let (rho_bar, c_bar, pg_rho_bar) = caps;
        let clipping = Clipping { lambda_: lambda_.per_step()?, rho_bar, c_bar, pg_rho_bar };
        let (transitions, ratios) = (borrowed.transitions()?, ratios.time_major()?);
        let (values, next_values) = (values.time_major()?, next_values.time_major()?);
        let (targets, advantages) = (targets.cells()?, pg_advantages.cells()?);
        detached(py, || {
            returns::vtrace(
                &transitions, values, next_values, ratios, &clipping, targets, advantages,
            )
        })
        .map_err(returns_error)
    })
}

#[pyfunction]
pub(crate) fn retrace(
    py: Python<'_>,
    transitions: PyTransitions<'_>,
    arrays: OffPolicy<'_>,
    lambda_: &Bound<'_, PyAny>,
    c_bar: f64,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    with_type_of!(&transitions.rewards, F => {
        let borrowed = transitions.borrow::<F>()?;
        let q_values = Input::<F>::new("q_values", &arrays.0)?;
        let next_values = Input::<F>::new("next_values", &arrays.1)?;
        let ratios = Input::<F>::new("ratios", &arrays.2)?;
        let lambda_ = Numbers::<F>::new("lambda_", lambda_)?;
        let mut targets = BorrowedMut::<F>::new("targets", out, 2)?;
        let traces = Traces { lambda_: lambda_.per_step()?, ratios: ratios.time_major()?, c_bar };
        let (transitions, targets) = (borrowed.transitions()?, targets.cells()?);
        let (q_values, next_values) = (q_values.time_major()?, next_values.time_major()?);
        detached(py, || returns::retrace(&transitions, q_values, next_values, &traces, targets))
            .map_err(returns_error)
    })
}
