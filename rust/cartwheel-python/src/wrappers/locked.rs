//! The parts of a wrapper that change from batch to batch, behind a lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::interpreter::enter;

/// Numbers of which any are valid, so a panic while they were locked does no harm. No Python code runs
/// while they are locked.
#[derive(Debug)]
pub(super) struct Locked<T>(Mutex<T>);

impl<T> Locked<T> {
    pub(super) fn new(numbers: T) -> Self {
        Self(Mutex::new(numbers))
    }

    /// Waits for the lock, detached: the header of this folder says why.
    pub(super) fn lock(&self, py: Python<'_>) -> MutexGuard<'_, T> {
        enter();
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}
