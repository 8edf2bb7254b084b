//! The pool as Python sees it, behind one door.
//!
//! Above 400 lines: a class's methods have to stand in one block.

mod actions;
mod announced;
mod batch;
mod infos;
mod posted;
mod restart;
mod rollout;
mod sent;
mod stats;
mod workers;

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, TryLockError, Weak};
use std::time::Duration;

use cartwheel::memory::{Sharing, process_id};
use cartwheel::pool::{Finished, Meter, OnDeath, Policy, Pool};
use cartwheel::worker::CrewSettings;
use cartwheel::{Call, Error};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::array::PyRolloutSlab;
use crate::error::{
    already_pending, closed, forked, in_flight, not_pending, nothing_in_flight, timed_out,
    to_py_err,
};
use crate::memory::PyMemory;
use crate::mode::mode;
use crate::native::PyNativeEnvs;
use crate::pool::actions::{Casting, Checked};
use crate::pool::announced::{Announced, Messages};
use crate::pool::batch::{Batches, Outputs};
use crate::pool::infos::Infos;
use crate::pool::posted::{Posts, To};
use crate::pool::sent::to_rows;
use crate::pool::stats::to_dict;
use crate::pool::workers::Made;
use crate::space::Tree;
use crate::worker::shard::ACTIONS_BY_CHANNEL;

/// Nobody has closed the pool.
const OPEN: u8 = 0;
/// Somebody closes it, as soon as no other thread is in a call.
const CLOSING: u8 = 1;
/// They have waited long enough: the thread that is in a call closes it when it comes back.
const LEFT: u8 = 2;
/// How long workers have to end when it is closed by that thread.
const LAST_GRACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) pool: Pool,
    pub(crate) infos: Infos,
    pub(crate) announced: Announced,
    pub(crate) posts: Posts,
    /// The last wait was given up; a reset may drop what it was for.
    pub(crate) late: bool,
}

/// Documented in the stub.
#[pyclass(frozen, weakref, name = "Pool", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyPool {
    /// `None` once closed.
    state: Mutex<Option<State>>,
    /// `cartwheel.worker.link.Link`: the channels to the workers, and what only Python can do.
    pub(crate) link: Py<PyAny>,
    class_name: String,
    /// Seconds that a synchronous step may take.
    pub(crate) timeout: Option<f64>,
    pub(crate) batches: Batches,
    pub(crate) actions: Tree,
    pub(crate) rows: usize,
    /// Native environments, which check their actions.
    pub(crate) native: Option<Py<PyNativeEnvs>>,
    /// The caller's thread steps everything: detaching would only cost time.
    inline: bool,
    /// [`OPEN`], [`CLOSING`] or [`LEFT`].
    closing: AtomicU8,
    /// The call that holds the lock, for the error of a second thread.
    running: AtomicU8,
    /// What the pool shares with its workers, until it is closed.
    sharing: Option<Weak<Sharing>>,
    /// Reads what was counted, until it is closed.
    meter: Weak<Meter>,
    owner: u32,
}

#[pymethods]
impl PyPool {
    #[new]
    #[pyo3(signature = (
        memory, observations, actions, *, shard, pids, objects, link, class_name, timeout,
        columnar, spin, inline, restart = false, reminder = None, num_threads = 1,
        affinity_offset = None
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
        link: Py<PyAny>,
        class_name: String,
        timeout: Option<f64>,
        columnar: bool,
        spin: bool,
        inline: bool,
        restart: bool,
        reminder: Option<f64>,
        num_threads: usize,
        affinity_offset: Option<usize>,
    ) -> PyResult<Self> {
        let memory = memory.get().memory.clone();
        let sharing = memory.sharing().map(Arc::downgrade);
        let rows = memory.plan().rows();
        let objects = objects_by_row(py, objects, rows)?;
        let crew = CrewSettings { threads: num_threads, spin, affinity_offset };
        let Made { workers, native, refuse_over } = Made::new(&memory, shard, &pids, inline, crew)?;
        let on_death = if restart { OnDeath::Resume } else { OnDeath::Break };
        let policy = Policy { refuse_over, refuse_unstarted: native.is_some(), on_death, spin };
        let mut pool = Pool::new(memory, workers, policy).map_err(to_py_err)?;
        let announced = Announced::new(pool.shards().len());
        pool.remind_after(as_duration(reminder)?);
        let meter = Arc::downgrade(pool.meter());
        Ok(Self {
            state: Mutex::new(Some(State {
                pool,
                infos: Infos::new(objects, columnar),
                announced,
                posts: Posts::default(),
                late: false,
            })),
            link,
            class_name,
            timeout,
            batches: Batches::new(Tree::new(observations)?),
            actions: Tree::new(actions)?,
            rows,
            native,
            inline,
            closing: AtomicU8::new(OPEN),
            running: AtomicU8::new(Call::Step as u8),
            sharing,
            meter,
            owner: process_id(),
        })
    }

    /// `step_async` and `step_wait` in one.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.enter(py, Call::Step, "step_async", |state| {
            self.begin_step(py, state, actions)?;
            self.finish_step(py, state, "", self.timeout)?.into_tuple(py)
        })
    }

    fn step_async<'py>(&self, py: Python<'py>, actions: &Bound<'py, PyAny>) -> PyResult<()> {
        self.enter(py, Call::Step, "step_async", |state| self.begin_step(py, state, actions))
    }

    #[pyo3(signature = (timeout = None))]
    fn step_wait<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.enter(py, Call::Step, "step_wait", |state| {
            self.finish_step(py, state, "", timeout)?.into_tuple(py)
        })
    }

    /// Begins a reset with one message a shard.
    fn reset_async(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<()> {
        self.begin_with_messages(py, Call::Reset, "reset_async", messages)
    }

    #[pyo3(signature = (timeout = None))]
    fn reset_wait<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.enter(py, Call::Reset, "reset_wait", |state| {
            let finished = self.finish(py, state, Call::Reset, "", timeout)?;
            self.collect(py, state, finished)?.into_observations(py)
        })
    }

    /// Begins a control call with one message a shard. `calling` is the method that the user called.
    fn call_async(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        calling: &str,
    ) -> PyResult<()> {
        self.begin_with_messages(py, Call::Call, calling, messages)
    }

    #[pyo3(signature = (timeout = None))]
    fn call_wait<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.enter(py, Call::Call, "call_wait", |state| {
            let link = self.link.bind(py);
            let received = PyDict::new(py); // of those who answered, when others died before they did
            loop {
                self.finish(py, state, Call::Call, "", timeout)?;
                let announced = state.announced.with_task(&state.pool).rests;
                let told = (&received, announced);
                let answers = link.call_method1(intern!(py, "receive_answers"), told)?;
                if !answers.is_none() {
                    return Ok(answers);
                }
                let messages = link.call_method1(intern!(py, "asked_again"), (&received,))?;
                let begun = state.pool.begin(Call::Call, 0);
                begun.map_err(|error| self.explain(py, error, Call::Call, "call_wait"))?;
                self.post(py, state, To::All, &messages)?;
            }
        })
    }

    /// Raises when the pool is closed, and with `idle` also when a call of any kind could not begin.
    /// `calling` is the method that the user called.
    fn check(&self, py: Python<'_>, calling: &str, idle: bool) -> PyResult<()> {
        self.enter(py, Call::Call, calling, |state| {
            let checked = if idle { state.pool.check(Call::Call) } else { Ok(()) };
            checked.map_err(|error| self.explain(py, error, Call::Call, calling))
        })
    }

    /// The call that was begun and not finished: "step", "reset", "call" or `None`, which is also
    /// the answer while another thread is in a call.
    fn pending(&self) -> Option<String> {
        let state = self.state.try_lock().ok()?;
        state.as_ref()?.pool.pending().map(|call| call.to_string())
    }

    /// Waits for a call that was given up after a timeout or an interrupt, and drops its result.
    #[pyo3(signature = (timeout = None))]
    fn discard_late(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        self.enter(py, Call::Reset, "reset_async", |state| {
            if state.late && state.pool.pending().is_none() {
                return self.discard_received(py, state, timeout);
            }
            let Some(call) = state.pool.pending().filter(|_| state.late) else {
                return Ok(());
            };
            self.finish(py, state, call, "", timeout)?;
            if call == Call::Step {
                state.pool.lose(0..self.rows);
            }
            let messages = state.announced.with_task(&state.pool);
            self.discard(py, messages)
        })
    }

    /// Nobody is going to wait for what is pending or in flight: a reset may drop it.
    fn give_up(&self) {
        // Whoever is in a call decides that himself.
        if let Ok(mut state) = self.state.try_lock()
            && let Some(state) = state.as_mut()
        {
            state.late |= state.pool.pending().is_some() || state.pool.is_flying();
        }
    }

    /// Sends actions to rows; `None` is all of them.
    #[pyo3(signature = (actions, rows = None))]
    fn send(
        &self,
        py: Python<'_>,
        actions: &Bound<'_, PyAny>,
        rows: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.enter(py, Call::Step, "send", |state| self.send_steps(py, state, actions, rows))
    }

    /// Sends resets to rows, with one message for each worker that has some of them.
    fn send_reset(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.enter(py, Call::Reset, "send", |state| self.send_resets(py, state, rows, messages))
    }

    /// The next batch of rows that were sent: what `step` returns, with `env_index` in the infos.
    #[pyo3(signature = (timeout = None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.enter(py, Call::Step, "recv", |state| self.receive(py, state, timeout))
    }

    /// The next batch of rows that were reset: what `reset` returns, with `env_index` in the infos.
    #[pyo3(signature = (timeout = None))]
    fn recv_resets<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.enter(py, Call::Reset, "reset_wait", |state| self.receive_resets(py, state, timeout))
    }

    /// `send` and `recv` in one.
    fn step_rows<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.enter(py, Call::Step, "step", |state| {
            self.send_steps(py, state, actions, Some(rows))?;
            self.receive(py, state, self.timeout)
        })
    }

    /// The rows that were sent and not received.
    fn in_flight(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.enter(py, Call::Call, "in_flight", |state| Ok(state.pool.in_flight()))
    }

    /// Counts the steps of episodes from now on, and names the rows of batches as `EnvPool` does.
    fn count_episodes(&self, py: Python<'_>, autoreset_mode: &str) -> PyResult<()> {
        let mode = mode(autoreset_mode)?;
        self.enter(py, Call::Call, "count_episodes", |state| {
            state.pool.count_episodes(mode);
            Ok(())
        })
    }

    /// Of each row, the steps of its episode.
    fn elapsed(&self, py: Python<'_>) -> PyResult<Vec<i32>> {
        self.enter(py, Call::Call, "elapsed", |state| {
            Ok(state.pool.elapsed().unwrap_or_default().to_vec())
        })
    }

    /// The rows without an episode.
    fn without_episode(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.enter(py, Call::Call, "without_episode", |state| Ok(state.pool.without_episode()))
    }

    /// Rows were reset by a reset of all rows.
    fn begin_episodes(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = self.own_rows(rows)?;
        self.enter(py, Call::Call, "begin_episodes", |state| {
            state.pool.begin_episodes(&rows);
            Ok(())
        })
    }

    /// The last results of rows are going to be seen by nobody.
    fn lose(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = self.own_rows(rows)?;
        self.enter(py, Call::Call, "lose", |state| {
            state.pool.lose(rows.into_iter());
            Ok(())
        })
    }

    /// Takes a rollout of `steps` steps; it is recorded by `record`.
    fn new_rollout(&self, py: Python<'_>, steps: usize) -> PyResult<PyRolloutSlab> {
        self.enter(py, Call::Call, "rollout", |state| self.take_rollout(py, state, steps))
    }

    /// Records the next batches in a rollout, and gives its arrays.
    fn record<'py>(
        &self,
        py: Python<'py>,
        rollout: &Bound<'py, PyRolloutSlab>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.enter(py, Call::Call, "rollout", |state| {
            let arrays = self.rollout_arrays(rollout)?;
            state.pool.record(Arc::clone(rollout.get().lease())).map_err(to_py_err)?;
            Ok(arrays)
        })
    }

    /// Ends a recording.
    fn stop_recording(&self, py: Python<'_>) -> PyResult<()> {
        self.enter(py, Call::Call, "end_rollout", |state| {
            state.pool.stop_recording();
            Ok(())
        })
    }

    /// Steps of the rollout that is being recorded.
    fn recorded_steps(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.enter(py, Call::Call, "recorded_steps", |state| Ok(state.pool.recorded_steps()))
    }

    /// Slabs that have memory behind them.
    fn num_slabs(&self, py: Python<'_>) -> PyResult<usize> {
        self.enter(py, Call::Call, "num_slabs", |state| Ok(state.pool.slabs().reserved()))
    }

    /// What was counted so far.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Not through the door: what another thread is waiting for is what one wants to know.
        if self.owner != process_id() {
            return Err(forked(py, self.owner));
        }
        let meter = self.meter.upgrade().filter(|_| !self.is_closing());
        to_dict(py, &meter.ok_or_else(|| closed(py, &self.class_name))?.read())
    }

    /// Makes the arrays that a forked child sees its own.
    fn part(&self) -> PyResult<()> {
        // Not through the door: whoever was in a call when the process forked is in it for ever.
        let sharing = self.sharing.as_ref().and_then(Weak::upgrade);
        sharing.map_or(Ok(()), |sharing| sharing.part()).map_err(to_py_err)
    }

    /// Ends the workers; returns those that did not end by themselves within `grace` seconds.
    fn close(&self, py: Python<'_>, grace: f64) -> Vec<usize> {
        if self.owner != process_id() {
            return Vec::new();
        }
        self.closing.fetch_max(CLOSING, Ordering::AcqRel); // ends the wait of another thread
        let grace = Duration::try_from_secs_f64(grace).unwrap_or(Duration::ZERO);
        let patience = std::time::Instant::now() + grace + Duration::from_millis(500);
        loop {
            match self.end(py, grace) {
                Some(late) => return late,
                None if std::time::Instant::now() < patience => {
                    py.detach(|| std::thread::sleep(Duration::from_millis(1)));
                }
                None => break,
            }
        }
        // Another thread is inside an environment; the pool ends when it comes back. Either it finds this
        // word, which it looks at when it has let go of the state, or the state is free by now.
        self.closing.store(LEFT, Ordering::SeqCst);
        self.end(py, grace).unwrap_or_default()
    }
}

impl PyPool {
    /// The one door: checks who calls, takes the state without ever waiting for it.
    pub(crate) fn enter<T>(
        &self,
        py: Python<'_>,
        call: Call,
        calling: &str,
        run: impl FnOnce(&mut State) -> PyResult<T>,
    ) -> PyResult<T> {
        if self.owner != process_id() {
            return Err(forked(py, self.owner));
        }
        if self.is_closing() {
            return Err(closed(py, &self.class_name));
        }
        // A second thread, or an environment that calls back, finds the state taken. It must not
        // wait: the first caller may need the interpreter to go on.
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let running = Call::from_number(self.running.load(Ordering::Relaxed));
                let running = running.expect("only calls are stored");
                return Err(already_pending(py, calling, &running.to_string()));
            }
        };
        self.running.store(call as u8, Ordering::Relaxed);
        let outcome = match state.as_mut() {
            Some(state) => run(state),
            None => Err(closed(py, &self.class_name)),
        };
        drop(state);
        if self.closing.load(Ordering::SeqCst) == LEFT {
            self.end(py, LAST_GRACE);
        }
        outcome
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire) != OPEN
    }

    /// Ends the pool, unless that was done: the workers that did not end within `grace`. `None` while
    /// another thread is in a call.
    fn end(&self, py: Python<'_>, grace: Duration) -> Option<Vec<usize>> {
        let state = match self.state.try_lock() {
            Ok(mut state) => state.take(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
            Err(TryLockError::WouldBlock) => return None,
        };
        // With the state go the descriptors; memory stays for as long as some array shows it.
        let Some(mut state) = state else { return Some(Vec::new()) };
        self.hang_up_if_owing(py, &state);
        let pool = &mut state.pool;
        Some(if self.inline { pool.close(grace) } else { py.detach(|| pool.close(grace)) })
    }

    /// Rows of this pool.
    fn own_rows(&self, rows: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let rows = to_rows(rows)?;
        let missing = rows.iter().find(|&&row| row >= self.rows);
        missing
            .map_or(Ok(()), |row| Err(PyValueError::new_err(format!("there is no row {row}"))))?;
        Ok(rows)
    }

    /// The exception for an error of the core, with what only the pool knows.
    pub(crate) fn explain(&self, py: Python<'_>, error: Error, call: Call, calling: &str) -> PyErr {
        match error {
            Error::Closed => closed(py, &self.class_name),
            Error::AlreadyPending { pending } => already_pending(py, calling, &pending.to_string()),
            Error::NotPending { .. } => not_pending(py, call),
            Error::InFlight { rows } => in_flight(py, calling, &rows),
            Error::NothingInFlight => nothing_in_flight(py),
            Error::Timeout { timeout, rows } => {
                let rows: Vec<usize> = rows.into_iter().flatten().collect();
                let waiting =
                    if calling.is_empty() { format!("{call}_wait") } else { calling.to_owned() };
                timed_out(py, &waiting, timeout.as_secs_f64(), &rows)
            }
            Error::WorkerDied { worker, pid, rows } => {
                let rows: Vec<usize> = rows.collect();
                let link = self.link.bind(py);
                let died = link.call_method1("worker_died", (worker, pid, rows, call.to_string()));
                died.map_or_else(|error| error, PyErr::from_value)
            }
            other => to_py_err(other),
        }
    }

    fn begin_with_messages(
        &self,
        py: Python<'_>,
        call: Call,
        calling: &str,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.enter(py, call, calling, |state| {
            let explain = |error| self.explain(py, error, call, calling);
            state.pool.check(call).map_err(explain)?;
            if self.native.is_some() {
                self.leave(py, To::All, messages)?;
                return state.pool.begin(call, 0).map_err(explain);
            }
            state.pool.begin(call, 0).map_err(explain)?;
            self.post(py, state, To::All, messages)
        })
    }

    pub(crate) fn begin_step<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let explain = |error| self.explain(py, error, Call::Step, "step_async");
        state.pool.check(Call::Step).map_err(explain)?;
        if self.actions.opaque > 0 {
            let link = self.link.bind(py);
            let messages = link.call_method1(intern!(py, "pack_actions"), (actions,))?;
            state.pool.begin(Call::Step, ACTIONS_BY_CHANNEL).map_err(explain)?;
            return self.post(py, state, To::All, &messages);
        }
        let checked = Checked::new(&self.actions, actions, self.rows, self.casting())?;
        let pool = &mut state.pool;
        for (leaf, part) in checked.parts() {
            let filled = pool.fill_actions(leaf, part.tag(), |room| {
                part.copy_to(0, room);
                self.check_values(leaf, room)
            });
            filled.map_err(explain)?;
        }
        pool.begin(Call::Step, 0).map_err(explain)
    }

    /// How actions are cast: native environments read the space's own dtype, others get the batch's.
    pub(crate) fn casting(&self) -> Option<Casting> {
        self.native.as_ref().map(|_| Casting::Safe)
    }

    /// Refuses actions, copied to where they will be read, that native environments could not take.
    pub(crate) fn check_values(&self, leaf: usize, elements: &[u8]) -> Result<(), Error> {
        let native = self.native.as_ref().map(Py::get);
        native.map_or(Ok(()), |native| native.check_actions(leaf, elements))
    }

    pub(crate) fn finish_step<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<Outputs<'py>> {
        let finished = self.finish(py, state, Call::Step, calling, timeout)?;
        let outputs = self.collect(py, state, finished);
        if outputs.is_err() {
            state.pool.lose(0..self.rows);
        }
        outputs
    }

    /// Receives messages and drops them.
    pub(crate) fn discard(&self, py: Python<'_>, messages: Messages) -> PyResult<()> {
        if !messages.faults.is_empty() || !messages.rests.is_empty() {
            let told = (messages.faults, messages.rests);
            self.link.bind(py).call_method1(intern!(py, "discard"), told)?;
        }
        Ok(())
    }

    fn collect<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        finished: Finished,
    ) -> PyResult<Outputs<'py>> {
        let messages = state.announced.with_task(&state.pool);
        let State { pool, infos, .. } = state;
        self.batches.collect(self.link.bind(py), pool, infos, finished, &messages)
    }

    /// Waits for the pending call: detached, bounded, interruptible. Errors call it `calling`, or by its own
    /// name where that is empty.
    fn finish(
        &self,
        py: Python<'_>,
        state: &mut State,
        call: Call,
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<Finished> {
        self.wait(py, state, call, calling, timeout, |pool, timeout, interrupted| {
            pool.finish(call, timeout, interrupted)
        })
    }

    /// Waits by `wait`: detached, bounded, interruptible. A worker that died meanwhile is followed by
    /// another one, if that is the policy.
    pub(crate) fn wait<T: Send>(
        &self,
        py: Python<'_>,
        state: &mut State,
        call: Call,
        calling: &str,
        timeout: Option<f64>,
        wait: impl Fn(&mut Pool, Option<Duration>, &mut dyn FnMut() -> bool) -> Result<T, Error> + Sync,
    ) -> PyResult<T> {
        let timeout = as_duration(timeout)?;
        self.post_owed(py, state)?;
        let mut raised = None;
        let mut interrupted = || {
            if self.is_closing() {
                return true;
            }
            raised = Python::attach(|py| py.check_signals().err());
            raised.is_some()
        };
        let mut before = Duration::ZERO; // what earlier waits took
        let outcome = loop {
            let (pool, left) = (&mut state.pool, timeout.map(|all| all.saturating_sub(before)));
            let outcome = if self.inline {
                wait(pool, left, &mut interrupted)
            } else {
                py.detach(|| wait(pool, left, &mut interrupted))
            };
            match (outcome, timeout) {
                (Err(Error::WorkerDied { worker, .. }), _) if state.pool.can_resume() => {
                    self.restart(py, state, worker, call)?;
                }
                (Err(Error::StillWaiting { waited, rows }), _) => {
                    before += waited;
                    let call = call.to_string();
                    self.remind(py, if calling.is_empty() { &call } else { calling }, before, rows);
                }
                (Err(Error::Timeout { rows, .. }), Some(timeout)) => {
                    break Err(Error::Timeout { timeout, rows });
                }
                (outcome, _) => break outcome,
            }
        };
        match &outcome {
            Ok(_) => state.late = false,
            Err(Error::Timeout { .. } | Error::Interrupted) => state.late = true,
            Err(_) => {} // a wait for something that is not owed says nothing of what is
        }
        outcome.map_err(|error| match (error, raised) {
            (Error::Interrupted, Some(raised)) => raised,
            (Error::Interrupted, None) => closed(py, &self.class_name),
            (error, _) => self.explain(py, error, call, calling),
        })
    }

    /// Has the link say for whom `waiting` has waited so long; whatever comes of that, the wait goes on.
    fn remind(&self, py: Python<'_>, waiting: &str, waited: Duration, rows: Vec<Range<usize>>) {
        let rows: Vec<_> = rows.into_iter().map(|rows| (rows.start, rows.end)).collect();
        let (link, told) = (self.link.bind(py), (waiting, waited.as_secs_f64(), rows));
        if let Err(error) = link.call_method1(intern!(py, "still_waiting"), told) {
            error.write_unraisable(py, Some(link));
        }
    }
}

fn as_duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let seconds = seconds.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)));
    seconds.transpose().map_err(|error| PyValueError::new_err(error.to_string()))
}

/// What rows keep in this process, from what their shards do.
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
