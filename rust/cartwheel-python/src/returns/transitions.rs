//! Transitions, gathered in Python by `cartwheel.returns.arrays`.

use std::num::NonZero;

use cartwheel_kernels::returns::{Bootstrap, Flags, Float, Transitions};
use numpy::PyUntypedArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::array::{Input, Numbers};
use crate::array::Number;

/// The attributes of a `Transitions` object.
#[derive(FromPyObject)]
pub(crate) struct PyTransitions<'py> {
    /// Their dtype decides that of the computation.
    pub(crate) rewards: Bound<'py, PyUntypedArray>,
    terminated: Bound<'py, PyAny>,
    truncated: Bound<'py, PyAny>,
    valid: Option<Bound<'py, PyAny>>,
    gamma: Bound<'py, PyAny>,
    bootstrap: String,
    num_threads: Option<NonZero<usize>>,
}

/// The same, borrowed.
pub(crate) struct Borrowed<'py, F: Number> {
    rewards: Input<'py, F>,
    flags: BorrowedFlags<'py>,
    valid: Option<Input<'py, u8>>,
    gamma: Numbers<'py, F>,
    bootstrap: Bootstrap,
    num_threads: Option<NonZero<usize>>,
}

pub(crate) struct BorrowedFlags<'py> {
    terminated: Input<'py, u8>,
    truncated: Input<'py, u8>,
}

impl<'py> BorrowedFlags<'py> {
    pub(crate) fn new(
        terminated: &Bound<'py, PyAny>,
        truncated: &Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        Ok(Self {
            terminated: Input::flags("terminated", terminated)?,
            truncated: Input::flags("truncated", truncated)?,
        })
    }

    pub(crate) fn flags(&self) -> PyResult<Flags<'_>> {
        Ok(Flags {
            terminated: self.terminated.time_major()?,
            truncated: self.truncated.time_major()?,
        })
    }
}

impl<'py> PyTransitions<'py> {
    pub(crate) fn borrow<F: Float + Number>(&self) -> PyResult<Borrowed<'py, F>> {
        let valid = self.valid.as_ref().map(|valid| Input::flags("valid", valid));
        Ok(Borrowed {
            rewards: Input::new("rewards", &self.rewards)?,
            flags: BorrowedFlags::new(&self.terminated, &self.truncated)?,
            valid: valid.transpose()?,
            gamma: Numbers::new("gamma", &self.gamma)?,
            bootstrap: to_bootstrap(&self.bootstrap)?,
            num_threads: self.num_threads,
        })
    }
}

impl<F: Float + Number> Borrowed<'_, F> {
    pub(crate) fn transitions(&self) -> PyResult<Transitions<'_, F>> {
        Ok(Transitions {
            rewards: self.rewards.time_major()?,
            flags: self.flags.flags()?,
            valid: self.valid.as_ref().map(Input::time_major).transpose()?,
            gamma: self.gamma.per_step()?,
            bootstrap: self.bootstrap,
            num_threads: self.num_threads,
        })
    }
}

/// The choice for bootstrapping, by its name in Python.
pub(crate) fn to_bootstrap(name: &str) -> PyResult<Bootstrap> {
    match name {
        "truncated" => Ok(Bootstrap::Truncated),
        "always" => Ok(Bootstrap::Always),
        "never" => Ok(Bootstrap::Never),
        other => Err(PyValueError::new_err(format!("{other:?} is not a choice for `bootstrap`"))),
    }
}
