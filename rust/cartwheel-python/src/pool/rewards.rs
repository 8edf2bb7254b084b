//! Steps of rows that Python judges: they have two halves.

use cartwheel_engine::Call;
use cartwheel_engine::memory::Lease;
use cartwheel_engine::native::Verdict;
use cartwheel_engine::pool::Received;
use cartwheel_engine::space::DType;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{as_contiguous, copied_flags, copy_numbers};
use crate::known::imported;
use crate::pool::State;
use crate::pool::actions::Checked;

impl State {
    /// Copies the actions of a step that is about to begin, if they are judged: the caller may write
    /// theirs before the step is finished.
    pub(super) fn keep_judged(&mut self, checked: &Checked<'_>, py: Python<'_>) -> PyResult<()> {
        if let Some(judge) = &mut self.judge {
            let actions = checked.batch(&self.actions, py)?;
            let deepcopy = imported!(py, "copy", "deepcopy");
            judge.actions = Some(deepcopy.call1((actions,))?.unbind());
        }
        Ok(())
    }

    /// The second half of a step whose rows are judged; otherwise `first` itself. If the callable
    /// raises, the rows that were stepped need a reset.
    pub(super) fn judged(
        &mut self,
        py: Python<'_>,
        mut first: Received,
        calling: &str,
    ) -> PyResult<Received> {
        let Some(judge) = &mut self.judge else { return Ok(first) };
        let (callable, actions) = (judge.callable.clone_ref(py), judge.actions.take());
        let before = PyBytes::new(py, &judge.before);
        let observations = self.collect(py, &mut first)?.observations;
        let verdict = callable
            .bind(py)
            .call1((before, actions, observations))
            .and_then(|verdict| verdict.extract::<[Bound<'_, PyAny>; 3]>())
            .and_then(|verdict| self.post_verdict(py, verdict));
        let explain = |error| self.callbacks.explain(py, error, Call::Judge, calling);
        self.pool.begin(Call::Judge, 0).map_err(explain)?;
        let second = self.finish(py, Some(Call::Judge), calling, None)?;
        if let Err(raised) = verdict {
            self.drop_results(py, Some(Call::Step), &second);
            self.lose(0..self.rows);
            self.discard_messages(py, &second)?;
            return Err(raised);
        }
        Ok(second)
    }

    /// Leaves rewards, terminations and truncations of all rows for their shards.
    fn post_verdict(&self, py: Python<'_>, verdict: [Bound<'_, PyAny>; 3]) -> PyResult<()> {
        let [numbers, terminations, truncations] = verdict;
        let mut rewards = Vec::new();
        copy_numbers(&as_contiguous(&numbers, DType::F64)?, &mut rewards);
        let [terminations, truncations] =
            [as_contiguous(&terminations, DType::Bool)?, as_contiguous(&truncations, DType::Bool)?]
                .map(|flags| copied_flags(&flags));
        let all = Verdict { rewards, terminations, truncations };
        let native = self.native.as_ref().expect("only native rows are judged");
        native.bind(py).get().post_verdict(&all)
    }
}

/// The callable, and what it is going to see besides the observations.
#[derive(Debug)]
pub(super) struct ExternalRewards {
    pub(super) callable: Py<PyAny>,
    /// The elements of the first leaf of the observations that rows show before the step.
    pub(super) before: Vec<u8>,
    pub(super) actions: Option<Py<PyAny>>,
}

impl ExternalRewards {
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
