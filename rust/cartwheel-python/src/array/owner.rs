//! Who owns the memory that arrays show: what stands behind every `base`.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

use cartwheel::memory::{AddressLease, Lease, RolloutLease};
use pyo3::prelude::*;

/// Keeps a slab leased for as long as some array shows it: the `base` of every array of one batch.
#[pyclass(frozen, module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct SlabLease(AddressLease);

impl SlabLease {
    pub(crate) fn new(lease: Lease) -> Self {
        Self(lease.by_address())
    }

    /// What keeps the slab.
    pub(crate) fn lease(&self) -> &AddressLease {
        &self.0
    }
}

/// Documented in the stub.
#[pyclass(frozen, name = "RolloutSlab", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyRolloutSlab {
    lease: Arc<RolloutLease>,
    descriptor: Mutex<Option<OwnedFd>>,
}

#[pymethods]
impl PyRolloutSlab {
    /// Its number, by which workers know it.
    #[getter]
    fn index(&self) -> usize {
        self.lease.index()
    }

    /// Steps that it has room for.
    #[getter]
    fn steps(&self) -> usize {
        self.lease.steps()
    }

    /// The descriptor that worker processes have to attach; once.
    fn take_descriptor(&self) -> Option<PyDescriptor> {
        let mut descriptor = self.descriptor.lock().unwrap_or_else(PoisonError::into_inner);
        descriptor.take().map(PyDescriptor)
    }
}

impl PyRolloutSlab {
    /// Owns a rollout that was taken just now, with the descriptor for worker processes if it has one.
    pub(crate) fn new(lease: Arc<RolloutLease>, descriptor: Option<OwnedFd>) -> Self {
        Self { lease, descriptor: Mutex::new(descriptor) }
    }

    /// What keeps the rollout.
    pub(crate) fn lease(&self) -> &Arc<RolloutLease> {
        &self.lease
    }
}

/// An open file that is closed with the last reference to it; documented in the stub.
#[pyclass(frozen, name = "Descriptor", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyDescriptor(OwnedFd);

#[pymethods]
impl PyDescriptor {
    /// Its number.
    fn fileno(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
