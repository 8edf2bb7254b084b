//! Resets and control calls: they begin with messages to workers.

use cartwheel_engine::Call;
use cartwheel_engine::space::DType;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{as_contiguous, copied_flags};
use crate::error::{in_flight, not_pending, to_py_err};
use crate::known::intern;
use crate::pool::batch::Outputs;
use crate::pool::messages::Recipients;
use crate::pool::rows::to_rows;
use crate::pool::{State, is_reset, reset_flags};

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
        // A copy: the caller may change the mask before the results are received.
        let copied = |mask| Ok::<_, PyErr>(copied_flags(&as_contiguous(mask, DType::Bool)?));
        let mask = mask.map(copied).transpose()?;
        if let Some(masks) = &mut self.masks {
            masks.take_unread(&self.infos);
        }
        self.begin_task(py, Call::Reset, calling, messages, reset_flags(mask.is_none()))?;
        self.queue_for_workers(py, messages)?; // the workers wait for them
        if let Some(masks) = &mut self.masks {
            masks.begin_reset(mask.as_deref());
        }
        self.next_resets.retain(|&row, _| !is_reset(mask.as_deref(), row));
        self.reset_mask = mask;
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
        self.begin_task(py, Call::Call, calling, messages, 0)?;
        self.called_rows = rows;
        self.queue_for_workers(py, messages)?;
        self.send_queued(py).map(drop)
    }

    /// Begins a reset or a control call, after its messages to native shards were posted. `calling` is
    /// the method that the user called, and the shards get `flags`.
    fn begin_task(
        &mut self,
        py: Python<'_>,
        call: Call,
        calling: &str,
        messages: &Bound<'_, PyAny>,
        flags: u32,
    ) -> PyResult<()> {
        let explain = |error| self.callbacks.explain(py, error, call, calling);
        if let Some(native) = &self.native {
            self.pool.check(call).map_err(explain)?; // a pending call may not have read its messages
            native.get().post(messages)?;
        }
        self.pool.begin(call, flags).map_err(explain)
    }

    /// Queues the messages of a task that has just begun, unless native shards have got them before.
    fn queue_for_workers(&mut self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.native.is_some() { Ok(()) } else { self.queue(py, Recipients::All, messages) }
    }

    pub(super) fn finish_reset<'py>(
        &mut self,
        py: Python<'py>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut received = self.finish(py, Some(Call::Reset), calling, timeout)?;
        self.complete_resets(py, Some(Call::Reset), &mut received, calling)?;
        let show = |outputs: Outputs<'py>| outputs.into_observations(py);
        self.collect_or_drop(py, Some(Call::Reset), &mut received, show)
    }

    pub(super) fn finish_reset_by_row<'py>(
        &mut self,
        py: Python<'py>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut received = self.finish(py, Some(Call::Reset), calling, timeout)?;
        self.complete_resets(py, Some(Call::Reset), &mut received, calling)?;
        self.or_drop(Some(Call::Reset), &mut received, |state, received| {
            state.load_infos(py, received)?;
            let Self { callbacks, batches, blocks, infos, by_row, .. } = state;
            let dicts = by_row.reset(py, infos)?;
            let block = batches.block(py, blocks, infos.rows)?;
            let (callbacks, filled) = (callbacks.bind(py), &mut received.lease);
            let (observations, _) = batches.observations(callbacks, filled, infos, block)?;
            state.end_copied(received);
            PyTuple::new(py, [observations, dicts])
        })
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
            let announced = self.message_counts.announced(&self.pool, &asked).rests;
            let (callbacks, arguments) =
                (self.callbacks.bind(py), (&received, announced, &self.called_rows, timeout));
            let answers = callbacks.call_method1(intern!(py, "receive_answers"), arguments)?;
            if !answers.is_none() {
                return Ok(answers);
            }
            let arguments = (&received, &self.outgoing.last);
            let messages = callbacks.call_method1(intern!(py, "asked_again"), arguments)?;
            let begun = self.pool.begin(Call::Call, 0);
            begun.map_err(|error| self.callbacks.explain(py, error, Call::Call, calling))?;
            self.post(py, Recipients::All, &messages)?;
        }
    }

    /// Sends resets to `rows`, with one message for each worker that has some of the rows; the
    /// shards get `flags`. `in_order`: see `Sending::in_order`.
    pub(super) fn send_resets(
        &mut self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        messages: &Bound<'_, PyAny>,
        calling: &str,
        flags: u32,
        in_order: bool,
    ) -> PyResult<()> {
        let rows = to_rows(rows)?;
        let all = rows.len() == self.rows;
        let explain = |error| self.callbacks.explain_for(py, error, Call::Reset, calling, all);
        let sending = self.pool.sending(Call::Reset, Some(&rows)).map_err(explain)?;
        let sending = if in_order { sending.in_order() } else { sending };
        if let Some(native) = &self.native {
            native.get().post_row_resets(messages)?;
        }
        sending.send(flags).map_err(to_py_err)?;
        if let Some(episodes) = &mut self.episodes {
            episodes.resets_sent(&rows);
        }
        for row in &rows {
            self.next_resets.remove(row);
        }
        if self.native.is_some() { Ok(()) } else { self.post(py, Recipients::Some, messages) }
    }

    /// The next batch, whose rows were all reset: observations and infos.
    pub(super) fn receive_resets<'py>(
        &mut self,
        py: Python<'py>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stepping = self.pool.stepping();
        if !stepping.is_empty() {
            return Err(in_flight(py, calling, &stepping)); // their rewards must not be dropped
        }
        if !self.pool.is_flying() {
            return Err(not_pending(py, Call::Reset));
        }
        let mut received = self.finish(py, None, calling, timeout)?;
        self.complete_resets(py, None, &mut received, calling)?;
        self.collect_or_lose(py, None, &mut received, |outputs| outputs.into_observations(py))
    }
}
