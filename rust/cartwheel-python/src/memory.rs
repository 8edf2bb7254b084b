//! The memory of a pool, made here or attached in a worker process; and descriptors, which Python
//! passes as integers.
//!
//! # Invariants
//!
//! 1. A descriptor that Python passes as an integer was received from the pool's process for this
//!    purpose, is open, and is not used or closed by Python afterwards.
//! 2. Descriptors that Python gets here are only sent to worker processes of the memory's pool, where
//!    they come back to [`PyMemory`]; `python/cartwheel/worker` does it. So they are what
//!    [`Memory::descriptors`] demands.
//! 3. Python calls [`fork_begins`] before each fork, and one of the two others once after it, as
//!    `python/cartwheel/vector/forks.py` registers them.
#![expect(unsafe_code, reason = "descriptors cross the border as integers, see the invariants")]

use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use cartwheel_engine::memory::{Plan, forks};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::wake::Scope;
use cartwheel_engine::worker;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::to_py_err;
use crate::space::Tree;

/// Documented in the stub.
#[pyclass(frozen, name = "Memory", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyMemory {
    pub(crate) memory: Memory,
}

#[pymethods]
impl PyMemory {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords, each documented in the stub")]
    #[pyo3(signature = (
        observations, actions, shards, *, batch_size, max_batches, info_bytes, dense_finals = false,
        descriptors = None, shared = false
    ))]
    fn new(
        observations: &Bound<'_, PyAny>,
        actions: &Bound<'_, PyAny>,
        shards: Vec<(usize, usize)>,
        batch_size: usize,
        max_batches: usize,
        info_bytes: usize,
        dense_finals: bool,
        descriptors: Option<Vec<RawFd>>,
        shared: bool,
    ) -> PyResult<Self> {
        let plan = Plan {
            observations: Tree::new(observations)?.leaves,
            actions: Tree::new(actions)?.leaves,
            shards: shards.into_iter().map(|(start, end)| Range { start, end }).collect(),
            batch_size,
            max_slabs: max_batches,
            info_bytes,
            dense_finals,
        };
        if let Some(descriptors) = descriptors {
            let descriptors = <[RawFd; 4]>::try_from(descriptors).map_err(|got| {
                PyValueError::new_err(format!("expected 4 descriptors, got {}", got.len()))
            })?;
            // SAFETY: Python has received each of them for this purpose (invariant 1).
            let descriptors = descriptors.map(|descriptor| unsafe { owned(descriptor) });
            // SAFETY: they are those of a pool's memory (invariant 2).
            let memory = unsafe { Memory::attach(plan, descriptors) }.map_err(to_py_err)?;
            return Ok(Self { memory });
        }
        let scope = if shared { Scope::Shared } else { Scope::Private };
        Ok(Self { memory: Memory::new(plan, scope).map_err(to_py_err)? })
    }

    /// Maps, in a worker process, a rollout that the pool made; takes ownership of the descriptor.
    fn attach_rollout(&self, index: usize, steps: usize, descriptor: RawFd) -> PyResult<()> {
        // SAFETY: Python has received it for this purpose (invariant 1).
        let descriptor = unsafe { owned(descriptor) };
        // SAFETY: it is that of a rollout of the memory's pool (invariant 2).
        unsafe { self.memory.attach_rollout(index, steps, descriptor) }.map_err(to_py_err)
    }

    /// The rollouts that a new worker process has to attach: number, steps, and a descriptor of
    /// each, which the caller must close.
    fn rollouts(&self) -> PyResult<Vec<(usize, usize, RawFd)>> {
        // SAFETY: Python sends them to a worker process (invariant 2).
        let rollouts = unsafe { self.memory.rollouts() }.map_err(to_py_err)?;
        let raw =
            |(index, steps, descriptor): (_, _, OwnedFd)| (index, steps, descriptor.into_raw_fd());
        Ok(rollouts.into_iter().map(raw).collect())
    }

    /// The descriptors for the workers; empty for private memory.
    fn descriptors(&self) -> Vec<RawFd> {
        // SAFETY: Python sends them to a worker process (invariant 2).
        let descriptors = unsafe { self.memory.descriptors() };
        descriptors.map_or(Vec::new(), |all| all.iter().map(AsRawFd::as_raw_fd).collect())
    }
}

/// Takes ownership of a descriptor that Python received.
///
/// # Safety
///
/// The descriptor is open, and nobody else uses or closes it (invariant 1).
unsafe fn owned(descriptor: RawFd) -> OwnedFd {
    // SAFETY: as the caller promises.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// The descriptors by which a worker notices the end of this process; documented in the stub.
#[pyfunction]
pub(crate) fn lifeline() -> PyResult<(RawFd, Option<RawFd>)> {
    let (sent, kept) = worker::lifeline().map_err(to_py_err)?;
    Ok((sent.into_raw_fd(), kept.map(IntoRawFd::into_raw_fd)))
}

/// Ends this process when the process that started it ends; documented in the stub.
#[pyfunction]
pub(crate) fn watch_parent(pid: u32, lifeline: RawFd) -> PyResult<()> {
    // SAFETY: Python has received it for this purpose (invariant 1).
    let lifeline = unsafe { owned(lifeline) };
    worker::exit_with_parent(pid, Some(lifeline)).map_err(to_py_err)
}

/// Announces to the core that the process is about to fork; documented in the stub.
#[pyfunction]
pub(crate) fn fork_begins() {
    forks::begins();
}

/// Announces to the core that the process has forked; documented in the stub.
#[pyfunction]
pub(crate) fn fork_ended() {
    // SAFETY: Python calls this once after each `fork_begins` (invariant 3).
    unsafe { forks::ended() }
}

/// Announces to the core that this process is a forked child; documented in the stub.
#[pyfunction]
pub(crate) fn fork_ended_in_child() {
    // SAFETY: Python calls this once in each forked child (invariant 3).
    unsafe { forks::ended_in_child() }
}
