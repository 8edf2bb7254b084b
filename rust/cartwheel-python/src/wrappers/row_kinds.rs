//! The kinds of rows; documented in the stub.

use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::{RESET, RowKinds};
use pyo3::prelude::*;

use super::column::{Column, no_such_row, numbers};
use super::locked::Locked;
use crate::array::filled;
use crate::convert::to_autoreset_mode;

/// The rows, and room for the flags of a step.
#[derive(Debug)]
struct Told {
    rows: RowKinds,
    terminations: Vec<u8>,
    truncations: Vec<u8>,
    failed: Vec<u8>,
}

#[pyclass(frozen, name = "RowKinds", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyRowKinds {
    num_envs: usize,
    told: Locked<Told>,
}

#[pymethods]
impl PyRowKinds {
    #[new]
    fn new(num_envs: usize, autoreset_mode: &str) -> PyResult<Self> {
        let rows = RowKinds::new(num_envs, to_autoreset_mode(autoreset_mode)?);
        let [terminations, truncations, failed] = [const { Vec::new() }; 3];
        let told = Locked::new(Told { rows, terminations, truncations, failed });
        Ok(Self { num_envs, told })
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
            let mask = Column::of_flags("mask", mask, self.num_envs)?;
            return kinds(self.num_envs, &mut |kinds| {
                let Told { rows, failed: room, .. } = &mut *self.told.lock(py);
                mask.copy_to(room);
                rows.reset_masked(room, kinds);
            });
        }
        let Some(rows) = rows else {
            self.told.lock(py).rows.reset_all();
            return kinds(self.num_envs, &mut |kinds| kinds.fill(RESET));
        };
        let rows = numbers(rows)?;
        self.told.lock(py).rows.reset_rows(&rows).map_err(no_such_row)?;
        kinds(rows.len(), &mut |kinds| kinds.fill(RESET))
    }

    #[pyo3(signature = (rows, /))]
    fn send_reset(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = numbers(rows)?;
        self.told.lock(py).rows.send_reset(&rows).map_err(no_such_row)
    }

    #[pyo3(signature = (rows, is_known, /))]
    fn lose(
        &self,
        py: Python<'_>,
        rows: Option<&Bound<'_, PyAny>>,
        is_known: bool,
    ) -> PyResult<()> {
        let rows = rows.map(numbers).transpose()?;
        self.told.lock(py).rows.lose(rows.as_deref(), is_known).map_err(no_such_row)
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
        let terminations = Column::of_flags("terminations", terminations, count)?;
        let truncations = Column::of_flags("truncations", truncations, count)?;
        let failed = failed.map(|failed| Column::of_flags("failed", failed, count)).transpose()?;
        let mut told = Ok(());
        let kinds = filled(py, DType::U8, Some(count), &[], |kinds| {
            let room = &mut *self.told.lock(py);
            terminations.copy_to(&mut room.terminations);
            truncations.copy_to(&mut room.truncations);
            if let Some(failed) = &failed {
                failed.copy_to(&mut room.failed);
            }
            let failed = failed.is_some().then_some(&room.failed[..]);
            let (terminations, truncations) = (&room.terminations, &room.truncations);
            told = room.rows.step(rows.as_deref(), terminations, truncations, failed, kinds);
        })?;
        told.map_err(no_such_row)?;
        Ok(kinds)
    }
}
