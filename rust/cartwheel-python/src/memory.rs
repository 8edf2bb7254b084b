//! The memory of a pool, made here or attached in a worker process, and the descriptors for it.
//!
//! # Invariants
//!
//! 1. Descriptors that Python gets here are only sent to worker processes of the memory's pool, where
//!    they come back to [`PyMemory`]; `python/cartwheel/workers` does it. So they are what
//!    [`Memory::descriptors`] demands. It starts one process for each worker, and another one when that
//!    has ended (`WorkerGroup.reap`). So the token of a process is what [`WorkerToken::attach`] demands: those
//!    that the caller of shared memory got are dropped.
//! 2. Python calls [`fork_begins`] before each fork, and one of the two others once after it, as
//!    `python/cartwheel/vector/forks.py` registers them.
#![expect(unsafe_code, reason = "descriptors go to other processes, see the invariants")]

use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use cartwheel_engine::memory::{MemoryLimit, Plan, forks};
use cartwheel_engine::protocol::{Memory, PoolToken, Tokens, WorkerToken};
use cartwheel_engine::wake::Scope;
use cartwheel_engine::worker;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::descriptor::PyDescriptor;
use crate::error::to_py_err;
use crate::interpreter::enter;
use crate::space::Tree;

#[pyclass(frozen, name = "Memory", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyMemory {
    pub(crate) memory: Memory,
    /// Until a pool is made.
    pool: Mutex<Option<PoolToken>>,
    /// Of the workers that this process may serve and does not serve yet.
    workers: Mutex<Vec<WorkerToken>>,
}

impl PyMemory {
    /// The right to make the pool.
    pub(crate) fn pool_token(&self) -> PyResult<PoolToken> {
        let token = self.pool.lock().unwrap_or_else(PoisonError::into_inner).take();
        token.ok_or_else(|| PyRuntimeError::new_err("the memory has a pool already"))
    }

    /// The right to serve worker `worker`.
    pub(crate) fn worker_token(&self, worker: usize) -> PyResult<WorkerToken> {
        let mut tokens = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let at = tokens.iter().position(|token| token.worker() == worker);
        let at = at.ok_or_else(|| {
            PyRuntimeError::new_err(format!("worker {worker} is served already, or elsewhere"))
        })?;
        Ok(tokens.remove(at))
    }

    /// The right to serve all workers.
    pub(crate) fn worker_tokens(&self) -> Vec<WorkerToken> {
        std::mem::take(&mut self.workers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl PyMemory {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords, each documented in the stub")]
    #[pyo3(signature = (
        observations, actions, shards, *, batch_size, max_batches = None, dense_finals = false,
        reward_width = None, worker = None, descriptors = None, shared = false
    ))]
    fn new(
        observations: &Bound<'_, PyAny>,
        actions: &Bound<'_, PyAny>,
        shards: Vec<(usize, usize)>,
        batch_size: usize,
        max_batches: Option<usize>,
        dense_finals: bool,
        reward_width: Option<usize>,
        worker: Option<usize>,
        descriptors: Option<Vec<Bound<'_, PyDescriptor>>>,
        shared: bool,
    ) -> PyResult<Self> {
        enter();
        let shards = shards.into_iter().map(|(start, end)| Range { start, end }).collect();
        let plan = Plan {
            observations: Tree::new(observations)?.leaves,
            actions: Tree::new(actions)?.leaves,
            batch_size,
            dense_finals,
            reward_width: reward_width.unwrap_or(1),
            ..Plan::new(shards)
        };
        let plan = plan.sized(max_batches);
        if let (Some(worker), Some(descriptors)) = (worker, descriptors) {
            let own = descriptors.iter().map(|descriptor| descriptor.get().try_clone());
            let own = <[OwnedFd; 4]>::try_from(own.collect::<PyResult<Vec<_>>>()?);
            let descriptors = own.map_err(|got| {
                PyValueError::new_err(format!("expected 4 descriptors, got {}", got.len()))
            })?;
            // SAFETY: the descriptors are those of a pool's memory, for this process's worker (invariant 1).
            let token = unsafe { WorkerToken::attach(plan, descriptors, worker) };
            let token = token.map_err(to_py_err)?;
            let memory = token.memory().clone();
            return Ok(Self { memory, pool: Mutex::default(), workers: Mutex::new(vec![token]) });
        }
        let scope = if shared { Scope::Shared } else { Scope::Private };
        let (memory, Tokens { pool, workers }) = Memory::new(plan, scope).map_err(to_py_err)?;
        let workers = if shared { Vec::new() } else { workers };
        Ok(Self { memory, pool: Mutex::new(Some(pool)), workers: Mutex::new(workers) })
    }

    fn attach_rollout(
        &self,
        index: usize,
        steps: usize,
        descriptor: &Bound<'_, PyDescriptor>,
    ) -> PyResult<()> {
        let descriptor = descriptor.get().try_clone()?;
        // SAFETY: the descriptor is that of a rollout of the memory's pool (invariant 1).
        unsafe { self.memory.attach_rollout(index, steps, descriptor) }.map_err(to_py_err)
    }

    fn rollouts(&self) -> PyResult<Vec<(usize, usize, PyDescriptor)>> {
        // SAFETY: Python sends the descriptors of rollouts to a worker process (invariant 1).
        let rollouts = unsafe { self.memory.rollouts() }.map_err(to_py_err)?;
        Ok(rollouts.into_iter().map(|(index, steps, own)| (index, steps, own.into())).collect())
    }

    fn descriptors(&self) -> PyResult<Vec<PyDescriptor>> {
        // SAFETY: Python sends the descriptors of the memory to a worker process (invariant 1).
        let descriptors = unsafe { self.memory.descriptors() };
        let copied = |own: BorrowedFd<'_>| Ok(own.try_clone_to_owned()?.into());
        descriptors.map_or(Ok(Vec::new()), |all| all.into_iter().map(copied).collect())
    }
}

#[pyfunction]
pub(crate) fn require_memory(bytes: usize) -> PyResult<()> {
    MemoryLimit::require("a vector environment", bytes).map_err(to_py_err)
}

#[pyfunction]
pub(crate) fn watch_parent(pid: u32, lifeline: &Bound<'_, PyDescriptor>) -> PyResult<()> {
    worker::exit_with_parent(pid, Some(lifeline.get().try_clone()?)).map_err(to_py_err)
}

#[pyfunction]
pub(crate) fn fork_begins() {
    forks::begins();
}

#[pyfunction]
pub(crate) fn fork_ended() {
    // SAFETY: Python calls this once after each `fork_begins` (invariant 2).
    unsafe { forks::ended() }
}

#[pyfunction]
pub(crate) fn fork_ended_in_child() {
    // SAFETY: Python calls this once in each forked child (invariant 2).
    unsafe { forks::ended_in_child() }
}
