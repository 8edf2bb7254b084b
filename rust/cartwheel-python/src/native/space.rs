//! Spaces of native environments for Python.

use cartwheel_core::space::{Bounds, Space};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A space as nested tuples: its kind, then the arguments of Gymnasium's class of that name.
pub(crate) fn describe<'py>(py: Python<'py>, space: &Space) -> PyResult<Bound<'py, PyAny>> {
    match space {
        Space::Box { dtype, shape, low, high } => {
            let (low, high) = (bounds(py, low)?, bounds(py, high)?);
            ("Box", dtype.name(), shape.clone(), low, high).into_bound_py_any(py)
        }
        Space::Discrete { n, start } => ("Discrete", n, start).into_bound_py_any(py),
        Space::MultiDiscrete { shape, counts, starts } => {
            ("MultiDiscrete", shape.clone(), counts.clone(), starts.clone()).into_bound_py_any(py)
        }
        Space::MultiBinary(shape) => ("MultiBinary", shape.clone()).into_bound_py_any(py),
        Space::Text(text) => {
            ("Text", text.min_length, text.max_length, &text.charset).into_bound_py_any(py)
        }
        Space::Tuple(parts) => {
            let parts = parts.iter().map(|part| describe(py, part));
            let parts = PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?;
            ("Tuple", parts).into_bound_py_any(py)
        }
        Space::Dict(parts) => {
            let parts = parts.iter().map(|(key, part)| Ok((key.clone(), describe(py, part)?)));
            ("Dict", parts.collect::<PyResult<Vec<_>>>()?).into_bound_py_any(py)
        }
        other => Err(PyValueError::new_err(format!("Gymnasium has no space {other}"))),
    }
}

/// One number for all elements, or a list with one for each.
fn bounds<'py>(py: Python<'py>, bounds: &Bounds) -> PyResult<Bound<'py, PyAny>> {
    match bounds {
        Bounds::All(bound) => bound.into_bound_py_any(py),
        Bounds::Each(bounds) => bounds.clone().into_bound_py_any(py),
        Bounds::Integer(bound) => bound.into_bound_py_any(py),
        Bounds::Integers(bounds) => bounds.clone().into_bound_py_any(py),
        other => Err(PyValueError::new_err(format!("Gymnasium has no bounds {other:?}"))),
    }
}
