//! A pool for Python: its state, with the parts that all calls share.
//!
//! Python calls the methods of [`PyPool`]. Each of them gets exclusive access to the [`State`] and works on
//! it by the methods that the other files add to it.

mod actions;
mod batch;
mod buffers;
mod by_row;
mod call;
mod callbacks;
mod class;
mod compiled;
mod elements;
mod exclusive;
mod external_resets;
mod external_rewards;
mod gil;
mod infos;
mod masks;
mod messages;
mod ready_rows;
mod rollout;
mod rows;
mod stats;
mod step;
mod texts;
mod wait;
mod workers;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cartwheel_engine::episodes::Episodes;
use cartwheel_engine::pool::{Pool, Received};
use cartwheel_engine::space::ActionTag;
use cartwheel_engine::{Call, Error, FULL_RESET};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::array::Blocks;
use crate::error::to_py_err;
use crate::native::PyNativeEnvs;
use crate::pool::actions::Cast;
use crate::pool::batch::{Batches, Outputs, load, name_rows};
use crate::pool::by_row::ByRow;
use crate::pool::callbacks::Callbacks;
use crate::pool::exclusive::Closing;
use crate::pool::external_resets::ResetFunction;
use crate::pool::external_rewards::RewardFunction;
use crate::pool::gil::GilPolicy;
use crate::pool::infos::Infos;
use crate::pool::masks::Masks;
use crate::pool::messages::{MessageCounts, OutgoingMessages};
use crate::space::Tree;
use crate::worker::shard::PyShard;

pub(crate) use crate::pool::batch::COPIED_BYTES;
pub(crate) use crate::pool::buffers::{Refused, other_pool};
pub(crate) use crate::pool::class::PyPool;
pub(crate) use crate::pool::exclusive::Exclusive;

/// A pool, and the conversion of its batches for Python.
#[derive(Debug)]
pub(crate) struct State {
    pool: Pool,
    callbacks: Callbacks,
    /// Ends waits.
    closing: Arc<Closing>,
    /// Seconds that a synchronous step may take.
    timeout: Option<f64>,
    rows: usize,
    actions: Tree,
    /// Native environments, which check their actions.
    native: Option<Py<PyNativeEnvs>>,
    /// Computes rewards and flags of the rows after the first half of each step.
    reward_function: Option<RewardFunction>,
    /// Writes the first states of episodes.
    reset_function: Option<ResetFunction>,
    gil: GilPolicy,
    batches: Batches,
    /// Memory of the arrays of batches.
    blocks: Blocks,
    /// Memory of the arrays that say which rows a batch has.
    row_blocks: Blocks,
    infos: Infos,
    by_row: ByRow,
    /// Masks of actions; `None` for an action space that has none.
    masks: Option<Masks>,
    message_counts: MessageCounts,
    outgoing: OutgoingMessages,
    /// Keywords of the next automatic resets of rows, packed for their workers and sent with the next
    /// step of the row.
    next_resets: BTreeMap<usize, Py<PyAny>>,
    /// The rows whose answers the pending control call returns; `None` for all rows.
    called_rows: Option<Py<PyAny>>,
    /// Whether the last `step_async` named its rows.
    steps_rows: bool,
    /// The rows that the last reset of all rows, or of a mask, was for, a byte each; `None` for all rows.
    reset_mask: Option<Vec<u8>>,
    /// Counted on request.
    episodes: Option<Episodes>,
}

impl State {
    /// Tells Python's garbage collector which objects the pool keeps between calls. Those of worker
    /// threads are theirs.
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callbacks.traverse(visit)?;
        self.actions.traverse(visit)?;
        self.batches.observations.traverse(visit)?;
        self.infos.traverse(visit)?;
        self.outgoing.traverse(visit)?;
        if let Some(function) = &self.reward_function {
            function.traverse(visit)?;
        }
        if let Some(function) = &self.reset_function {
            function.traverse(visit)?;
        }
        visit.call(&self.native)?;
        visit.call(&self.called_rows)?;
        self.next_resets.values().try_for_each(|given| visit.call(given))?;
        let shard = self.pool.inline_shard().and_then(<dyn Any>::downcast_ref::<PyShard>);
        shard.map_or(Ok(()), |shard| shard.traverse(visit))
    }

    /// Raises when a call of any kind could not begin.
    fn check_idle(&self, py: Python<'_>, calling: &str) -> PyResult<()> {
        let explain = |error| self.callbacks.explain(py, error, Call::Call, calling);
        self.pool.check(Call::Call).map_err(explain)
    }

    /// Raises unless all of these are rows of this pool.
    fn check_rows(&self, rows: &[usize]) -> PyResult<()> {
        let missing = rows.iter().copied().find(|&row| row >= self.rows);
        missing.map_or(Ok(()), |row| Err(to_py_err(Error::NoSuchRow { row, rows: self.rows })))
    }

    /// Checks whether these rows can be stepped as far as their episodes are concerned.
    fn check_episodes(&self, rows: impl Iterator<Item = usize>) -> Result<(), Error> {
        self.episodes.as_ref().map_or(Ok(()), |episodes| episodes.check(rows))
    }

    /// Notes that the last results of these rows were not seen.
    fn lose(&mut self, rows: impl Iterator<Item = usize>) {
        if let (Some(_), Some(native)) = (&self.reset_function, &self.native) {
            native.get().take_begun(); // their resets are lost, too
        }
        if let Some(episodes) = &mut self.episodes {
            episodes.lose(rows);
        }
    }

    /// Notes that no caller sees the results of a call; `None`: of rows that were sent.
    fn drop_results(&mut self, call: Option<Call>, received: &Received) {
        let mask = self.reset_mask.as_deref();
        let is_reset = |row: usize| is_reset(mask, row);
        let resets = (call == Some(Call::Reset)).then_some(&is_reset as &dyn Fn(usize) -> bool);
        self.pool.drop_results(received, resets);
        if let Some(masks) = &mut self.masks {
            masks.lose(&self.infos, &received.rows, resets.filter(|_| mask.is_some()));
        }
    }

    /// Ends the lease of a batch, if there is still one: its results were copied.
    fn end_copied(&mut self, received: &mut Received) {
        if let Some(lease) = received.lease.take() {
            self.pool.end_copied(lease);
        }
    }

    /// Makes Python's results of a batch, which `show` puts together, or raises the exceptions of its
    /// environments and drops it. Only a batch of rows that were sent, of no call, says which rows it has.
    fn collect_or_drop<'py, R>(
        &mut self,
        py: Python<'py>,
        call: Option<Call>,
        received: &mut Received,
        show: impl FnOnce(Outputs<'py>) -> PyResult<R>,
    ) -> PyResult<R> {
        self.or_drop(call, received, |state, received| {
            state.load_infos(py, received)?;
            let Self { callbacks, batches, blocks, infos, .. } = state;
            let outputs =
                batches.outputs(callbacks.bind(py), &mut received.lease, infos, blocks)?;
            if call.is_none() {
                let (episodes, blocks) = (state.episodes.as_ref(), &mut state.row_blocks);
                match received.rows.sent() {
                    Some(rows) => {
                        name_rows(&outputs.infos, episodes, rows.iter().copied(), blocks)?;
                    }
                    None => name_rows(&outputs.infos, episodes, 0..state.rows, blocks)?,
                }
            }
            let shown = show(outputs)?;
            state.end_copied(received);
            Ok(shown)
        })
    }

    /// Makes Python's results of a batch. If that raises, no caller sees the results of the call;
    /// `None`: rows were sent.
    fn or_drop<R>(
        &mut self,
        call: Option<Call>,
        received: &mut Received,
        make: impl FnOnce(&mut Self, &mut Received) -> PyResult<R>,
    ) -> PyResult<R> {
        let results = make(self, received);
        if results.is_err() {
            self.drop_results(call, received);
        }
        results
    }

    /// Loads the infos of a batch, or raises the exceptions of its environments: then the results have to
    /// be [dropped](Self::drop_results).
    fn load_infos(&mut self, py: Python<'_>, received: &Received) -> PyResult<()> {
        let Self { callbacks, pool, infos, masks, message_counts, .. } = self;
        let is_quiet = received.infos.is_empty() && received.failed.is_empty();
        let messages = (!is_quiet).then(|| message_counts.announced(pool, received));
        if let Some(masks) = masks {
            masks.before(infos, &received.rows);
        }
        let loaded = if let Some(messages) = messages {
            load(callbacks.bind(py), pool, infos, received, &messages, callbacks.seconds)
        } else {
            message_counts.forget(received.rows.sent().unwrap_or_default());
            infos.begin(&received.rows, 0);
            Ok(())
        };
        if let Some(masks) = masks.as_mut().filter(|_| loaded.is_ok()) {
            masks.after(infos, received);
        }
        loaded
    }

    /// Ends the workers; returns those that did not end by themselves within `grace`.
    fn close(&mut self, py: Python<'_>, grace: Duration) -> Vec<usize> {
        self.outgoing.hang_up_if_unsent(py);
        // The state is dropped with its descriptors; memory stays as long as an array shows it.
        let Self { pool, gil, .. } = self;
        gil.during(py, || pool.close(grace))
    }
}

/// The flags of a reset; a full one names no rows, by numbers or by a mask.
const fn reset_flags(full: bool) -> u32 {
    if full { FULL_RESET } else { 0 }
}

/// Whether a reset with this mask, or of all rows, is for a row.
fn is_reset(mask: Option<&[u8]>, row: usize) -> bool {
    mask.is_none_or(|mask| mask.get(row).is_some_and(|&flag| flag != 0))
}

/// The cast of actions: native environments read the space's own dtype, except for floats that they
/// take as they are; others get the batch's.
fn cast_for(native: Option<&Py<PyNativeEnvs>>) -> Cast<'_> {
    native.map_or(Cast::None, |native| Cast::Except(native.get().action_floats()))
}

/// Refuses actions, already copied to where they will be read, that are invalid for native
/// environments.
fn check_values(
    native: Option<&Py<PyNativeEnvs>>,
    leaf: usize,
    tag: ActionTag,
    elements: &[u8],
) -> Result<(), Error> {
    native.map_or(Ok(()), |native| native.get().check_actions(leaf, tag, elements))
}
