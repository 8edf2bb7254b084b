//! Calls a method of an environment.
//!
//! The stable ABI of Python 3.10 has one function that calls a method without a tuple of arguments and
//! an object for the bound method: `PyObject_CallMethodObjArgs`. PyO3 does not use it, since it is
//! variadic. It saves a tenth of what a row costs whose environment does nothing.
//!
//! # Invariants
//!
//! 1. Python is called while attached, with live objects, and a null pointer follows the last argument.
#![expect(unsafe_code, reason = "a variadic function of Python, see the invariants")]

use std::ptr::null_mut;

use pyo3::ffi::{PyObject, PyObject_CallMethodObjArgs};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// `object.name(argument)`.
pub(super) fn call_method<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    argument: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (object, name, end) = (object.as_ptr(), name.as_ptr(), null_mut::<PyObject>());
    // SAFETY: the objects live as long as their references; the name is text (invariant 1).
    let result = unsafe { PyObject_CallMethodObjArgs(object, name, argument.as_ptr(), end) };
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(argument.py(), result) }
}
