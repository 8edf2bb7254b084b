//! Rewards divided by the deviation of the discounted return; documented in the stub.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cartwheel_engine::wrappers::{Moments, PlaceKinds, RewardNormalizer};
use pyo3::prelude::*;

use super::column::{Column, Rows, no_such_row, numbers};
use crate::array::{Number, from_numbers};

/// What changes from batch to batch. Nobody runs Python code while it is locked.
#[derive(Debug)]
struct Work {
    normalizer: RewardNormalizer,
    kinds: Vec<u8>,
    rewards: Vec<f64>,
    terminations: Vec<u8>,
    truncations: Vec<u8>,
}

#[pyclass(frozen, name = "RewardNormalizer", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyRewardNormalizer {
    num_envs: usize,
    work: Mutex<Work>,
}

impl PyRewardNormalizer {
    fn locked(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner) // numbers, and no invariants
    }
}

#[pymethods]
impl PyRewardNormalizer {
    #[new]
    fn new(num_envs: usize, gamma: f64, epsilon: f64) -> Self {
        let [kinds, terminations, truncations] = [const { Vec::new() }; 3];
        let normalizer = RewardNormalizer::new(num_envs, gamma, epsilon);
        let work = Work { normalizer, kinds, rewards: Vec::new(), terminations, truncations };
        Self { num_envs, work: Mutex::new(work) }
    }

    #[getter]
    fn updates(&self) -> bool {
        self.locked().normalizer.updates
    }

    #[setter]
    fn set_updates(&self, updates: bool) {
        self.locked().normalizer.updates = updates;
    }

    #[pyo3(signature = (rows, kinds, /))]
    fn reset(&self, rows: Option<&Bound<'_, PyAny>>, kinds: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = rows.map(numbers).transpose()?;
        let kinds = Column::of_kinds(kinds)?
            .with_len("kinds", rows.as_ref().map_or(self.num_envs, Vec::len))?;
        let work = &mut *self.locked();
        kinds.copy_to(&mut work.kinds);
        let places = PlaceKinds::new(rows.as_deref(), &work.kinds, self.num_envs);
        work.normalizer.reset(places.map_err(no_such_row)?);
        Ok(())
    }

    #[pyo3(signature = (rows, kinds, rewards, terminations, truncations, /))]
    fn normalize<'py>(
        &self,
        py: Python<'py>,
        rows: Option<&Bound<'py, PyAny>>,
        kinds: &Bound<'py, PyAny>,
        rewards: &Bound<'py, PyAny>,
        terminations: &Bound<'py, PyAny>,
        truncations: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = rows.map(numbers).transpose()?;
        let count = rows.as_ref().map_or(self.num_envs, Vec::len);
        let kinds = Column::of_kinds(kinds)?.with_len("kinds", count)?;
        let rewards = Rows::new("rewards", rewards, f64::DTYPE, count, &[])?;
        let terminations =
            Column::of_flags("terminations", terminations)?.with_len("terminations", count)?;
        let truncations =
            Column::of_flags("truncations", truncations)?.with_len("truncations", count)?;
        let work = &mut *self.locked();
        kinds.copy_to(&mut work.kinds);
        let places = PlaceKinds::new(rows.as_deref(), &work.kinds, self.num_envs);
        let places = places.map_err(no_such_row)?;
        rewards.copy_numbers_to(&mut work.rewards);
        terminations.copy_to(&mut work.terminations);
        truncations.copy_to(&mut work.truncations);
        let (ended, cut) = (&work.terminations, &work.truncations);
        work.normalizer.normalize(places, &mut work.rewards, ended, cut);
        from_numbers(py, count, &[], &work.rewards)
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<(f64, f64, f64, Bound<'py, PyAny>)> {
        let work = self.locked();
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
        let rows = Rows::new("returns", returns, f64::DTYPE, self.num_envs, &[])?;
        rows.copy_numbers_to(&mut numbers);
        let normalizer = &mut self.locked().normalizer;
        normalizer.moments = Moments { mean: vec![mean], variance: vec![variance], count };
        normalizer.returns = numbers;
        Ok(())
    }
}
