//! Steps of all rows, or of some.
//!
//! The keywords of a row's next automatic reset are kept here, and sent with the next step of the row: a
//! worker reads its channel only for a task that says so. So nothing can be sent to a worker when the
//! caller asks for it: the worker may be stepping other rows, and a long message needs a reader.

use cartwheel_engine::pool::{Received, Sending};
use cartwheel_engine::{Call, Error};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::known::intern;
use crate::native::PyNativeEnvs;
use crate::pool::actions::{Checked, ExpectedRows};
use crate::pool::batch::{Outputs, narrow_rewards, of_batch};
use crate::pool::messages::Recipients;
use crate::pool::rows::to_rows;
use crate::pool::{State, cast_for, check_values};
use crate::worker::shard::{ACTIONS_BY_CHANNEL, NEXT_RESETS};

/// The receiver of the rows of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceivedBy {
    /// The caller, which waits for exactly these rows: they arrive in the order in which it named them.
    Caller,
    /// `recv`, which may wait for other rows too: they arrive in the order of the pool.
    Recv,
}

impl State {
    /// Sends actions to `rows`; `None` means all of them. `calling` is the method that the user called.
    pub(super) fn send_steps<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        rows: Option<&Bound<'py, PyAny>>,
        received_by: ReceivedBy,
        calling: &str,
    ) -> PyResult<()> {
        let explain =
            |error| self.callbacks.explain_for(py, error, Call::Step, calling, rows.is_none());
        let named = rows.map(to_rows).transpose()?;
        let count = named.as_ref().map_or(self.rows, Vec::len);
        let each = || (0..count).map(|at| named.as_ref().map_or(at, |rows| rows[at]));
        if rows.is_none() {
            if received_by == ReceivedBy::Caller && self.pool.batch_size() < self.rows {
                return Err(rows_missing(self.pool.batch_size(), self.rows));
            }
            // A pool that cannot begin a call says so before episodes are checked.
            if self.episodes.is_some() {
                self.pool.check(Call::Call).map_err(explain)?;
            }
        }
        self.check_episodes(each()).map_err(explain)?;
        self.prepare_step(py)?;
        let next = self.pack_next_resets(py, each())?;
        let (native, callbacks) = (self.native.as_ref(), self.callbacks.bind(py));
        let mut sending = self.pool.sending(Call::Step, named.as_deref()).map_err(explain)?;
        let to = if sending.is_task() { Recipients::All } else { Recipients::Some };
        let pack = |actions: &Bound<'py, PyAny>| match to {
            Recipients::All => callbacks.call_method1(intern!(py, "pack_actions"), (actions,)),
            Recipients::Some => {
                let arguments = (actions, each().collect::<Vec<_>>());
                callbacks.call_method1(intern!(py, "pack_sent_actions"), arguments)
            }
        };
        let expected =
            if rows.is_some() { ExpectedRows::Named(count) } else { ExpectedRows::All(count) };
        let mut parts = Checked::default();
        let checked = if self.actions.opaque == 0 {
            parts.check(&self.actions, actions, expected, cast_for(native))?;
            Some(&parts)
        } else {
            None
        };
        let messages = match checked {
            None => Some(pack(actions)?),
            Some(checked) if store_actions(&mut sending, checked, native).map_err(explain)? => None,
            // Their dtype differs from that of the actions in flight, which is rare.
            Some(checked) => Some(pack(&checked.batch(&self.actions, py)?)?),
        };
        let by_channel = if messages.is_some() { ACTIONS_BY_CHANNEL } else { 0 };
        let sending = match received_by {
            ReceivedBy::Caller => sending.in_order(),
            ReceivedBy::Recv => sending,
        };
        sending.send(flags_of(next.as_ref()) | by_channel).map_err(explain)?;
        self.callbacks.all_sent = received_by == ReceivedBy::Recv;
        if let Some(checked) = checked {
            self.keep_actions(checked, py)?;
        }
        if messages.is_none() && next.is_none() {
            return Ok(());
        }
        if let Some(messages) = &messages {
            self.queue(py, to, messages)?;
        }
        self.queue_next_resets(py, next)?;
        self.send_queued(py).map(drop)
    }

    /// `send` and `recv` in one. Only a batch of `rows` says which rows it has.
    pub(super) fn step<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        rows: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.send_steps(py, actions, rows, ReceivedBy::Caller, "step")?;
        self.receive(py, rows.is_none().then_some(Call::Step), None, self.timeout, "step")
    }

    /// `step_async` and `step_wait_by_row` in one.
    pub(super) fn step_by_row<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        reset_infos: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.send_steps(py, actions, None, ReceivedBy::Caller, "step")?;
        self.finish_step_by_row(py, "step", self.timeout, reset_infos)
    }

    /// Waits for the step of all rows if `call` is one; otherwise for the next batch of rows that were
    /// sent, and names its rows. `portion` is the smallest and largest number of rows of such
    /// a batch; `None`: a whole one.
    pub(super) fn receive<'py>(
        &mut self,
        py: Python<'py>,
        call: Option<Call>,
        portion: Option<(usize, usize)>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut received = Received::default();
        self.finish_step(py, &mut received, call, portion, calling, timeout)?;
        if received.rows.sent().is_some() {
            self.complete_resets(py, None, &mut received, calling)?;
        }
        self.collect_or_lose(py, call, &mut received, |outputs| outputs.into_tuple(py))
    }

    /// Both halves of a step, if it has two.
    fn finish_step(
        &mut self,
        py: Python<'_>,
        received: &mut Received,
        call: Option<Call>,
        portion: Option<(usize, usize)>,
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        // `send` may have begun a step of all rows.
        let call = call.or_else(|| self.pool.pending().filter(|call| *call == Call::Step));
        let size = self.pool.batch_size();
        let portion = portion.unwrap_or((size, size));
        self.finish_some(py, received, call, portion, calling, timeout)?;
        if call.is_some() { self.finish_with_rewards(py, received, calling) } else { Ok(()) }
    }

    /// Makes Python's results of a batch. If that raises, the results of its rows are lost.
    pub(super) fn collect_or_lose<'py, R>(
        &mut self,
        py: Python<'py>,
        call: Option<Call>,
        received: &mut Received,
        show: impl FnOnce(Outputs<'py>) -> PyResult<R>,
    ) -> PyResult<R> {
        let shown = self.collect_or_drop(py, call, received, show);
        if shown.is_err() {
            self.lose(received.rows.iter());
        }
        shown
    }

    /// Observations, rewards, whether episodes are over, and the infos of each row; those of resets
    /// replace entries of `reset_infos`.
    pub(super) fn finish_step_by_row<'py>(
        &mut self,
        py: Python<'py>,
        calling: &str,
        timeout: Option<f64>,
        reset_infos: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut received = Received::default();
        self.finish_step(py, &mut received, Some(Call::Step), None, calling, timeout)?;
        self.or_drop(Some(Call::Step), &mut received, |state, received| {
            state.load_infos(py, received)?;
            let Self { callbacks, batches, blocks, infos, by_row, rows, .. } = state;
            let block = batches.block(py, blocks, *rows)?;
            let lease = of_batch(received.lease.as_ref())?;
            let rewards = narrow_rewards(py, block, lease, *rows)?;
            let [dones, dicts] = by_row.step(py, infos, lease, reset_infos, block)?;
            let (callbacks, filled) = (callbacks.bind(py), &mut received.lease);
            let (observations, _) = batches.observations(callbacks, filled, infos, block)?;
            state.end_copied(received);
            PyTuple::new(py, [observations, rewards, dones, dicts])
        })
    }

    pub(super) fn keep_next_resets(&mut self, rows: Vec<usize>, packed: Vec<Option<Py<PyAny>>>) {
        for (row, packed) in rows.into_iter().zip(packed) {
            match packed {
                Some(packed) => self.next_resets.insert(row, packed),
                None => self.next_resets.remove(&row),
            };
        }
    }

    /// The messages that go with a step of these rows; `None` if nothing was kept for them.
    pub(super) fn pack_next_resets<'py>(
        &self,
        py: Python<'py>,
        rows: impl Iterator<Item = usize>,
    ) -> PyResult<Option<NextResets<'py>>> {
        if self.next_resets.is_empty() {
            return Ok(None);
        }
        let rows: Vec<_> = rows.collect();
        if rows.iter().all(|row| !self.next_resets.contains_key(row)) {
            return Ok(None);
        }
        let packed: Vec<_> = rows.iter().map(|row| self.next_resets.get(row)).collect();
        let callbacks = self.callbacks.bind(py);
        let messages = callbacks.call_method1(intern!(py, "pack_next_resets"), (&rows, packed))?;
        Ok(Some(NextResets { rows, messages }))
    }

    /// Queues the messages that belong to a step that has just begun with [`flags_of`] them.
    fn queue_next_resets(&mut self, py: Python<'_>, next: Option<NextResets<'_>>) -> PyResult<()> {
        let Some(next) = next else { return Ok(()) };
        self.queue(py, Recipients::Some, &next.messages)?;
        for row in next.rows {
            self.next_resets.remove(&row);
        }
        Ok(())
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
        sending.fill_actions(leaf, part.tag(), |sent, buffer| {
            part.copy_to(sent.start * (buffer.len() / sent.len()), buffer);
            check_values(native, leaf, part.tag(), buffer)
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

/// Keywords of next automatic resets of the rows of a step.
pub(super) struct NextResets<'py> {
    /// The rows of the step.
    rows: Vec<usize>,
    messages: Bound<'py, PyAny>,
}

/// The flags of a step with these messages.
pub(super) fn flags_of(next: Option<&NextResets<'_>>) -> u32 {
    if next.is_some() { NEXT_RESETS } else { 0 }
}
