//! A worker process that ends between two episodes of its row, and the one that follows it.
//!
//! `cartwheel.workers.retirement` describes both. The process ends within a task, before the reset
//! that begins the next episode. The process that replaces it repeats the task: a reset, or in
//! `SAME_STEP` the step that ended the episode, which it completes without a call of `step`.

use cartwheel_engine::Transition;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

/// The end of an episode that a retired worker left to this one, which resets the row.
#[derive(Debug)]
pub(crate) struct LeftEnd {
    pub(super) observation: Py<PyAny>,
    pub(super) info: Py<PyAny>,
    pub(super) transition: Transition,
    /// The reward, where rewards are arrays.
    pub(super) rewards: Vec<f64>,
}

impl LeftEnd {
    /// The end that the tuple of [`PyRows::retire`] describes.
    fn new(left: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (observation, reward, terminated, truncated, rewards, info) = left.extract()?;
        let transition = Transition { reward, terminated, truncated };
        Ok(Self { observation, info, transition, rewards })
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.observation)?;
        visit.call(&self.info)
    }
}

/// The retirement of a worker process of one row, before an episode of the row begins.
#[derive(Debug, Default)]
pub(crate) struct Retirement {
    /// Whether the worker is asked before each episode.
    pub(super) is_limited: bool,
    /// Whether this worker replaces one that retired, not one that died.
    pub(super) follows: bool,
    /// The last step that the retired worker left, if the task is a step in `SAME_STEP`.
    pub(super) left: Option<LeftEnd>,
}

impl Retirement {
    /// Reads the attributes of `cartwheel.workers.serving.worker.Worker`; returns also the observation
    /// that the row of a retired worker showed.
    pub(super) fn new(worker: &Bound<'_, PyAny>) -> PyResult<(Self, Option<Py<PyAny>>)> {
        let is_limited = worker.getattr("retires")?.extract()?;
        let handoff = worker.getattr("handoff")?;
        if handoff.is_none() {
            return Ok((Self { is_limited, ..Self::default() }, None));
        }
        let (shown, left): (Option<Py<PyAny>>, Option<Bound<'_, PyAny>>) = handoff.extract()?;
        let left = left.map(|left| LeftEnd::new(&left)).transpose()?;
        Ok((Self { is_limited, follows: true, left }, shown))
    }

    /// Tells Python's garbage collector which objects it keeps.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.left.iter().try_for_each(|left| left.traverse(visit))
    }
}
