//! Unpacks what an environment returned.

use cartwheel_engine::space::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyList, PyTuple};

use crate::array::{as_array, as_contiguous, copy_numbers};
use crate::known::intern;

/// Takes the result of `method` as a tuple with a part for each of `names`.
pub(super) fn as_parts<'py>(
    result: Bound<'py, PyAny>,
    method: &str,
    names: &[&str],
) -> PyResult<Bound<'py, PyTuple>> {
    let tuple = match result.cast_into::<PyTuple>() {
        Ok(tuple) => tuple,
        Err(error) => as_tuple(&error.into_inner(), method, names)?,
    };
    if tuple.len() == names.len() {
        return Ok(tuple);
    }
    Err(wrong(method, names, &format_args!("{} values", tuple.len())))
}

/// A list as a tuple.
#[cold]
fn as_tuple<'py>(
    result: &Bound<'py, PyAny>,
    method: &str,
    names: &[&str],
) -> PyResult<Bound<'py, PyTuple>> {
    match result.cast::<PyList>() {
        Ok(list) => Ok(list.to_tuple()),
        Err(_) => Err(wrong(method, names, &result.get_type())),
    }
}

#[cold]
fn wrong(method: &str, names: &[&str], got: &dyn std::fmt::Display) -> PyErr {
    let names = names.join(", ");
    PyValueError::new_err(format!("{method}() must return ({names}), got {got}"))
}

/// A reward: a number, `None` or a masked number (NaN, as in NumPy), or an array of one element.
pub(super) fn number(reward: &Bound<'_, PyAny>) -> PyResult<f64> {
    if let Ok(float) = reward.cast_exact::<PyFloat>() {
        return Ok(float.value());
    }
    if reward.is_none() {
        return Ok(f64::NAN);
    }
    if let Ok(array) = reward.cast::<PyUntypedArray>() {
        if array.len() != 1 {
            let shape = array.shape();
            return Err(PyValueError::new_err(format!(
                "a reward must be a number, got an array of shape {shape:?}"
            )));
        }
        // `item` of a masked array ignores the mask; its `tolist` makes `None` of what is masked.
        let read = if array.ndim() == 0 {
            intern!(reward.py(), "tolist")
        } else {
            intern!(reward.py(), "item")
        };
        return number(&array.call_method0(read)?);
    }
    reward.extract().map_err(|error| no_number(reward, error))
}

/// The error for a reward that is not a number; one of its own `__float__` stays.
#[cold]
fn no_number(reward: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(reward.py()) {
        return error;
    }
    PyTypeError::new_err(format!("a reward must be a number, got {}", reward.get_type()))
}

/// A reward of several objectives: an array, or a list, of as many numbers as `into` has.
#[cold]
pub(super) fn numbers(reward: &Bound<'_, PyAny>, into: &mut Vec<f64>) -> PyResult<()> {
    if let Ok(list) = reward.cast_exact::<PyList>()
        && list.len() == into.len()
        && (list.iter().zip(&mut *into)).all(|(value, into)| {
            value.cast_exact::<PyFloat>().map(|number| *into = number.value()).is_ok()
        })
    {
        return Ok(()); // without an array
    }
    let array = as_array(reward)?;
    if array.shape() != [into.len()] {
        let (shape, width) = (PyTuple::new(reward.py(), array.shape())?, into.len());
        let advice = if array.ndim() == 0 {
            ": if a wrapper makes numbers of the rewards, give it the attribute `reward_space = None`"
        } else {
            ""
        };
        return Err(PyValueError::new_err(format!(
            "a reward must have the shape ({width},) of `reward_space`, got {shape}{advice}"
        )));
    }
    copy_numbers(&as_contiguous(array.as_any(), DType::F64)?, into);
    Ok(())
}

/// Whether an episode ended: any value with a truth value in Python.
pub(super) fn flag(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    match value.cast_exact::<PyBool>() {
        Ok(flag) => Ok(flag.is_true()),
        Err(_) => value.is_truthy(),
    }
}
