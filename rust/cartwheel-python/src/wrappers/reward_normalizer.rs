//! Rewards divided by the deviation of the discounted return; documented in the stub.
//!
//! # Invariants
//!
//! 1. `RewardNormalizer::normalize` of the kernels writes every number of its buffer, or panics.
#![expect(unsafe_code, reason = "rewards are written into new arrays, see the invariants")]

use cartwheel_engine::platform::with_standard_floats;
use cartwheel_kernels::wrappers::{Moments, RewardNormalizer, StepResults};
use pyo3::prelude::*;

use super::column::RowValues;
use super::locked::Locked;
use super::places::{PlaceColumns, Received, StepArrays, StepColumns};
use crate::array::{Blocks, NewNumbers, Number, Unwritten, from_numbers};

/// The parts that change from batch to batch.
#[derive(Debug)]
struct RewardNormalizerState {
    normalizer: RewardNormalizer,
    received: Received,
}

#[pyclass(frozen, name = "RewardNormalizer", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyRewardNormalizer {
    num_envs: usize,
    state: Locked<RewardNormalizerState>,
}

impl PyRewardNormalizer {
    /// Adds a step, and returns its rewards, normalized, in the array of as many numbers.
    pub(super) fn normalized<'py>(
        &self,
        py: Python<'py>,
        results: &StepResults<'_>,
        mut new: Unwritten<'py, f64>,
    ) -> NewNumbers<'py, f64> {
        let normalizer = &mut self.state.lock(py).normalizer;
        with_standard_floats(|| normalizer.normalize(results, new.room()));
        // SAFETY: `normalize` wrote every number (invariant 1).
        unsafe { new.written() }
    }
}

#[pymethods]
impl PyRewardNormalizer {
    #[new]
    fn new(num_envs: usize, gamma: f64, epsilon: f64) -> Self {
        let normalizer = RewardNormalizer::new(num_envs, gamma, epsilon);
        let work = RewardNormalizerState { normalizer, received: Received::default() };
        Self { num_envs, state: Locked::new(work) }
    }

    #[getter]
    fn gamma(&self, py: Python<'_>) -> f64 {
        self.state.lock(py).normalizer.gamma
    }

    #[setter]
    fn set_gamma(&self, py: Python<'_>, gamma: f64) {
        self.state.lock(py).normalizer.gamma = gamma;
    }

    #[getter]
    fn epsilon(&self, py: Python<'_>) -> f64 {
        self.state.lock(py).normalizer.epsilon
    }

    #[setter]
    fn set_epsilon(&self, py: Python<'_>, epsilon: f64) {
        self.state.lock(py).normalizer.epsilon = epsilon;
    }

    #[getter]
    fn updates(&self, py: Python<'_>) -> bool {
        self.state.lock(py).normalizer.updates
    }

    #[setter]
    fn set_updates(&self, py: Python<'_>, updates: bool) {
        self.state.lock(py).normalizer.updates = updates;
    }

    #[pyo3(signature = (rows, kinds, /))]
    fn reset(&self, rows: Option<&Bound<'_, PyAny>>, kinds: &Bound<'_, PyAny>) -> PyResult<()> {
        let places = PlaceColumns::new(rows, kinds, self.num_envs)?;
        self.state.lock(kinds.py()).normalizer.reset(places.read(&mut Vec::new()));
        Ok(())
    }

    #[pyo3(signature = (arrays, /))]
    fn normalize<'py>(
        &self,
        py: Python<'py>,
        arrays: StepArrays<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let columns = StepColumns::new(&arrays, self.num_envs)?;
        let new = Unwritten::alone(py, &mut Blocks::default(), columns.len())?;
        let mut received = std::mem::take(&mut self.state.lock(py).received);
        let rewards = self.normalized(py, &received.receive(&columns), new);
        self.state.lock(py).received = received; // its memory is used again
        Ok(rewards.into_shown().0)
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<(f64, f64, f64, Bound<'py, PyAny>)> {
        let work = self.state.lock(py);
        let (moments, returns) = (&work.normalizer.moments, &work.normalizer.returns);
        let array = from_numbers(py, self.num_envs, &[], returns)?;
        Ok((moments.mean[0], moments.variance[0], moments.count, array))
    }

    #[pyo3(signature = (mean, variance, count, returns, /))]
    fn set_state(
        &self,
        mean: f64,
        variance: f64,
        count: f64,
        returns: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut numbers = Vec::new();
        let rows = RowValues::new("returns", returns, f64::DTYPE, self.num_envs, &[])?;
        rows.copy_numbers_to(&mut numbers);
        let normalizer = &mut self.state.lock(returns.py()).normalizer;
        normalizer.moments = Moments { mean: vec![mean], variance: vec![variance], count };
        normalizer.returns = numbers;
        Ok(())
    }
}
