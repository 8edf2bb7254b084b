//! What judges rows after the first half of each step: a callable of Python that computes rewards and
//! flags.

use cartwheel_engine::Call;
use cartwheel_engine::memory::Lease;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

/// The callable, and what it is going to see besides the observations.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) callable: Py<PyAny>,
    /// The elements of the first leaf of the observations that rows show before the step.
    pub(super) before: Vec<u8>,
    pub(super) actions: Option<Py<PyAny>>,
}

impl Judge {
    pub(super) fn new(callable: Py<PyAny>) -> Self {
        Self { callable, before: Vec::new(), actions: None }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.callable)?;
        visit.call(&self.actions)
    }

    /// Copies what rows show before their next step: the caller may write the arrays of this batch.
    /// The places of the batch belong to `rows`, in their order.
    pub(super) fn remember(&mut self, lease: &Lease, rows: impl Iterator<Item = usize>) {
        let (layout, bytes) = (lease.layout(), lease.layout().leaf(0).row_bytes());
        self.before.resize(layout.rows() * bytes, 0);
        for (place, row) in rows.enumerate() {
            let into = &mut self.before[row * bytes..(row + 1) * bytes];
            lease.read(layout.leaf_offset(0) + (lease.first() + place) * bytes, into);
        }
    }

    /// The call whose batch is the result of a step.
    pub(super) fn last_call(judge: Option<&Self>) -> Call {
        if judge.is_some() { Call::Judge } else { Call::Step }
    }
}
