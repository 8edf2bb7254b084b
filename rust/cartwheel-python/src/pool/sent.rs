//! Rows that are sent and received in parts, as Python sees them.

use cartwheel_engine::pool::Sending;
use cartwheel_engine::space::DType;
use cartwheel_engine::{Call, Error};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::dtype;
use crate::array::{as_array, as_contiguous, copy_bytes, copy_numbers};
use crate::error::{in_flight, not_pending, to_py_err};
use crate::known::intern;
use crate::native::PyNativeEnvs;
use crate::pool::actions::{Checked, Rows, shown};
use crate::pool::batch::name_rows;
use crate::pool::next_reset::flags_of;
use crate::pool::posted::{To, leave};
use crate::pool::state::{State, cast_for, check_values};
use crate::worker::shard::ACTIONS_BY_CHANNEL;

impl State {
    /// Sends actions to `rows`; `None` means all of them. `calling` is the method that the user called.
    pub(super) fn send_steps<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        rows: Option<&Bound<'py, PyAny>>,
        calling: &str,
    ) -> PyResult<()> {
        let explain = |error| self.link.explain_for(py, error, Call::Step, calling, rows.is_none());
        let named = rows.map(to_rows).transpose()?;
        let count = named.as_ref().map_or(self.rows, Vec::len);
        let each = (0..count).map(|at| named.as_ref().map_or(at, |rows| rows[at]));
        if rows.is_none() {
            if calling != "send" && self.pool.batch_size() < self.rows {
                return Err(rows_missing(self.pool.batch_size(), self.rows));
            }
            // A pool that can begin no call says so first.
            self.pool.check(Call::Call).map_err(explain)?;
        }
        self.check_episodes(each.clone()).map_err(explain)?;
        let next = self.pack_next_resets(py, each.clone())?;
        let (native, link) = (self.native.as_ref(), self.link.bind(py));
        let mut sending = self.pool.sending(Call::Step, named.as_deref()).map_err(explain)?;
        let to = if sending.is_task() { To::All } else { To::Some };
        let pack = |actions: &Bound<'py, PyAny>| match to {
            To::All => link.call_method1(intern!(py, "pack_actions"), (actions,)),
            To::Some => {
                let arguments = (actions, each.clone().collect::<Vec<_>>());
                link.call_method1(intern!(py, "pack_sent_actions"), arguments)
            }
        };
        let of = if rows.is_some() { Rows::Named(count) } else { Rows::All(count) };
        let checked = (self.actions.opaque == 0)
            .then(|| Checked::new(&self.actions, actions, of, cast_for(native)))
            .transpose()?;
        let messages = match &checked {
            None => Some(pack(actions)?),
            Some(checked) if store_actions(&mut sending, checked, native).map_err(explain)? => None,
            // Their dtype differs from that of the actions in flight, which is rare.
            Some(checked) => Some(pack(&checked.batch(&self.actions, py)?)?),
        };
        let by_channel = if messages.is_some() { ACTIONS_BY_CHANNEL } else { 0 };
        sending.send(flags_of(next.as_ref()) | by_channel).map_err(explain)?;
        self.link.all_sent = calling == "send";
        if let Some(checked) = &checked {
            self.keep_judged(checked, py)?;
        }
        if let Some(messages) = &messages {
            self.post(py, to, messages)?;
        }
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
        let sending = self.pool.sending(Call::Reset, Some(&rows)).map_err(explain)?;
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
        let mut received = self.finish(py, None, calling, timeout)?;
        let outputs = self.collect_or_lose(py, None, &mut received)?;
        name_rows(&outputs.infos, self.episodes.as_ref(), received.rows.iter())?;
        outputs.into_observations(py)
    }
}

/// Stores checked actions where the workers will read them. False, and nothing is stored, if their
/// dtypes differ from those of the actions in flight.
fn store_actions(
    sending: &mut Sending<'_>,
    checked: &Checked<'_>,
    native: Option<&Py<PyNativeEnvs>>,
) -> Result<bool, Error> {
    if !checked.parts().all(|(leaf, part)| sending.fits(leaf, part.tag())) {
        return Ok(false);
    }
    for (leaf, part) in checked.parts() {
        sending.fill_actions(leaf, part.tag(), |sent, room| {
            part.copy_to(sent.start * (room.len() / sent.len()), room);
            check_values(native, leaf, part.tag(), room)
        })?;
    }
    Ok(true)
}

/// The error for a step of all rows of a pool whose batches have fewer.
fn rows_missing(batch_size: usize, rows: usize) -> PyErr {
    PyValueError::new_err(format!(
        "`env_index` is required, because batch_size={batch_size} of num_envs={rows}: pass \
         `infos[\"env_index\"]` of the last batch"
    ))
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
    let array = as_array(rows)?;
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
    let mut numbers = Vec::<i64>::new();
    copy_numbers(&as_contiguous(&array, DType::I64)?, &mut numbers);
    to_numbers(numbers.into_iter())
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
