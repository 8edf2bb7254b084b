//! Rollouts: the batches of consecutive steps as arrays with a time axis.

use std::sync::Arc;

use cartwheel_engine::Call;
use cartwheel_engine::space::DType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::{PyRolloutSlab, rollout_view};
use crate::error::to_py_err;
use crate::pool::State;
use crate::pool::batch::RewardForm;
use crate::space::End;

impl State {
    /// Takes a rollout of `steps` steps, which is not being recorded yet.
    pub(super) fn take_rollout(&mut self, py: Python<'_>, steps: usize) -> PyResult<PyRolloutSlab> {
        let explain = |error| self.callbacks.explain(py, error, Call::Call, "rollout");
        let observations = &self.batches.observations;
        if observations.opaque > 0 || !observations.texts.is_empty() {
            return Err(PyValueError::new_err(
                "a rollout needs observations of fixed shape; this space has parts without one",
            ));
        }
        Ok(PyRolloutSlab::new(self.pool.new_rollout(steps).map_err(explain)?))
    }

    /// Records the next batches in a rollout, and returns its arrays.
    pub(super) fn record<'py>(
        &mut self,
        rollout: &Bound<'py, PyRolloutSlab>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let arrays = self.rollout_arrays(rollout)?;
        self.pool.record(Arc::clone(rollout.get().lease())).map_err(to_py_err)?;
        Ok(arrays)
    }

    /// The arrays of a rollout: observations, rewards, terminations, truncations.
    fn rollout_arrays<'py>(
        &self,
        rollout: &Bound<'py, PyRolloutSlab>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let lease = rollout.get().lease();
        // The observations begin with the batch before the first step, the outcomes with that of
        // the first step.
        let (before, first) = (lease.layout(0), lease.layout(1));
        let outcome = |dtype, shape: &[usize], start| {
            rollout_view(rollout, dtype, lease.steps(), shape, start)
        };
        let rows = self.rows;
        let rewards = match self.batches.rewards {
            RewardForm::Vectors(width) => &[rows, width][..],
            RewardForm::Numbers | RewardForm::Narrow => &[rows],
        };
        let observations = &self.batches.observations;
        let leaf = |end: End<'_>| {
            let End::Leaf(leaf) = end else { unreachable!("refused before a rollout is taken") };
            let mut shape = vec![self.rows];
            shape.extend(&observations.leaves[leaf].shape);
            let (dtype, steps) = (observations.leaves[leaf].dtype, lease.steps() + 1);
            rollout_view(rollout, dtype, steps, &shape, before.leaf_offset(leaf))
        };
        let parts = [
            observations.root.assemble(rollout.py(), &leaf)?,
            outcome(DType::F64, rewards, first.rewards_offset())?,
            outcome(DType::Bool, &[rows], first.terminations_offset())?,
            outcome(DType::Bool, &[rows], first.truncations_offset())?,
        ];
        PyTuple::new(rollout.py(), parts)
    }
}
