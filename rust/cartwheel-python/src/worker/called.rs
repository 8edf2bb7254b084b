//! Calls of environments whose results are written later.

use cartwheel_engine::autoreset::{Autoreset, Prepared, Refusal};
use cartwheel_engine::{PhaseTag, Transition};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::worker::rows::PyRows;

/// The result of a call of a row's environment before the row had a place in a batch.
#[derive(Debug)]
pub(super) enum Called {
    Step(Option<Prepared<PyErr>>),
    /// With the keywords, for a replacement.
    Reset(PyResult<()>, Option<Py<PyDict>>),
}

/// Whether a reset leaves a row unchanged.
pub(super) fn leaves(resets: &Bound<'_, PyList>, row: usize) -> bool {
    resets.get_item(row).is_ok_and(|how| how.is_none())
}

/// Resets the new environment of a row that lost its old one. The caller's step returns a cut,
/// unless the machine was about to reset the row anyway.
pub(super) fn restart(autoreset: &Autoreset, batch: &mut PyRows<'_, '_, '_>, row: usize) -> Called {
    let outcome = batch.call_reset(row, None);
    Called::Step(Some(match autoreset.phase(row) {
        PhaseTag::Over => Prepared::Reset(outcome),
        _ => Prepared::Stepped(outcome.map(|()| Transition::CUT)),
    }))
}

/// The pool refuses such steps before they are published, so only a bug of this package shows
/// these.
pub(super) fn refused(refusal: Refusal<PyErr>) -> PyErr {
    match refusal {
        Refusal::Environment(error) => error,
        Refusal::Over => PyRuntimeError::new_err("the row's episode is over"),
        Refusal::Failed => PyRuntimeError::new_err("the row failed and has not been reset"),
        Refusal::Unstarted => PyRuntimeError::new_err("the row was never reset"),
    }
}
