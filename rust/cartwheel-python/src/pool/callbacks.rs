//! Callbacks of a pool into Python, for what only Python can do: packing and unpacking messages, making
//! exceptions, starting processes.

use std::ops::Range;
use std::time::Duration;

use cartwheel_engine::{Call, Error};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::error::{
    already_pending, closed, in_flight, not_pending, noted, nothing_in_flight, some_in_flight,
    still_pending, to_py_err,
};
use crate::known::intern;

/// A `WorkerCallbacks` of `cartwheel.workers.callbacks`, or a `NativeCallbacks` of native environments.
#[derive(Debug)]
pub(super) struct Callbacks {
    object: Py<PyAny>,
    /// The class of the vector environment, for errors.
    class_name: String,
    rows: usize,
    /// Whether the last step of all rows was begun by `send`: while it is pending, they are in
    /// flight.
    pub(super) all_sent: bool,
    /// Whether the last wait was abandoned; a reset may drop its result.
    pub(super) has_abandoned: bool,
    /// The time limit of the last wait, in seconds: also for messages that were announced meanwhile.
    pub(super) seconds: Option<f64>,
}

impl Callbacks {
    pub(super) fn new(object: Py<PyAny>, class_name: String, rows: usize) -> Self {
        Self { object, class_name, rows, all_sent: false, has_abandoned: false, seconds: None }
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
            Error::AlreadyPending { pending, rows } if self.has_abandoned => {
                let rows: Vec<usize> = rows.into_iter().flatten().collect();
                still_pending(py, calling, pending, &rows)
            }
            Error::AlreadyPending { pending, .. } => {
                let error = already_pending(py, calling, &pending.to_string());
                noted(py, error, &format!("`{pending}_wait()` receives its results first"))
            }
            Error::NotPending { .. } => not_pending(py, call),
            Error::InFlight { rows } => in_flight(py, calling, &rows),
            Error::NothingInFlight => nothing_in_flight(py),
            Error::Timeout { timeout, rows } => {
                let rows: Vec<usize> = rows.into_iter().flatten().collect();
                self.exception(py, "timed_out", (calling, timeout.as_secs_f64(), rows))
            }
            Error::WorkerDied { worker, pid, .. } => {
                self.exception(py, "worker_died", (worker, pid, call.to_string()))
            }
            other => to_py_err(other),
        }
    }

    /// The exception that a callback returns.
    fn exception<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: impl PyCallArgs<'py>,
    ) -> PyErr {
        let error = self.bind(py).call_method1(method, arguments);
        error.map_or_else(|error| error, PyErr::from_value)
    }

    /// Like [`Callbacks::explain`]. If the call is for `all` rows, the exception says which of them are
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

    /// Reports the rows for which `waiting` has waited so long; the wait continues. The error is the exception
    /// of a signal handler, which ends it.
    pub(super) fn remind(
        &self,
        py: Python<'_>,
        waiting: &str,
        waited: Duration,
        rows: Vec<Range<usize>>,
    ) -> PyResult<()> {
        let rows: Vec<_> = rows.into_iter().map(|rows| (rows.start, rows.end)).collect();
        let (callbacks, arguments) = (self.bind(py), (waiting, waited.as_secs_f64(), rows));
        match callbacks.call_method1(intern!(py, "still_waiting"), arguments) {
            Err(error) if !error.is_instance_of::<PyException>(py) => return Err(error),
            Err(error) => error.write_unraisable(py, Some(callbacks)),
            Ok(_) => {}
        }
        Ok(())
    }
}
