//! A flag that Python sets and native code reads; documented in the stub.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

#[pyclass(frozen, name = "Flag", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyFlag(AtomicBool);

#[pymethods]
impl PyFlag {
    #[new]
    fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    #[getter]
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) // calls of one source follow each other
    }

    #[setter]
    fn set_is_set(&self, is_set: bool) {
        self.0.store(is_set, Ordering::Relaxed);
    }
}
