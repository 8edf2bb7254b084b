//! The owners of the memory that arrays show: the objects behind every `base`.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use cartwheel_engine::memory::{AddressLease, Lease, RolloutLease};
use cartwheel_engine::pool::Recorded;
use pyo3::prelude::*;

use crate::array::results_view;
use crate::descriptor::PyDescriptor;

#[pyclass(frozen, module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct SlabLease(AddressLease);

/// Offsets of the flags of final observations, of rewards, terminations and truncations in a slab.
type Offsets = (Option<usize>, usize, usize, usize);

impl SlabLease {
    pub(crate) fn new(lease: Lease) -> Self {
        Self(lease.by_address())
    }

    pub(crate) fn lease(&self) -> &AddressLease {
        &self.0
    }
}

#[pymethods]
impl SlabLease {
    fn results<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<(Bound<'py, PyAny>, Offsets)>> {
        let layout = slf.get().0.layout();
        let offsets = (
            layout.ended_offset(),
            layout.rewards_offset(),
            layout.terminations_offset(),
            layout.truncations_offset(),
        );
        Ok(results_view(slf)?.map(|results| (results, offsets)))
    }
}

#[pyclass(frozen, name = "RolloutSlab", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyRolloutSlab {
    lease: Arc<RolloutLease>,
    descriptor: Mutex<Option<OwnedFd>>,
}

#[pymethods]
impl PyRolloutSlab {
    #[getter]
    fn index(&self) -> usize {
        self.lease.index()
    }

    #[getter]
    fn steps(&self) -> usize {
        self.lease.steps()
    }

    fn take_descriptor(&self) -> Option<PyDescriptor> {
        let mut descriptor = self.descriptor.lock().unwrap_or_else(PoisonError::into_inner);
        descriptor.take().map(PyDescriptor::from)
    }
}

impl PyRolloutSlab {
    /// Owns a rollout that was just taken, with the descriptor for worker processes if there is
    /// one.
    pub(crate) fn new(recorded: Recorded) -> Self {
        // SAFETY: Python sends the descriptor to the worker processes (invariant 5).
        let (lease, descriptor) = unsafe { recorded.into_parts() };
        Self { lease, descriptor: Mutex::new(descriptor) }
    }

    pub(crate) fn lease(&self) -> &Arc<RolloutLease> {
        &self.lease
    }
}
