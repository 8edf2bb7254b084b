//! Open files, as Python sees them.
//!
//! # Invariants
//!
//! 1. A descriptor that Python gives to a [`PyDescriptor`] is open, and no other code uses or closes it
//!    from then on: `python/cartwheel/workers` makes it for this purpose.
#![expect(unsafe_code, reason = "descriptors cross the border as integers, see the invariants")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[pyclass(frozen, name = "Descriptor", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyDescriptor(OwnedFd);

#[pymethods]
impl PyDescriptor {
    #[new]
    fn new(descriptor: RawFd) -> PyResult<Self> {
        if descriptor < 0 {
            let text = format!("a descriptor is not negative, got {descriptor}");
            return Err(PyValueError::new_err(text));
        }
        // SAFETY: Python gives it away (invariant 1), and it is not -1, which an `OwnedFd` never is.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    fn fileno(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl PyDescriptor {
    /// Another descriptor of the same file.
    pub(crate) fn try_clone(&self) -> PyResult<OwnedFd> {
        Ok(self.0.try_clone()?)
    }
}

impl From<OwnedFd> for PyDescriptor {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}
