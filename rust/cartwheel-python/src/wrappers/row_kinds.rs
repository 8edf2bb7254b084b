//! The kinds of rows; documented in the stub.

use std::sync::atomic::{AtomicU64, Ordering};

use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::{RESET, RowKinds};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::column::{Column, no_such_row, numbers};
use super::locked::Locked;
use crate::array::filled;
use crate::convert::to_autoreset_mode;

/// The rows, and buffers for the flags of a step.
#[derive(Debug)]
struct RowKindsState {
    rows: RowKinds,
    terminations: Vec<u8>,
    truncations: Vec<u8>,
    failed: Vec<u8>,
}

#[pyclass(frozen, name = "RowKinds", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyRowKinds {
    num_envs: usize,
    /// Number of changes of wrappers that share these.
    changes: AtomicU64,
    state: Locked<RowKindsState>,
}

impl PyRowKinds {
    /// A step of all rows returned, in which none failed: replaces `kinds`.
    pub(super) fn classify(&self, py: Python<'_>, ends: [&[u8]; 2], kinds: &mut Vec<u8>) {
        kinds.resize(self.num_envs, 0);
        let [terminations, truncations] = ends;
        let rows = &mut self.state.lock(py).rows;
        rows.step(None, terminations, truncations, None, kinds).expect("all rows");
    }

    /// Number of changes of wrappers.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// The number of environments.
    pub(super) fn num_envs(&self) -> usize {
        self.num_envs
    }
}

#[pymethods]
impl PyRowKinds {
    #[new]
    fn new(num_envs: usize, autoreset_mode: &str) -> PyResult<Self> {
        let rows = RowKinds::new(num_envs, to_autoreset_mode(autoreset_mode)?);
        let [terminations, truncations, failed] = [const { Vec::new() }; 3];
        let state = Locked::new(RowKindsState { rows, terminations, truncations, failed });
        Ok(Self { num_envs, changes: AtomicU64::new(0), state })
    }

    fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    #[pyo3(signature = (rows, mask, /))]
    fn reset<'py>(
        &self,
        py: Python<'py>,
        rows: Option<&Bound<'py, PyAny>>,
        mask: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let kinds = |count, fill: &mut dyn FnMut(&mut [u8])| {
            filled(py, DType::U8, Some(count), &[], |kinds| fill(kinds))
        };
        if let Some(mask) = mask {
            let mask = Column::flags("mask", mask, self.num_envs)?;
            return kinds(self.num_envs, &mut |kinds| {
                let RowKindsState { rows, failed: buffer, .. } = &mut *self.state.lock(py);
                mask.copy_to(buffer);
                rows.reset_masked(buffer, kinds);
            });
        }
        let Some(rows) = rows else {
            self.state.lock(py).rows.reset_all();
            return kinds(self.num_envs, &mut |kinds| kinds.fill(RESET));
        };
        let rows = numbers(rows)?;
        self.state.lock(py).rows.reset_rows(&rows).map_err(no_such_row)?;
        kinds(rows.len(), &mut |kinds| kinds.fill(RESET))
    }

    #[pyo3(signature = (rows, /))]
    fn ahead<'py>(
        &self,
        py: Python<'py>,
        rows: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = rows.map(numbers).transpose()?;
        let count = rows.as_ref().map_or(self.num_envs, Vec::len);
        let mut known = Ok(());
        let kinds = filled(py, DType::U8, Some(count), &[], |kinds| {
            known = self.state.lock(py).rows.ahead(rows.as_deref(), kinds);
        })?;
        known.map_err(no_such_row)?;
        Ok(kinds)
    }

    #[pyo3(signature = (rows, /))]
    fn send_reset(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = numbers(rows)?;
        self.state.lock(py).rows.send_reset(&rows).map_err(no_such_row)
    }

    #[pyo3(signature = (rows, is_known, /))]
    fn lose(
        &self,
        py: Python<'_>,
        rows: Option<&Bound<'_, PyAny>>,
        is_known: bool,
    ) -> PyResult<()> {
        let rows = rows.map(numbers).transpose()?;
        self.state.lock(py).rows.lose(rows.as_deref(), is_known).map_err(no_such_row)
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        filled(py, DType::U8, Some(self.num_envs), &[], |notes| {
            notes.copy_from_slice(self.state.lock(py).rows.notes());
        })
    }

    #[pyo3(signature = (state, /))]
    fn set_state(&self, py: Python<'_>, state: Vec<u8>) -> PyResult<()> {
        if self.state.lock(py).rows.restore(&state) {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "the state of the rows must have {} entries from 0 to 7",
            self.num_envs
        )))
    }

    #[pyo3(signature = (rows, terminations, truncations, failed, /))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        rows: Option<&Bound<'py, PyAny>>,
        terminations: &Bound<'py, PyAny>,
        truncations: &Bound<'py, PyAny>,
        failed: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = rows.map(numbers).transpose()?;
        let count = rows.as_ref().map_or(self.num_envs, Vec::len);
        let terminations = Column::flags("terminations", terminations, count)?;
        let truncations = Column::flags("truncations", truncations, count)?;
        let failed = failed.map(|failed| Column::flags("failed", failed, count)).transpose()?;
        let mut state = Ok(());
        let kinds = filled(py, DType::U8, Some(count), &[], |kinds| {
            let buffer = &mut *self.state.lock(py);
            terminations.copy_to(&mut buffer.terminations);
            truncations.copy_to(&mut buffer.truncations);
            if let Some(failed) = &failed {
                failed.copy_to(&mut buffer.failed);
            }
            let failed = failed.is_some().then_some(&buffer.failed[..]);
            let (terminations, truncations) = (&buffer.terminations, &buffer.truncations);
            state = buffer.rows.step(rows.as_deref(), terminations, truncations, failed, kinds);
        })?;
        state.map_err(no_such_row)?;
        Ok(kinds)
    }
}
