//! Rows that are sent and received in parts, as Python sees them.

use cartwheel_core::Error as EnvError;
use cartwheel_engine::pool::Received;
use cartwheel_engine::space::DType;
use cartwheel_engine::{Call, Error};
use numpy::{PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::array::dtype;
use crate::array::{as_array, copy_bytes};
use crate::error::{in_flight, not_pending, to_py_err};
use crate::pool::actions::{Checked, Rows, shown};
use crate::pool::batch::{Outputs, name_rows};
use crate::pool::next_reset::flags_of;
use crate::pool::posted::{To, leave};
use crate::pool::state::{State, cast_for, check_values};
use crate::worker::shard::ACTIONS_BY_CHANNEL;

impl State {
    /// Sends actions to `rows`; `None` means all of them.
    pub(super) fn send_steps<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        rows: Option<&Bound<'py, PyAny>>,
        calling: &str,
    ) -> PyResult<()> {
        let all = rows.is_none();
        let explain = |error| self.link.explain_for(py, error, Call::Step, calling, all);
        let idle = !self.pool.is_flying();
        let rows = match rows {
            // Nothing is in flight and a batch has room for all rows: a task is faster.
            None if idle && self.pool.batch_size() == self.rows => {
                return self.begin_step(py, actions, calling);
            }
            None => (0..self.rows).collect(),
            Some(rows) => to_rows(rows)?,
        };
        let named = if all { Rows::All(rows.len()) } else { Rows::Named(rows.len()) };
        self.check_episodes(rows.iter().copied()).map_err(explain)?;
        let next = self.pack_next_resets(py, rows.iter().copied())?;
        let flags = flags_of(next.as_ref());
        let native = self.native.as_ref();
        let mut sending = self.pool.sending(Call::Step, &rows).map_err(explain)?;
        let by_channel = |actions: &Bound<'py, PyAny>| {
            let arguments = (actions, rows.clone());
            self.link.bind(py).call_method1(intern!(py, "pack_sent_actions"), arguments)
        };
        if self.actions.opaque > 0 {
            let messages = by_channel(actions)?;
            sending.send(ACTIONS_BY_CHANNEL | flags).map_err(to_py_err)?;
            self.post(py, To::Some, &messages)?;
            return self.send_next_resets(py, next);
        }
        let checked = Checked::new(&self.actions, actions, named, cast_for(native))?;
        if !checked.parts().all(|(leaf, part)| sending.fits(leaf, part.tag())) {
            // Their dtype differs from that of the actions in flight, which is rare.
            let messages = by_channel(&checked.batch(&self.actions, py)?)?;
            sending.send(ACTIONS_BY_CHANNEL | flags).map_err(to_py_err)?;
            self.post(py, To::Some, &messages)?;
            return self.send_next_resets(py, next);
        }
        for (leaf, part) in checked.parts() {
            let filled = sending.fill_actions(leaf, part.tag(), |sent, room| {
                part.copy_to(sent.start * (room.len() / sent.len()), room);
                check_values(native, leaf, part.tag(), room)
                    .map_err(|error| of_row(error, &rows[sent]))
            });
            filled.map_err(to_py_err)?;
        }
        sending.send(flags).map_err(to_py_err)?;
        self.send_next_resets(py, next)
    }

    /// Sends resets to `rows`, with one message for each worker that has some of the rows; the
    /// shards get `flags`.
    pub(super) fn send_resets(
        &mut self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        messages: &Bound<'_, PyAny>,
        calling: &str,
        flags: u32,
    ) -> PyResult<()> {
        let rows = to_rows(rows)?;
        let all = rows.len() == self.rows;
        let explain = |error| self.link.explain_for(py, error, Call::Reset, calling, all);
        let sending = self.pool.sending(Call::Reset, &rows).map_err(explain)?;
        if self.native.is_some() {
            leave(self.link.bind(py), To::Some, messages)?;
        }
        sending.send(flags).map_err(to_py_err)?;
        if let Some(episodes) = &mut self.episodes {
            episodes.resets_sent(&rows);
        }
        for row in &rows {
            self.next_resets.remove(row);
        }
        if self.native.is_some() { Ok(()) } else { self.post(py, To::Some, messages) }
    }

    /// The next batch: observations, rewards, flags, infos.
    pub(super) fn receive<'py>(
        &mut self,
        py: Python<'py>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.pool.pending() == Some(Call::Step) {
            let outputs = self.finish_step(py, calling, timeout)?;
            name_rows(&outputs.infos, self.episodes.as_ref(), 0..self.rows)?;
            return outputs.into_tuple(py);
        }
        self.collect_rows(py, calling, timeout)?.into_tuple(py)
    }

    /// The next batch, whose rows were all reset: observations and infos.
    pub(super) fn receive_resets<'py>(
        &mut self,
        py: Python<'py>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stepping = self.pool.stepping();
        if !stepping.is_empty() {
            return Err(in_flight(py, calling, &stepping)); // their rewards must not be dropped
        }
        if !self.pool.is_flying() {
            return Err(not_pending(py, Call::Reset));
        }
        self.collect_rows(py, calling, timeout)?.into_observations(py)
    }

    fn collect_rows<'py>(
        &mut self,
        py: Python<'py>,
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<Outputs<'py>> {
        let received = self.wait_for_rows(py, calling, timeout)?;
        let messages = self.announced.with_rows(&self.pool, &received);
        let Self { batches, link, pool, infos, episodes, .. } = self;
        batches.collect_received(link.bind(py), pool, infos, episodes, received, &messages)
    }

    /// Waits for the next batch of sent rows.
    pub(super) fn wait_for_rows(
        &mut self,
        py: Python<'_>,
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<Received> {
        let received =
            self.wait(py, Call::Step, calling, timeout, |pool, timeout, interrupted| {
                pool.receive(timeout, interrupted)
            })?;
        if let Some(episodes) = &mut self.episodes {
            episodes.received(&received.lease, &received.rows);
        }
        if let Some(judge) = &mut self.judge {
            judge.remember(&received.lease, received.rows.iter().copied());
        }
        Ok(received)
    }
}

/// The error of an action, with the row to which the action belongs.
fn of_row(error: Error, rows: &[usize]) -> Error {
    match error {
        Error::Env(EnvError::ActionOutOfRange { row, value, space }) => {
            EnvError::ActionOutOfRange { row: rows[row], value, space }.into()
        }
        other => other,
    }
}

/// Rows from an array of integers, or from a list of integers.
pub(super) fn to_rows(rows: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    // Callers usually pass the array that `recv` returned.
    if let Ok(array) = rows.cast_exact::<PyUntypedArray>()
        && array.ndim() == 1
        && array.len() > 0
        && array.is_c_contiguous()
    {
        let numbers = match dtype::from_descr(&array.dtype()) {
            Some(DType::I64) => {
                let bytes = copied(array, size_of::<i64>());
                to_numbers(bytes.as_chunks().0.iter().map(|number| i64::from_ne_bytes(*number)))
            }
            Some(DType::I32) => {
                let bytes = copied(array, size_of::<i32>());
                to_numbers(bytes.as_chunks().0.iter().map(|number| i32::from_ne_bytes(*number)))
            }
            _ => return to_rows_by_numpy(rows),
        };
        return numbers;
    }
    to_rows_by_numpy(rows)
}

/// The bytes of a contiguous array's elements, of `size` bytes each.
fn copied(array: &Bound<'_, PyUntypedArray>, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; array.len() * size];
    copy_bytes(array, 0, &mut bytes);
    bytes
}

fn to_rows_by_numpy(rows: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let (py, array) = (rows.py(), as_array(rows)?);
    let kind = array.dtype().kind();
    if array.ndim() != 1 || (!matches!(kind, b'i' | b'u') && array.len() > 0) {
        return Err(PyTypeError::new_err(format!(
            "`env_index` must be a one-dimensional array of integers, got shape {} of {}",
            shown(array.shape()),
            array.dtype()
        )));
    }
    if array.len() == 0 {
        return Err(PyValueError::new_err("`env_index` is empty: it must name at least one row"));
    }
    let array = array.call_method1(intern!(py, "astype"), (intern!(py, "int64"),))?;
    to_numbers(array.cast::<PyArray1<i64>>()?.readonly().as_slice()?.iter().copied())
}

fn to_numbers<N>(rows: impl Iterator<Item = N>) -> PyResult<Vec<usize>>
where
    N: TryInto<usize> + Copy + std::fmt::Display,
{
    // A negative row is reported at the end, so that the loop only copies.
    let mut negative = None;
    let rows = rows.map(|row: N| {
        row.try_into().unwrap_or_else(|_| {
            negative = negative.or(Some(row));
            usize::MAX
        })
    });
    let rows = rows.collect();
    match negative {
        Some(row) => {
            Err(PyValueError::new_err(format!("there is no row {row}: rows are counted from 0")))
        }
        None => Ok(rows),
    }
}
