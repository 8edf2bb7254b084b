//! Draws of cached states, for environments in Python: the same as those of native rows.

use cartwheel_engine::native::Draw;
use pyo3::prelude::*;

use crate::native::stream::to_seed;

/// Documented in the stub.
#[pyfunction]
pub(crate) fn cache_draws(key: u64, seed: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(Draw::seeded(key, &to_seed(seed)?).key)
}

/// Documented in the stub.
#[pyfunction]
pub(crate) fn draw_cached(key: u64, count: u64, states: usize) -> usize {
    Draw { key, count }.next(states)
}
