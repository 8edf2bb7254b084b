//! Converts the core's errors to Python exceptions, all in this file.

use cartwheel_core::Error as EnvError;
use cartwheel_engine::{Call, Error, named_rows};
use pyo3::exceptions::{
    PyImportError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyTypeError,
    PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::interpreter::attach;
use crate::known::imported;

/// The id of simulations of the caller's own models, which messages call by what makes them.
const SIMULATION: &str = "_Simulation-v0";

/// An exception of a class that is defined in Python.
macro_rules! python_error {
    ($py:expr, $module:literal, $class:literal, $args:expr) => {{
        match imported!($py, $module, $class).cast::<PyType>() {
            Ok(class) => PyErr::from_type(class.clone(), $args),
            Err(other) => other.into(),
        }
    }};
}

/// The exception for an error that needs no further context.
pub(crate) fn to_py_err(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    let text = to_text(&error);
    match error {
        Error::Os { cause, .. } => match cause.raw_os_error() {
            Some(number) => PyOSError::new_err((number, text)),
            None => PyOSError::new_err(text),
        },
        Error::OutOfMemory { .. } => PyMemoryError::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::EpisodeOver { rows } => {
            attach(|py| python_error!(py, "cartwheel.errors", "EpisodeOverError", (rows,)))
        }
        Error::NeedsReset { .. } | Error::NoEpisode { .. } => attach(|py| {
            python_error!(py, "gymnasium.error", "ResetNeeded", (text + "; call reset() first",))
        }),
        Error::NeverReset { rows } => attach(|py| {
            let error = python_error!(py, "gymnasium.error", "ResetNeeded", (text,));
            noted(py, error, &format!("{} were never reset", named_rows(&rows)))
        }),
        Error::Recording { .. } => PyRuntimeError::new_err(text + " by `end_rollout()`"),
        Error::BadPlan(_)
        | Error::Mismatch { .. }
        | Error::UnknownEnv(_)
        | Error::SteppedTogether
        | Error::BadId(_)
        | Error::BadState(_)
        | Error::Env(
            EnvError::BadOptions(_) | EnvError::BadParameter(_) | EnvError::ActionOutOfRange { .. },
        ) => PyValueError::new_err(text),
        Error::NoSuchRow { row, rows } => PyValueError::new_err(format!(
            "`env_index` names row {row}; there are rows 0 to {}",
            rows - 1
        )),
        Error::NamedTwice(row) => {
            PyValueError::new_err(format!("`env_index` names row {row} twice"))
        }
        Error::BadPlugin(_) => PyImportError::new_err(text),
        Error::WrongActionDType { .. } => PyTypeError::new_err(text),
        Error::Plugin { .. } => {
            attach(|py| python_error!(py, "cartwheel.errors", "PluginError", (text,)))
        }
        Error::Failed { .. } => {
            attach(|py| python_error!(py, "cartwheel.errors", "EnvFailedError", (text,)))
        }
        Error::Panicked { .. } => {
            attach(|py| python_error!(py, "cartwheel.errors", "EnvPanicError", (text,)))
        }
        Error::Corrupt { .. } => {
            attach(|py| python_error!(py, "cartwheel.errors", "BrokenPoolError", (text,)))
        }
        // The pool adds context to the other errors; without it they are bugs of this package.
        _ => PyRuntimeError::new_err(text),
    }
}

/// The message of [`to_py_err`].
pub(crate) fn to_text(error: &Error) -> String {
    error.to_string().replace(SIMULATION, "cartwheel.mujoco")
}

/// A plugin wrote a value that cannot be read.
pub(crate) fn unreadable(error: impl Into<Error>) -> PyErr {
    let text =
        format!("the plugin wrote an info or a parameter that cannot be read: {}", error.into());
    attach(|py| python_error!(py, "cartwheel.errors", "PluginError", (text,)))
}

/// The exception for wrong arguments of a return estimator: dtypes are checked before the core gets
/// the arrays, so only values and shapes are left.
pub(crate) fn returns_error(error: cartwheel_kernels::returns::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The exception with a note, for information that Gymnasium's own message does not have.
pub(crate) fn noted(py: Python<'_>, error: PyErr, note: &str) -> PyErr {
    let added = imported!(py, "cartwheel.errors", "add_note").call1((error.value(py), note));
    added.map_or_else(|missing| missing, |_| error)
}

/// `calling` was called although `pending` has not been waited for, or another thread is running
/// it. Gymnasium's own class and message.
pub(crate) fn already_pending(py: Python<'_>, calling: &str, pending: &str) -> PyErr {
    let text = pending_text(calling, pending);
    python_error!(py, "gymnasium.error", "AlreadyPendingCallError", (text, pending.to_owned()))
}

/// The message of [`already_pending`].
pub(crate) fn pending_text(calling: &str, pending: &str) -> String {
    let dot = if calling == "reset_async" { "" } else { "." };
    format!("Calling `{calling}` while waiting for a pending call to `{pending}` to complete{dot}")
}

/// As [`already_pending`], with the rows that have not answered, and how the call ends.
pub(crate) fn still_pending(py: Python<'_>, calling: &str, pending: Call, rows: &[usize]) -> PyErr {
    let error = already_pending(py, calling, &pending.to_string());
    let left = match rows {
        [] => "every row has answered".to_owned(),
        rows => format!("{} have not answered", named_rows(rows)),
    };
    let note = format!(
        "the wait for it was given up, and {left}: `{pending}_wait()` waits again, `reset()` drops \
         the results"
    );
    noted(py, error, &note)
}

/// `<call>_wait` was called without `<call>_async`. Gymnasium's own class and message.
pub(crate) fn not_pending(py: Python<'_>, call: Call) -> PyErr {
    let text = format!("Calling `{call}_wait` without any prior call to `{call}_async`.");
    python_error!(py, "gymnasium.error", "NoAsyncCallError", (text, call.to_string()))
}

/// `calling` concerns rows that were sent and not received.
pub(crate) fn in_flight(py: Python<'_>, calling: &str, rows: &[usize]) -> PyErr {
    let rows = named_rows(rows);
    let text = format!(
        "Calling `{calling}` while {rows} are in flight: `recv` them first, or `pause()` the collector that sent them."
    );
    python_error!(py, "gymnasium.error", "AlreadyPendingCallError", (text, "send".to_owned()))
}

/// `calling` concerns all rows, of which only these were sent and not received.
pub(crate) fn some_in_flight(py: Python<'_>, call: Call, calling: &str, rows: &[usize]) -> PyErr {
    let (rows, others) = match call {
        Call::Reset => (named_rows(rows), "reset others by `options[\"env_index\"]`"),
        _ => (named_rows(rows), "step others by `env_index`"),
    };
    let text = format!(
        "Calling `{calling}` for all rows while {rows} are in flight: `recv` them first, `pause()` the collector that sent them, or {others}."
    );
    python_error!(py, "gymnasium.error", "AlreadyPendingCallError", (text, "send".to_owned()))
}

/// The other end of a channel took too long. The class of `multiprocessing`.
pub(crate) fn took_too_long(py: Python<'_>) -> PyErr {
    python_error!(py, "multiprocessing", "TimeoutError", ("no message came in time",))
}

/// `recv` was called although nothing is in flight.
pub(crate) fn nothing_in_flight(py: Python<'_>) -> PyErr {
    let text = "Calling `recv` although no row is in flight: `send` actions first.";
    python_error!(py, "gymnasium.error", "NoAsyncCallError", (text, "recv".to_owned()))
}

/// The environment was closed. Gymnasium's own class and message.
pub(crate) fn closed(py: Python<'_>, class: &str) -> PyErr {
    python_error!(py, "gymnasium.error", "ClosedEnvironmentError", (closed_text(class),))
}

/// The message of [`closed`].
pub(crate) fn closed_text(class: &str) -> String {
    format!("Trying to operate on `{class}`, after a call to `close()`.")
}

/// A call panicked: `panic` is the call and the message of the panic.
pub(crate) fn broken(py: Python<'_>, panic: Option<(&str, &str)>) -> PyErr {
    python_error!(py, "cartwheel.errors", "BrokenPoolError", (broken_text(panic),))
}

/// The message of [`broken`].
pub(crate) fn broken_text(panic: Option<(&str, &str)>) -> String {
    let why =
        panic.map_or_else(String::new, |(calling, message)| format!(" in `{calling}`: {message}"));
    format!("this vector environment is broken by a panic{why}; call close() and make another one")
}

/// The object is used in a process other than its own.
pub(crate) fn forked(py: Python<'_>, owner: u32) -> PyErr {
    python_error!(py, "cartwheel.errors", "ForkedProcessError", (forked_text(owner),))
}

/// The message of [`forked`].
pub(crate) fn forked_text(owner: u32) -> String {
    format!(
        "this vector environment belongs to process {owner}; a forked child (process {}) cannot \
         use its workers, make a new one",
        std::process::id()
    )
}
