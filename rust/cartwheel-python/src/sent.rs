//! Rows that are sent and received in parts, as Python sees them.

use std::convert::Infallible;

use cartwheel::memory::Told;
use cartwheel::pool::{Event, Received};
use cartwheel::{Call, Error};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::actions::{Casting, Checked};
use crate::batch::{Outputs, env_index};
use crate::error::to_py_err;
use crate::pool::{PyPool, State};
use crate::shard::ACTIONS_BY_CHANNEL;

impl PyPool {
    /// Sends actions to `rows`, all of them for `None`.
    pub(crate) fn send_steps<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        actions: &Bound<'py, PyAny>,
        rows: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let explain = |error| self.explain(py, error, Call::Step, "send");
        let idle = !state.pool.is_flying();
        let rows = match rows {
            // Nothing is in flight and a batch has room for all: the quicker way.
            None if idle && state.pool.batch_size() == self.rows => {
                return self.begin_step(py, state, actions);
            }
            None => (0..self.rows).collect(),
            Some(rows) => to_rows(rows)?,
        };
        let mut sending = state.pool.sending(Call::Step, &rows).map_err(explain)?;
        if self.actions.opaque > 0 {
            let link = self.link.bind(py);
            let messages =
                link.call_method1(intern!(py, "pack_sent_actions"), (actions, rows.clone()))?;
            sending.send(ACTIONS_BY_CHANNEL);
            return self.post_some(py, &messages);
        }
        // In the space's own dtype: actions of several sends lie side by side.
        let casting = if self.native.is_some() { Casting::Safe } else { Casting::SameKind };
        let checked = Checked::new(&self.actions, actions, rows.len(), Some(casting))?;
        if let Some(native) = &self.native {
            let native = native.get();
            let checks = checked.store(|leaf, _, elements| native.check_actions(leaf, elements));
            checks.map_err(|error| to_py_err(of_row(error, &rows)))?;
        }
        let stored = checked.store(|leaf, tag, elements| {
            sending.store_actions(leaf, tag, elements);
            Ok::<_, Infallible>(())
        });
        let Ok(()) = stored;
        sending.send(0);
        Ok(())
    }

    /// Sends resets to `rows`, with one message for each worker that has some of them.
    pub(crate) fn send_resets(
        &self,
        py: Python<'_>,
        state: &mut State,
        rows: &Bound<'_, PyAny>,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let explain = |error| self.explain(py, error, Call::Reset, "send");
        let rows = to_rows(rows)?;
        let sending = state.pool.sending(Call::Reset, &rows).map_err(explain)?;
        if self.post_first {
            self.post_some(py, messages)?;
            sending.send(0);
            return Ok(());
        }
        sending.send(0);
        self.post_some(py, messages)
    }

    fn post_some(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<()> {
        self.link.bind(py).call_method1(intern!(py, "post_some"), (messages,))?;
        Ok(())
    }

    /// The next batch: observations, rewards, flags, infos.
    pub(crate) fn receive<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if state.pool.pending() == Some(Call::Step) {
            let result = self.finish_step(py, state, timeout)?;
            let rows = env_index(py, 0..self.rows);
            result.get_item(4)?.set_item(intern!(py, "env_index"), rows)?;
            return Ok(result);
        }
        let received = self.wait_for_rows(py, state, timeout)?;
        let State { pool, infos, .. } = state;
        let outputs = self.batches.collect_received(self.link.bind(py), pool, infos, received)?;
        let Outputs { observations, outcomes, infos } = outputs;
        let [rewards, terminations, truncations] = outcomes;
        let parts = [observations, rewards, terminations, truncations, infos.into_any()];
        Ok(PyTuple::new(py, parts)?.into_any())
    }

    fn wait_for_rows(
        &self,
        py: Python<'_>,
        state: &mut State,
        timeout: Option<f64>,
    ) -> PyResult<Received> {
        self.wait(py, state, Call::Step, "recv", timeout, |pool, timeout, interrupted| {
            pool.receive(timeout, interrupted)
        })
    }

    /// Receives everything that is in flight and drops it.
    pub(crate) fn discard_received(
        &self,
        py: Python<'_>,
        state: &mut State,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let link = self.link.bind(py);
        while state.pool.is_flying() {
            let received = self.wait_for_rows(py, state, timeout)?;
            for event in received.events() {
                let (row, failed, spilled) = match event {
                    Event::Failed(row) => (row, true, false),
                    Event::Infos(row, told) => (row, false, told == Told::Spilled),
                };
                if failed || spilled {
                    let told = (state.pool.shard_of(row), failed, spilled, row);
                    link.call_method1(intern!(py, "discard"), told)?;
                }
            }
        }
        Ok(())
    }
}

/// The error of an action with the row that it was for.
fn of_row(error: Error, rows: &[usize]) -> Error {
    match error {
        Error::ActionOutOfRange { row, value, space } => {
            Error::ActionOutOfRange { row: rows[row], value, space }
        }
        other => other,
    }
}

/// Rows from an array of integers, or a list of them.
fn to_rows(rows: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = rows.py();
    let array = ASARRAY.import(py, "numpy", "asarray")?.call1((rows,))?;
    let array = array.cast_into::<PyUntypedArray>()?;
    let kind: String = array.dtype().getattr(intern!(py, "kind"))?.extract()?;
    if array.ndim() != 1 || (!matches!(kind.as_str(), "i" | "u") && array.len() > 0) {
        return Err(PyTypeError::new_err(format!(
            "`env_index` must be a one-dimensional array of integers, got shape {:?} of {}",
            array.shape(),
            array.dtype()
        )));
    }
    if array.len() == 0 {
        return Err(PyValueError::new_err("`env_index` is empty: it must name at least one row"));
    }
    let array = array.call_method1(intern!(py, "astype"), (intern!(py, "int64"),))?;
    let rows = array.cast::<PyArray1<i64>>()?.readonly();
    let negative = |row: &i64| PyValueError::new_err(format!("`env_index` names row {row}"));
    let rows = rows.as_slice()?.iter();
    rows.map(|row| usize::try_from(*row).map_err(|_| negative(row))).collect()
}
