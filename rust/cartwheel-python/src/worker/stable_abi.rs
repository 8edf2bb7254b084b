//! Functions of Python's stable ABI that PyO3 has no safe form of, for what each row needs.
//!
//! `PyObject_CallMethodObjArgs` calls a method without a tuple of arguments and an object for the bound
//! method. PyO3 does not use it, since it is variadic. It saves a tenth of what a row costs whose
//! environment does nothing.
//!
//! `PySequence_GetItem` takes an item of an array without a Python integer, which NumPy would have to
//! read again. PyO3 uses it for subclasses of `collections.abc.Sequence` alone, and arrays are not.
//!
//! # Invariants
//!
//! 1. Python is called while attached, with live objects, and a null pointer follows the last argument.
#![expect(unsafe_code, reason = "functions of Python, see the invariants")]

use std::ptr::null_mut;

use pyo3::ffi::{PyObject, PyObject_CallMethodObjArgs, PySequence_GetItem};
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
    // SAFETY: a method call returns a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(argument.py(), result) }
}

/// `array[row]`.
pub(super) fn item<'py>(array: &Bound<'py, PyAny>, row: usize) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the array lives as long as its reference (invariant 1).
    let result = unsafe { PySequence_GetItem(array.as_ptr(), row.cast_signed()) };
    // SAFETY: `PySequence_GetItem` returns a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(array.py(), result) }
}
