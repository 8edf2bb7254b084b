//! Python's side of a pool: the channels to its workers, and what only Python can do.

use std::ops::Range;
use std::time::Duration;

use cartwheel_engine::{Call, Error};
use pyo3::call::PyCallArgs;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::error::{
    already_pending, closed, in_flight, not_pending, nothing_in_flight, some_in_flight,
    still_pending, to_py_err,
};
use crate::known::intern;
use crate::pool::announced::Messages;

/// A `cartwheel.workers.callbacks.Link`, or the link of native environments.
#[derive(Debug)]
pub(super) struct Link {
    object: Py<PyAny>,
    /// The class of the vector environment, for errors.
    class_name: String,
    rows: usize,
    /// Whether the last step of all rows was begun by `send`: while it is pending, they are in
    /// flight.
    pub(super) all_sent: bool,
    /// Whether the last wait was given up; a reset may drop its result.
    pub(super) late: bool,
}

impl Link {
    pub(super) fn new(object: Py<PyAny>, class_name: String, rows: usize) -> Self {
        Self { object, class_name, rows, all_sent: false, late: false }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.object)
    }

    /// The Python object.
    pub(super) fn bind<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.object.bind(py)
    }

    /// The exception for an error of the core, with context that only the pool knows.
    pub(super) fn explain(&self, py: Python<'_>, error: Error, call: Call, calling: &str) -> PyErr {
        match error {
            Error::Closed => closed(py, &self.class_name),
            Error::AlreadyPending { pending: Call::Step, .. } if self.all_sent => {
                in_flight(py, calling, &(0..self.rows).collect::<Vec<_>>())
            }
            Error::AlreadyPending { pending, rows } if self.late => {
                let rows: Vec<usize> = rows.into_iter().flatten().collect();
                still_pending(py, calling, pending, &rows)
            }
            Error::AlreadyPending { pending, .. } => {
                already_pending(py, calling, &pending.to_string())
            }
            Error::NotPending { .. } => not_pending(py, call),
            Error::InFlight { rows } => in_flight(py, calling, &rows),
            Error::NothingInFlight => nothing_in_flight(py),
            Error::Timeout { timeout, rows } => {
                let rows: Vec<usize> = rows.into_iter().flatten().collect();
                self.exception(py, "timed_out", (calling, timeout.as_secs_f64(), rows))
            }
            Error::WorkerDied { worker, pid, rows } => {
                let rows: Vec<usize> = rows.collect();
                self.exception(py, "worker_died", (worker, pid, rows, call.to_string()))
            }
            other => to_py_err(other),
        }
    }

    /// The exception that a method of the link returns.
    fn exception<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: impl PyCallArgs<'py>,
    ) -> PyErr {
        let error = self.bind(py).call_method1(method, arguments);
        error.map_or_else(|error| error, PyErr::from_value)
    }

    /// Like [`Link::explain`]. If the call is for `all` rows, the exception says which of them are
    /// in flight.
    pub(super) fn explain_for(
        &self,
        py: Python<'_>,
        error: Error,
        call: Call,
        calling: &str,
        all: bool,
    ) -> PyErr {
        match error {
            Error::InFlight { rows } if all && rows.len() < self.rows => {
                some_in_flight(py, call, calling, &rows)
            }
            other => self.explain(py, other, call, calling),
        }
    }

    /// Reports the rows for which `waiting` has waited so long; the wait continues in any case.
    pub(super) fn remind(
        &self,
        py: Python<'_>,
        waiting: &str,
        waited: Duration,
        rows: Vec<Range<usize>>,
    ) {
        let rows: Vec<_> = rows.into_iter().map(|rows| (rows.start, rows.end)).collect();
        let (link, arguments) = (self.bind(py), (waiting, waited.as_secs_f64(), rows));
        if let Err(error) = link.call_method1(intern!(py, "still_waiting"), arguments) {
            error.write_unraisable(py, Some(link));
        }
    }

    /// Receives messages and drops them.
    pub(super) fn discard(&self, py: Python<'_>, messages: Messages) -> PyResult<()> {
        if !messages.faults.is_empty() || !messages.rests.is_empty() {
            let arguments = (messages.faults, messages.rests);
            self.bind(py).call_method1(intern!(py, "discard"), arguments)?;
        }
        Ok(())
    }
}
