//! Rows that Python judges: a step has two halves, and between them a callable computes rewards and
//! flags.

use cartwheel_engine::Call;
use cartwheel_engine::memory::Lease;
use cartwheel_engine::native::Verdict;
use cartwheel_engine::pool::Finished;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::pool::actions::Checked;
use crate::pool::state::State;

/// The callable, and what it is going to see besides the observations.
#[derive(Debug)]
pub(super) struct Judge {
    callable: Py<PyAny>,
    /// The elements of the first leaf of the observations that rows show before the step.
    before: Vec<u8>,
    actions: Option<Py<PyAny>>,
}

type Column<'py, T> = Bound<'py, PyArray1<T>>;

impl Judge {
    pub(super) fn new(callable: Py<PyAny>) -> Self {
        Self { callable, before: Vec::new(), actions: None }
    }

    /// Copies what rows show before their next step: the caller may write the arrays of this batch.
    /// The places of the batch belong to `rows`, in their order.
    pub(super) fn remember(&mut self, lease: &Lease, rows: impl Iterator<Item = usize>) {
        let (layout, bytes) = (lease.layout(), lease.layout().leaf(0).row_bytes());
        self.before.resize(layout.rows() * bytes, 0);
        for (place, row) in rows.enumerate() {
            let into = &mut self.before[row * bytes..(row + 1) * bytes];
            lease.read(layout.leaf_offset(0) + place * bytes, into);
        }
    }

    /// The call whose batch is the result of a step.
    pub(super) fn last_call(judge: Option<&Self>) -> Call {
        if judge.is_some() { Call::Judge } else { Call::Step }
    }
}

impl State {
    /// Copies the actions of a step that is about to begin, if they are judged: the caller may write
    /// theirs before the step is finished.
    pub(super) fn keep_judged(&mut self, checked: &Checked<'_>, py: Python<'_>) -> PyResult<()> {
        if let Some(judge) = &mut self.judge {
            let actions = checked.batch(&self.actions, py)?;
            let copy = py.import(intern!(py, "copy"))?;
            judge.actions = Some(copy.call_method1(intern!(py, "deepcopy"), (actions,))?.unbind());
        }
        Ok(())
    }

    /// The second half of a step whose rows are judged; otherwise `first` itself. If the callable
    /// raises, the rows that were stepped need a reset.
    pub(super) fn judged(
        &mut self,
        py: Python<'_>,
        first: Finished,
        calling: &str,
    ) -> PyResult<Finished> {
        let Some(judge) = &mut self.judge else { return Ok(first) };
        let (callable, actions) = (judge.callable.clone_ref(py), judge.actions.take());
        let before = PyBytes::new(py, &judge.before);
        let observations = self.collect(py, first)?.observations;
        let verdict = callable
            .bind(py)
            .call1((before, actions, observations))
            .and_then(|verdict| Ok(verdict.extract::<(Column<'_, f64>, _, _)>()?))
            .and_then(|verdict| self.post_verdict(py, verdict));
        let explain = |error| self.link.explain(py, error, Call::Judge, calling);
        self.pool.begin(Call::Judge, 0).map_err(explain)?;
        let second = self.finish(py, Call::Judge, calling, None)?;
        if let Err(raised) = verdict {
            self.lose(0..self.rows);
            let messages = self.announced.with_task(&self.pool);
            self.link.discard(py, messages)?;
            return Err(raised);
        }
        Ok(second)
    }

    /// Leaves rewards, terminations and truncations of all rows for their shards.
    fn post_verdict(
        &self,
        py: Python<'_>,
        verdict: (Column<'_, f64>, Column<'_, bool>, Column<'_, bool>),
    ) -> PyResult<()> {
        let (rewards, terminations, truncations) = verdict;
        let bytes = |flags: &[bool]| flags.iter().copied().map(u8::from).collect();
        let all = Verdict {
            rewards: rewards.readonly().as_slice()?.to_vec(),
            terminations: bytes(terminations.readonly().as_slice()?),
            truncations: bytes(truncations.readonly().as_slice()?),
        };
        let native = self.native.as_ref().expect("only native rows are judged");
        native.bind(py).get().post_verdict(&all, self.pool.shards())
    }
}
