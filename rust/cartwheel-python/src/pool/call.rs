//! Resets of all rows and control calls: they begin with one message for each worker.

use cartwheel_engine::Call;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::known::intern;
use crate::pool::posted::{To, leave};
use crate::pool::reset_flags;
use crate::pool::state::{State, is_true};

impl State {
    /// Begins a reset of the rows in `mask`, by default of all rows. They drop what was kept for
    /// their next automatic reset; so do their workers.
    pub(super) fn begin_reset<'py>(
        &mut self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
        calling: &str,
    ) -> PyResult<()> {
        self.begin_queued(py, Call::Reset, calling, messages, reset_flags(mask.is_none()))?;
        self.reset_mask = mask.map(|mask| mask.clone().unbind());
        let is_reset = |row: &usize| mask.is_none_or(|mask| is_true(mask, *row));
        self.next_resets.retain(|row, _| !is_reset(row));
        self.send_queued(py).map(drop)
    }

    /// Begins a control call, which returns the answers of `rows`.
    pub(super) fn begin_call(
        &mut self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        rows: Option<Py<PyAny>>,
        calling: &str,
    ) -> PyResult<()> {
        self.check_idle(py, calling)?;
        self.called_rows = rows;
        self.begin_queued(py, Call::Call, calling, messages, 0)?;
        self.send_queued(py).map(drop)
    }

    /// Begins a reset or a control call, whose messages are queued then. `calling` is the method that
    /// the user called, and the shards get `flags`.
    fn begin_queued(
        &mut self,
        py: Python<'_>,
        call: Call,
        calling: &str,
        messages: &Bound<'_, PyAny>,
        flags: u32,
    ) -> PyResult<()> {
        let explain = |error| self.link.explain(py, error, call, calling);
        self.pool.check(call).map_err(explain)?;
        if self.native.is_some() {
            leave(self.link.bind(py), To::All, messages)?;
            return self.pool.begin(call, flags).map_err(explain);
        }
        self.pool.begin(call, flags).map_err(explain)?;
        self.queue(py, To::All, messages)
    }

    /// The result of `reset`.
    pub(super) fn finish_reset<'py>(
        &mut self,
        py: Python<'py>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut received = self.finish(py, Some(Call::Reset), calling, timeout)?;
        self.collect_or_drop(py, Some(Call::Reset), &mut received)?.into_observations(py)
    }

    /// The result of `reset`, with the infos of each row.
    pub(super) fn finish_reset_by_row<'py>(
        &mut self,
        py: Python<'py>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut received = self.finish(py, Some(Call::Reset), calling, timeout)?;
        let lease = self.load(py, &mut received)?;
        let Self { link, batches, infos, by_row, .. } = self;
        let dicts = by_row.reset(py, infos)?;
        let (observations, _) = batches.observations(link.bind(py), lease, infos)?;
        PyTuple::new(py, [observations, dicts])
    }

    /// The answers to a control call.
    pub(super) fn finish_call<'py>(
        &mut self,
        py: Python<'py>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let received = PyDict::new(py); // of the workers that answered before others died
        loop {
            let asked = self.finish(py, Some(Call::Call), calling, timeout)?;
            let announced = self.announced.with(&self.pool, &asked).rests;
            let (link, arguments) = (self.link.bind(py), (&received, announced, &self.called_rows));
            let answers = link.call_method1(intern!(py, "receive_answers"), arguments)?;
            if !answers.is_none() {
                return Ok(answers);
            }
            let arguments = (&received, &self.posts.last);
            let messages = link.call_method1(intern!(py, "asked_again"), arguments)?;
            let begun = self.pool.begin(Call::Call, 0);
            begun.map_err(|error| self.link.explain(py, error, Call::Call, calling))?;
            self.post(py, To::All, &messages)?;
        }
    }
}
