//! Steps of all rows, or of some.

use cartwheel_engine::Call;
use cartwheel_engine::pool::Received;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::pool::batch::{Outputs, name_rows, narrow_rewards};
use crate::pool::state::State;

impl State {
    /// `send` and `recv` in one. Only a batch of `rows` says which rows it has.
    pub(super) fn step<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        rows: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.send_steps(py, actions, rows, "step")?;
        let call = rows.is_none().then_some(Call::Step);
        self.receive(py, call, None, self.timeout, "step")
    }

    /// `step_async` and `step_wait_by_row` in one.
    pub(super) fn step_by_row<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        reset_infos: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.send_steps(py, actions, None, "step")?;
        self.finish_step_by_row(py, "step", self.timeout, reset_infos)
    }

    /// Waits for the step of all rows if `call` is one; otherwise for the next batch of rows that were
    /// sent, and names its rows. `portion` is the least and the most rows of such a batch; `None`: a
    /// whole one.
    pub(super) fn receive<'py>(
        &mut self,
        py: Python<'py>,
        call: Option<Call>,
        portion: Option<(usize, usize)>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut received = self.finish_step(py, call, portion, calling, timeout)?;
        let outputs = self.collect_or_lose(py, call, &mut received)?;
        if call.is_none() {
            name_rows(&outputs.infos, self.episodes.as_ref(), received.rows.iter())?;
        }
        outputs.into_tuple(py)
    }

    /// Both halves of a step, if it has two.
    fn finish_step(
        &mut self,
        py: Python<'_>,
        call: Option<Call>,
        portion: Option<(usize, usize)>,
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<Received> {
        // `send` may have begun a step of all rows.
        let call = call.or_else(|| self.pool.pending().filter(|call| *call == Call::Step));
        let size = self.pool.batch_size();
        let portion = portion.unwrap_or((size, size));
        let received = self.finish_some(py, call, portion, calling, timeout)?;
        if call.is_some() { self.judged(py, received, calling) } else { Ok(received) }
    }

    /// Makes Python's results of a batch. If that raises, nobody sees what its rows returned.
    pub(super) fn collect_or_lose<'py>(
        &mut self,
        py: Python<'py>,
        call: Option<Call>,
        received: &mut Received,
    ) -> PyResult<Outputs<'py>> {
        let outputs = self.collect_or_drop(py, call, received);
        if outputs.is_err() {
            self.lose(received.rows.iter());
        }
        outputs
    }

    /// Observations, rewards, whether episodes are over, and the infos of each row; those of resets
    /// replace entries of `reset_infos`.
    pub(super) fn finish_step_by_row<'py>(
        &mut self,
        py: Python<'py>,
        calling: &str,
        timeout: Option<f64>,
        reset_infos: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut received = self.finish_step(py, Some(Call::Step), None, calling, timeout)?;
        let lease = self.load(py, &mut received)?;
        let Self { link, batches, infos, by_row, rows, .. } = self;
        let rewards = narrow_rewards(py, &lease, *rows)?;
        let [dones, dicts] = by_row.step(py, infos, &lease, reset_infos)?;
        let (observations, _) = batches.observations(link.bind(py), lease, infos)?;
        PyTuple::new(py, [observations, rewards, dones, dicts])
    }
}
