//! Steps of rows that Python judges: they have two halves.

use cartwheel_engine::Call;
use cartwheel_engine::native::Verdict;
use cartwheel_engine::pool::Received;
use cartwheel_engine::space::DType;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{as_contiguous, copied_flags, copy_numbers};
use crate::known::imported;
use crate::pool::actions::Checked;
use crate::pool::state::State;

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
        let explain = |error| self.link.explain(py, error, Call::Judge, calling);
        self.pool.begin(Call::Judge, 0).map_err(explain)?;
        let second = self.finish(py, Some(Call::Judge), calling, None)?;
        if let Err(raised) = verdict {
            self.drop_results(py, Some(Call::Step), &second);
            self.lose(0..self.rows);
            let messages = self.announced.with(&self.pool, &second);
            self.link.discard(py, messages)?;
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
