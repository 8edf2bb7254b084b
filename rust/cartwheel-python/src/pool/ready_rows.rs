//! Rows that are received as they are done, each with its own info or exception; and worker processes that
//! are started, or replaced, while other rows go on.
//!
//! Each row must be the only one of its worker: messages of several rows would have to be received in
//! the order in which their worker announced them.

use std::time::Duration;

use cartwheel_engine::pool::Lost;
use cartwheel_engine::worker::ProcessHandle;
use cartwheel_engine::{Call, Error};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::channel::as_duration;
use crate::error::to_py_err;
use crate::known::intern;
use crate::pool::State;
use crate::pool::batch::{load, of_batch};

/// For each row of a dead worker, whether its episode was over; its rows whose reset was sent; its rows
/// whose results are complete; the number from which its next process numbers its messages.
pub(super) type LostWork = (Vec<bool>, Vec<usize>, Vec<usize>, u64);

impl State {
    /// Waits for a row, a wake-up, a death or the time-out: rows, observations, rewards, terminations,
    /// truncations, infos, and the exceptions of rows that failed; `None` if no row is done.
    pub(super) fn receive_ready<'py>(
        &mut self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        // While a worker does not read, rows are only looked at.
        let is_sent = self.send_queued(py)?;
        let timeout = if is_sent { as_duration(timeout) } else { Some(Duration::ZERO) };
        let Self { pool, closing, gil, .. } = self;
        let outcome = gil.during(py, || pool.receive_ready(timeout, &mut || closing.has_begun()));
        let mut received = match outcome {
            Ok(Some(received)) => received,
            Ok(None) | Err(Error::WorkerDied { .. } | Error::StillWaiting { .. }) => {
                return Ok(None);
            }
            Err(error) => {
                let error = if matches!(error, Error::Interrupted) { Error::Closed } else { error };
                return Err(self.callbacks.explain(py, error, Call::Step, "recv"));
            }
        };
        let mut messages = self.message_counts.announced(&self.pool, &received);
        let faults = std::mem::take(&mut messages.faults);
        let callbacks = self.callbacks.bind(py);
        let exceptions = if faults.is_empty() {
            PyDict::new(py)
        } else {
            let raised = callbacks.call_method1(intern!(py, "exceptions_by_row"), (faults,))?;
            raised.cast_into::<PyDict>()?
        };
        load(callbacks, &self.pool, &mut self.infos, &received, &messages, None)?;
        // Results of a row may raise anything when they are loaded; the other rows go on.
        let infos = self.infos.of_rows(py, |row, error| {
            if !error.is_instance_of::<PyException>(py) {
                return Err(error);
            }
            exceptions.set_item(row, error.into_value(py))
        })?;
        let infos = PyList::new(py, infos)?;
        let rows = PyList::new(py, received.rows.iter())?;
        let filled = &mut received.lease;
        let block = self.batches.block(py, &mut self.blocks, rows.len())?;
        let outcomes = self.batches.outcomes(py, block, of_batch(filled.as_ref())?, rows.len())?;
        let [rewards, terminations, truncations] = outcomes;
        let (observations, _) = self.batches.observations(callbacks, filled, &self.infos, block)?;
        let [infos, exceptions] = [infos.into_any(), exceptions.into_any()];
        let parts = [observations, rewards, terminations, truncations, infos, exceptions];
        let parts = std::iter::once(rows.into_any()).chain(parts).collect::<Vec<_>>();
        Ok(Some(PyTuple::new(py, parts)?))
    }

    /// Takes the lost work of a worker that died or was never started, after its process has ended.
    pub(super) fn lost(&mut self, worker: usize) -> LostWork {
        let Lost { over, resetting, filled } = self.pool.lost(worker);
        (over, resetting, filled, self.message_counts.next_process(&self.pool, worker))
    }

    /// Lets a process that serves replace that worker.
    pub(super) fn resume(&mut self, worker: usize, pid: u32, filled: Vec<usize>) -> PyResult<()> {
        let handle = ProcessHandle::new(pid).map_err(to_py_err)?;
        self.message_counts.follow(&self.pool, worker, filled);
        self.pool.resume(worker, handle);
        Ok(())
    }
}
