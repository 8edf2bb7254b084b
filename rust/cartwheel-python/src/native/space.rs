//! Spaces of native environments for Python.

use cartwheel_core::space::{Bounds, Space};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A space as nested tuples: its kind, then the arguments of Gymnasium's class of that name.
pub(crate) fn describe<'py>(py: Python<'py>, space: &Space) -> PyResult<Bound<'py, PyAny>> {
    let bounds = |bounds: &Bounds| match bounds {
        Bounds::All(bound) => bound.into_bound_py_any(py),
        Bounds::Each(bounds) => bounds.clone().into_bound_py_any(py),
        Bounds::Integer(bound) => bound.into_bound_py_any(py),
        Bounds::Integers(bounds) => bounds.clone().into_bound_py_any(py),
        other => Err(unknown(&format!("{other:?}"))),
    };
    match space {
        Space::Box { dtype, shape, low, high } => {
            ("Box", dtype.name(), shape.clone(), bounds(low)?, bounds(high)?).into_bound_py_any(py)
        }
        Space::Discrete { n, start } => ("Discrete", n, start).into_bound_py_any(py),
        Space::MultiDiscrete { shape, counts, starts } => {
            let (shape, counts, starts) = (shape.clone(), counts.clone(), starts.clone());
            ("MultiDiscrete", shape, counts, starts).into_bound_py_any(py)
        }
        Space::MultiBinary(shape) => ("MultiBinary", shape.clone()).into_bound_py_any(py),
        Space::Tuple(parts) => {
            let parts = parts.iter().map(|part| describe(py, part));
            let parts = PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?;
            ("Tuple", parts).into_bound_py_any(py)
        }
        Space::Dict(parts) => {
            let parts = parts.iter().map(|(key, part)| Ok((key.clone(), describe(py, part)?)));
            ("Dict", parts.collect::<PyResult<Vec<_>>>()?).into_bound_py_any(py)
        }
        other => Err(unknown(&format!("{other:?}"))),
    }
}

/// A kind of space or bound that was added to `cartwheel-core` and not here.
fn unknown(what: &str) -> PyErr {
    PyNotImplementedError::new_err(format!("{what} has no form in Python"))
}
