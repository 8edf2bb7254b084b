//! Parameters of native rows, in the form of a Python environment's attributes.

use cartwheel_engine::env::ParameterValue;
use cartwheel_engine::space::DType;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

use crate::array::dtype;

/// A parameter as a Python value.
pub(crate) fn from_value(py: Python<'_>, value: ParameterValue) -> PyResult<Bound<'_, PyAny>> {
    match value {
        ParameterValue::None => Ok(py.None().into_bound(py)),
        ParameterValue::Bool(flag) => flag.into_bound_py_any(py),
        ParameterValue::Int(int) => int.into_bound_py_any(py),
        ParameterValue::Float(float) => float.into_bound_py_any(py),
        ParameterValue::Float32(float) => PyArray1::from_slice(py, &[float]).get_item(0),
        ParameterValue::Text(text) => text.into_bound_py_any(py),
        ParameterValue::Ints(ints) => ints.into_bound_py_any(py),
        ParameterValue::Floats(floats) => Ok(PyArray1::from_vec(py, floats).into_any()),
        ParameterValue::Float32s(floats) => Ok(PyArray1::from_vec(py, floats).into_any()),
        ParameterValue::Texts(texts) => texts.into_bound_py_any(py),
    }
}

/// A parameter from a Python value.
pub(crate) fn to_value(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ParameterValue> {
    if value.is_none() {
        return Ok(ParameterValue::None);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(ParameterValue::Bool(flag.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return value.extract().map(ParameterValue::Int).map_err(|_| {
            PyOverflowError::new_err(format!("`{name}` is too large for 64 bits: {value}"))
        });
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(ParameterValue::Float(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(ParameterValue::Text(value.extract()?));
    }
    if dtype::from_scalar(value)? == Some(DType::F32) {
        return Ok(ParameterValue::Float32(value.extract()?));
    }
    if let Ok(floats) = value.cast::<PyArray1<f32>>() {
        return Ok(ParameterValue::Float32s(floats.readonly().as_array().to_vec()));
    }
    if let Ok(texts) = value.extract::<Vec<String>>() {
        return Ok(ParameterValue::Texts(texts));
    }
    if let Ok(ints) = value.extract::<Vec<i64>>() {
        return Ok(ParameterValue::Ints(ints));
    }
    if let Ok(floats) = value.extract::<Vec<f64>>() {
        return Ok(ParameterValue::Floats(floats));
    }
    if let Ok(item) = value.call_method0("item") {
        return to_value(name, &item); // a NumPy scalar
    }
    let kind = value.get_type();
    Err(PyTypeError::new_err(format!("`{name}` cannot be of type {kind}")))
}
