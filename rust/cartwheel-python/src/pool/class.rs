//! The class `Pool`: each method gets exclusive access to the state and works on it.
//!
//! Above 500 lines: PyO3 wants the methods of a class in one block.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cartwheel_engine::Call;
use cartwheel_engine::episodes::Episodes;
use cartwheel_engine::memory::Sharing;
use cartwheel_engine::pool::{DroppedRow, Meter, OnDeath, Policy, Pool, RecvOrder, Waker};
use cartwheel_engine::worker::ThreadPoolSettings;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::array::{Blocks, PyRolloutSlab};
use crate::channel::as_duration;
use crate::convert::to_autoreset_mode;
use crate::error::{in_flight, to_py_err};
use crate::interpreter::enter;
use crate::memory::PyMemory;
use crate::pool::batch::{Batches, RewardForm};
use crate::pool::by_row::{ByRow, RecordedEpisodes};
use crate::pool::callbacks::Callbacks;
use crate::pool::exclusive::{Closing, Exclusive};
use crate::pool::external_resets::ResetFunction;
use crate::pool::external_rewards::RewardFunction;
use crate::pool::gil::GilPolicy;
use crate::pool::infos::{FinalsForm, Infos};
use crate::pool::masks::{MaskSource, Masks};
use crate::pool::messages::{MessageCounts, OutgoingMessages};
use crate::pool::ready_rows::LostWork;
use crate::pool::rows::to_rows;
use crate::pool::stats::to_dict;
use crate::pool::step::ReceivedBy;
use crate::pool::workers::BuiltWorkers;
use crate::pool::{State, reset_flags};
use crate::space::Tree;

/// A number; rows, whether each was reset, and whether its episode ended.
type Dropped = (u64, Vec<usize>, Vec<bool>, Vec<bool>);

/// Steps of each row's episode, whether it ended, and whether there is none.
type EpisodeColumns = (Vec<i32>, Vec<bool>, Vec<bool>);

#[pyclass(frozen, weakref, name = "Pool", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyPool {
    /// Shared with calls of compiled functions, while these run.
    exclusive: Arc<Exclusive>,
    /// The pool's shared memory, until the pool is closed.
    sharing: Option<Weak<Sharing>>,
    /// Reads the counters, until the pool is closed.
    meter: Weak<Meter>,
    /// Ends waits for ready rows, until the pool is closed.
    waker: Weak<Waker>,
}

#[pymethods]
impl PyPool {
    #[new]
    #[pyo3(signature = (
        memory, observations, actions, *, shard, pids, objects, channels, callbacks, class_name, timeout,
        columnar, spin, inline, restart = false, deferred = false, hang_limit = None, reminder = None, num_threads = 1,
        affinity_offset = None, maniskill_names = false, external_rewards = None,
        reward_width = None, external_resets = None, before_step = None, masks = None
    ))]
    #[expect(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "keywords, each documented in the stub"
    )]
    fn new(
        py: Python<'_>,
        memory: &Bound<'_, PyMemory>,
        observations: &Bound<'_, PyAny>,
        actions: &Bound<'_, PyAny>,
        shard: &Bound<'_, PyAny>,
        pids: Vec<u32>,
        objects: Vec<Option<Vec<Py<PyList>>>>,
        channels: Py<PyList>,
        callbacks: Py<PyAny>,
        class_name: String,
        timeout: Option<f64>,
        columnar: bool,
        spin: bool,
        inline: bool,
        restart: bool,
        deferred: bool,
        hang_limit: Option<f64>,
        reminder: Option<f64>,
        num_threads: usize,
        affinity_offset: Option<usize>,
        maniskill_names: bool,
        external_rewards: Option<Py<PyAny>>,
        reward_width: Option<usize>,
        external_resets: Option<(Py<PyAny>, String)>,
        before_step: Option<Py<PyAny>>,
        masks: Option<MaskSource>,
    ) -> PyResult<Self> {
        enter();
        let made = memory.get();
        let (memory, token) = (&made.memory, made.pool_token()?);
        let form = FinalsForm { dense: memory.plan().dense_finals, maniskill: maniskill_names };
        let sharing = memory.sharing().map(Arc::downgrade);
        let rows = memory.plan().rows();
        let max_views = memory.plan().kept();
        let objects = objects_by_row(py, objects, rows)?;
        let settings = ThreadPoolSettings { threads: num_threads, spin, affinity_offset };
        let BuiltWorkers { workers, native, refuse_over } =
            BuiltWorkers::new(made, shard, &pids, inline, settings)?;
        let on_death = match (restart, deferred) {
            (false, _) => OnDeath::Break,
            (true, false) => OnDeath::Resume,
            (true, true) => OnDeath::Defer,
        };
        let (refuse_unstarted, has_external_rewards) =
            (native.is_some(), external_rewards.is_some());
        let policy = Policy { refuse_over, refuse_unstarted, on_death, spin, has_external_rewards };
        let mut pool = Pool::new(token, workers, policy).map_err(to_py_err)?;
        pool.remind_after(as_duration(reminder));
        pool.kill_hung_after(as_duration(hang_limit));
        let meter = Arc::downgrade(pool.meter());
        let waker = Arc::downgrade(pool.waker());
        let closing = Arc::new(Closing::new());
        let state = State {
            message_counts: MessageCounts::new(pool.shards().len()),
            pool,
            callbacks: Callbacks::new(callbacks, class_name.clone(), rows),
            closing: Arc::clone(&closing),
            timeout,
            rows,
            actions: Tree::new(actions)?,
            gil: GilPolicy::new(inline, native.is_some(), num_threads),
            batches: Batches::new(
                Tree::new(observations)?,
                reward_width.into(),
                form,
                max_views,
                sharing.is_some(),
            ),
            blocks: Blocks::default(),
            row_blocks: Blocks::default(),
            infos: Infos::new(objects, columnar, native.is_some()),
            by_row: ByRow::new(rows),
            masks: masks.map(|source| Masks::new(source, rows)),
            native,
            reward_function: external_rewards
                .map(|callable| RewardFunction::new(callable, before_step)),
            reset_function: external_resets.map(ResetFunction::new),
            outgoing: OutgoingMessages::new(channels),
            next_resets: BTreeMap::new(),
            called_rows: None,
            reset_mask: None,
            episodes: None,
            steps_rows: false,
        };
        let exclusive = Arc::new(Exclusive::new(state, closing, class_name));
        Ok(Self { exclusive, sharing, meter, waker })
    }

    #[pyo3(signature = (actions, rows = None))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        rows: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.exclusive.with_pool(py, Call::Step, "step", |state| state.step(py, actions, rows))
    }

    #[pyo3(signature = (actions, rows = None))]
    fn step_async<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        rows: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Step, "step_async", |state| {
            state.send_steps(py, actions, rows, ReceivedBy::Caller, "step_async")?;
            state.steps_rows = rows.is_some();
            Ok(())
        })
    }

    #[pyo3(signature = (timeout = None))]
    fn step_wait<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.exclusive.with_pool(py, Call::Step, "step_wait", |state| {
            // If nothing is in flight, `step_async` is what was not called, whichever rows it names.
            let in_parts = state.pool.is_flying()
                && (state.steps_rows || state.pool.batch_size() < state.rows);
            let call = (!in_parts).then_some(Call::Step);
            state.receive(py, call, None, timeout, "step_wait")
        })
    }

    fn reset<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.exclusive.with_pool(py, Call::Reset, calling, |state| {
            state.begin_reset(py, messages, mask, calling)?;
            state.finish_reset(py, timeout, calling)
        })
    }

    fn reset_async<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
        calling: &str,
    ) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Reset, calling, |state| {
            state.begin_reset(py, messages, mask, calling)
        })
    }

    #[pyo3(signature = (timeout = None))]
    fn reset_wait<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.exclusive.with_pool(py, Call::Reset, "reset_wait", |state| {
            state.finish_reset(py, timeout, "reset_wait")
        })
    }

    fn step_by_row<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        reset_infos: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.exclusive
            .with_pool(py, Call::Step, "step", |state| state.step_by_row(py, actions, reset_infos))
    }

    #[pyo3(signature = (reset_infos, timeout = None))]
    fn step_wait_by_row<'py>(
        &self,
        py: Python<'py>,
        reset_infos: &Bound<'py, PyList>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.exclusive.with_pool(py, Call::Step, "step_wait", |state| {
            state.finish_step_by_row(py, "step_wait", timeout, reset_infos)
        })
    }

    fn reset_by_row<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.exclusive.with_pool(py, Call::Reset, "reset", |state| {
            state.begin_reset(py, messages, mask, "reset")?;
            state.finish_reset_by_row(py, timeout, "reset")
        })
    }

    fn action_masks<'py>(
        &self,
        py: Python<'py>,
        rows: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let rows = rows.map(to_rows).transpose()?;
        self.exclusive.with_pool(py, Call::Call, "action_masks", |state| {
            if let Some(rows) = &rows {
                state.check_rows(rows)?;
            }
            state.action_masks(py, rows)
        })
    }

    fn has_action_masks(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        self.exclusive.with_pool(py, Call::Call, "has_action_masks", |state| {
            Ok(state.masks.as_ref().map_or(Some(false), Masks::are_shown))
        })
    }

    fn kept_action_masks(&self, py: Python<'_>) -> PyResult<Option<Py<PyBytes>>> {
        self.exclusive.with_pool(py, Call::Call, "action_masks", |state| Ok(state.kept_masks(py)))
    }

    fn keep_action_masks(&self, py: Python<'_>, masks: Option<&[u8]>) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Call, "action_masks", |state| {
            if let (Some(known), Some(masks)) = (&mut state.masks, masks) {
                known.restore(masks);
            }
            Ok(())
        })
    }

    fn record_episodes(&self, py: Python<'_>) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Call, "record_episodes", |state| {
            state.by_row.episodes = Some(RecordedEpisodes::new(state.rows));
            Ok(())
        })
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        rows: Option<Py<PyAny>>,
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.exclusive.with_pool(py, Call::Call, calling, |state| {
            state.begin_call(py, messages, rows, calling)?;
            state.finish_call(py, timeout, calling)
        })
    }

    fn call_async(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        rows: Option<Py<PyAny>>,
        calling: &str,
    ) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Call, calling, |state| {
            state.begin_call(py, messages, rows, calling)
        })
    }

    #[pyo3(signature = (timeout = None))]
    fn call_wait<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.exclusive.with_pool(py, Call::Call, "call_wait", |state| {
            state.finish_call(py, timeout, "call_wait")
        })
    }

    fn check(&self, py: Python<'_>, calling: &str, idle: bool) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Call, calling, |state| {
            if idle { state.check_idle(py, calling) } else { Ok(()) }
        })
    }

    fn pending(&self) -> Option<String> {
        self.exclusive.look(|state| state.pool.pending())?.map(|call| call.to_string())
    }

    fn discard_abandoned(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Reset, calling, |state| {
            state.discard_abandoned(py, timeout, calling)
        })
    }

    fn give_up(&self) {
        self.exclusive.look(State::give_up); // a thread that is in a call decides that itself
    }

    fn has_abandoned(&self) -> bool {
        self.exclusive.look(|state| state.callbacks.has_abandoned).unwrap_or(false)
    }

    fn keep_next_resets(
        &self,
        py: Python<'_>,
        rows: Vec<usize>,
        packed: Vec<Option<Py<PyAny>>>,
        calling: &str,
    ) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Call, calling, |state| {
            state.keep_next_resets(rows, packed);
            Ok(())
        })
    }

    fn next_reset_rows(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.exclusive.with_pool(py, Call::Call, "next_reset", |state| {
            Ok(state.next_resets.keys().copied().collect())
        })
    }

    #[pyo3(signature = (actions, rows = None))]
    fn send(
        &self,
        py: Python<'_>,
        actions: &Bound<'_, PyAny>,
        rows: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Step, "send", |state| {
            state.send_steps(py, actions, rows, ReceivedBy::Recv, "send")
        })
    }

    fn reset_rows<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
        messages: &Bound<'py, PyAny>,
        full: bool,
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.exclusive.with_pool(py, Call::Reset, calling, |state| {
            state.send_resets(py, rows, messages, calling, reset_flags(full), true)?;
            state.receive_resets(py, timeout, calling)
        })
    }

    fn send_reset(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        messages: &Bound<'_, PyAny>,
        full: bool,
        calling: &str,
        in_order: bool,
    ) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Reset, calling, |state| {
            state.send_resets(py, rows, messages, calling, reset_flags(full), in_order)
        })
    }

    #[pyo3(signature = (timeout = None, portion = None))]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
        portion: Option<(usize, usize)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.exclusive.with_pool(py, Call::Step, "recv", |state| {
            state.receive(py, None, portion, timeout, "recv")
        })
    }

    #[pyo3(signature = (timeout = None))]
    fn recv_rows<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.exclusive.with_pool(py, Call::Step, "recv", |state| state.receive_ready(py, timeout))
    }

    fn wake(&self, py: Python<'_>) {
        if self.exclusive.check(py).is_ok()
            && let Some(waker) = self.waker.upgrade()
        {
            waker.wake();
        }
    }

    fn dead_workers(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.exclusive.with_pool(py, Call::Call, "recv", |state| Ok(state.pool.dead_workers()))
    }

    fn lost(&self, py: Python<'_>, worker: usize) -> PyResult<LostWork> {
        self.exclusive.with_pool(py, Call::Call, "recv", |state| Ok(state.lost(worker)))
    }

    fn resume(&self, py: Python<'_>, worker: usize, pid: u32, filled: Vec<usize>) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Call, "recv", |state| state.resume(worker, pid, filled))
    }

    fn receives_in_order(&self, py: Python<'_>) -> PyResult<bool> {
        self.exclusive.with_pool(py, Call::Call, "recv_order", |state| {
            Ok(state.pool.recv_order() == RecvOrder::Sent)
        })
    }

    fn receive_in_order(&self, py: Python<'_>, sent: bool) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Call, "recv_order", |state| {
            let flying = state.pool.in_flight();
            if !flying.is_empty() && !state.callbacks.has_abandoned {
                return Err(in_flight(py, "recv_order", &flying));
            }
            state.pool.set_recv_order(if sent { RecvOrder::Sent } else { RecvOrder::Done });
            Ok(())
        })
    }

    #[pyo3(signature = (timeout = None, calling = "reset_wait"))]
    fn recv_resets<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.exclusive
            .with_pool(py, Call::Reset, calling, |state| state.receive_resets(py, timeout, calling))
    }

    fn in_flight(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.exclusive.with_pool(py, Call::Call, "in_flight", |state| {
            let all = state.callbacks.all_sent && state.pool.pending() == Some(Call::Step);
            Ok(if all { (0..state.rows).collect() } else { state.pool.in_flight() })
        })
    }

    fn count_episodes(&self, py: Python<'_>, autoreset_mode: &str) -> PyResult<()> {
        let mode = to_autoreset_mode(autoreset_mode)?;
        self.exclusive.with_pool(py, Call::Call, "count_episodes", |state| {
            state.episodes = Some(Episodes::new(mode, state.rows));
            state.batches.rewards = RewardForm::Narrow;
            Ok(())
        })
    }

    fn elapsed(&self, py: Python<'_>) -> PyResult<Vec<i32>> {
        self.exclusive.with_pool(py, Call::Call, "elapsed", |state| {
            Ok(state.episodes.as_ref().map_or_else(Vec::new, |counted| counted.elapsed().to_vec()))
        })
    }

    fn without_episode(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.exclusive.with_pool(py, Call::Call, "without_episode", |state| {
            Ok(state.episodes.as_ref().map_or_else(Vec::new, Episodes::without_episode))
        })
    }

    fn episodes(&self, py: Python<'_>) -> PyResult<Option<EpisodeColumns>> {
        self.exclusive.with_pool(py, Call::Call, "episodes", |state| {
            Ok(state.episodes.as_ref().map(|counted| {
                let ended = counted.ended().iter().map(|&ended| ended != 0).collect();
                (counted.elapsed().to_vec(), ended, counted.fresh().to_vec())
            }))
        })
    }

    fn set_episodes(
        &self,
        py: Python<'_>,
        elapsed: Vec<i32>,
        ended: Vec<bool>,
        fresh: Vec<bool>,
    ) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Call, "load_state_dict", |state| {
            state.check_idle(py, "load_state_dict")?;
            let counted = state.episodes.as_mut();
            if counted.is_some_and(|counted| counted.restore(&elapsed, &ended, &fresh)) {
                return Ok(());
            }
            Err(PyValueError::new_err(format!("episodes of {} rows are needed", state.rows)))
        })
    }

    fn begin_episodes(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = to_rows(rows)?;
        self.exclusive.with_pool(py, Call::Call, "begin_episodes", |state| {
            state.check_rows(&rows)?;
            if let Some(episodes) = &mut state.episodes {
                episodes.reset(&rows);
            }
            Ok(())
        })
    }

    fn lose(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = to_rows(rows)?;
        self.exclusive.with_pool(py, Call::Call, "lose", |state| {
            state.check_rows(&rows)?;
            state.lose(rows.into_iter());
            Ok(())
        })
    }

    fn dropped(&self, since: u64, level: u32) -> Option<Dropped> {
        let (number, dropped) =
            self.exclusive.look(|state| state.pool.dropped_since(since, level))?;
        if number == since {
            return None;
        }
        let rows = dropped.iter().map(|dropped| dropped.row).collect();
        let resets = dropped.iter().map(|dropped| dropped.was_reset).collect();
        Some((number, rows, resets, dropped.iter().map(|dropped| dropped.over).collect()))
    }

    fn drop_rows(&self, rows: Vec<usize>, resets: Vec<bool>, over: Vec<bool>, level: u32) {
        let dropped = rows.into_iter().zip(resets.into_iter().zip(over));
        let dropped = dropped.map(|(row, (was_reset, over))| DroppedRow { row, was_reset, over });
        self.exclusive.look(|state| state.pool.drop_rows(dropped, level)); // closed: all is dropped
    }

    fn rows_over(&self) -> Vec<usize> {
        self.exclusive.look(|state| state.pool.rows_over()).unwrap_or_default()
    }

    fn rows_begun(&self) -> Vec<usize> {
        self.exclusive.look(|state| state.pool.rows_begun()).unwrap_or_default()
    }

    fn new_rollout(&self, py: Python<'_>, steps: usize) -> PyResult<PyRolloutSlab> {
        self.exclusive.with_pool(py, Call::Call, "rollout", |state| state.take_rollout(py, steps))
    }

    fn record<'py>(
        &self,
        py: Python<'py>,
        rollout: &Bound<'py, PyRolloutSlab>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.exclusive.with_pool(py, Call::Call, "rollout", |state| state.record(rollout))
    }

    fn stop_recording(&self, py: Python<'_>) -> PyResult<()> {
        self.exclusive.with_pool(py, Call::Call, "end_rollout", |state| {
            state.pool.stop_recording();
            Ok(())
        })
    }

    fn recorded_steps(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.exclusive
            .with_pool(py, Call::Call, "recorded_steps", |state| Ok(state.pool.recorded_steps()))
    }

    fn begun(&self, py: Python<'_>) -> PyResult<u64> {
        // Without exclusive access, as `stats`.
        self.exclusive.check(py)?;
        Ok(self.meter.upgrade().ok_or_else(|| self.exclusive.closed(py))?.begun())
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Without exclusive access: a caller wants to see what another thread is waiting for.
        self.exclusive.check(py)?;
        let meter = self.meter.upgrade().ok_or_else(|| self.exclusive.closed(py))?;
        to_dict(py, &meter.read())
    }

    fn make_private(&self) -> PyResult<()> {
        // Without exclusive access: a thread that was in a call at the fork never leaves it in
        // the child.
        let sharing = self.sharing.as_ref().and_then(Weak::upgrade);
        sharing.map_or(Ok(()), |sharing| sharing.make_private()).map_err(to_py_err)
    }

    fn abandon(&self) {
        self.exclusive.drop_in_child();
    }

    #[pyo3(signature = (grace, after = None))]
    fn close(&self, py: Python<'_>, grace: f64, after: Option<Py<PyAny>>) -> Option<Vec<usize>> {
        self.exclusive.close(py, as_duration(Some(grace)).unwrap_or(Duration::MAX), after)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.exclusive.visit(|state| state.traverse(&visit)).unwrap_or(Ok(()))
    }
}

impl PyPool {
    /// The state, for a registry of pools.
    pub(crate) fn exclusive(&self) -> &Arc<Exclusive> {
        &self.exclusive
    }
}

/// The objects that rows keep in this process, from the objects of their shards.
fn objects_by_row(
    py: Python<'_>,
    objects: Vec<Option<Vec<Py<PyList>>>>,
    rows: usize,
) -> PyResult<Vec<Option<Py<PyList>>>> {
    let mut by_row = Vec::with_capacity(rows);
    for objects in objects.into_iter().flatten() {
        by_row.extend(objects.iter().map(|objects| Some(objects.clone_ref(py))));
    }
    match by_row.len() {
        0 => Ok(std::iter::repeat_with(|| None).take(rows).collect()),
        all if all == rows => Ok(by_row),
        got => Err(PyValueError::new_err(format!("{got} lists of objects for {rows} rows"))),
    }
}
