//! The pool as Python sees it, behind one door.
//!
//! Above 400 lines: a class's methods have to stand in one block.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, TryLockError};
use std::time::Duration;

use cartwheel::pool::{Finished, Policy, Pool};
use cartwheel::worker::CrewSettings;
use cartwheel::{Call, Error};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::actions::Checked;
use crate::batch::{Batches, Outputs};
use crate::error::{already_pending, closed, forked, not_pending, timed_out, to_py_err};
use crate::infos::Infos;
use crate::memory::PyMemory;
use crate::native::PyNativeEnvs;
use crate::shard::ACTIONS_BY_CHANNEL;
use crate::space::Tree;
use crate::workers::Made;

#[derive(Debug)]
struct State {
    pool: Pool,
    infos: Infos,
    /// The last wait for the pending call was given up; a reset may drop it.
    late: bool,
}

/// Documented in the stub.
#[pyclass(frozen, name = "Pool", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyPool {
    /// `None` once closed.
    state: Mutex<Option<State>>,
    /// `cartwheel.link.Link`: the channels to the workers, and what only Python can do.
    link: Py<PyAny>,
    class_name: String,
    /// Seconds that a synchronous step may take.
    timeout: Option<f64>,
    batches: Batches,
    actions: Tree,
    rows: usize,
    /// Native environments, which check their actions.
    native: Option<Py<PyNativeEnvs>>,
    /// Messages wait for their workers without blocking, so they are sent before the task begins.
    post_first: bool,
    /// The caller's thread steps everything: detaching would only cost time.
    inline: bool,
    closing: AtomicBool,
    /// The call that holds the lock, for the error of a second thread.
    running: AtomicU8,
    owner: u32,
}

#[pymethods]
impl PyPool {
    #[new]
    #[pyo3(signature = (
        memory, observations, actions, *, shard, pids, objects, link, class_name, timeout,
        columnar, spin, inline, num_threads = 1, affinity_offset = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each documented in the stub")]
    fn new(
        memory: &Bound<'_, PyMemory>,
        observations: &Bound<'_, PyAny>,
        actions: &Bound<'_, PyAny>,
        shard: &Bound<'_, PyAny>,
        pids: Vec<u32>,
        objects: Vec<Option<Py<PyList>>>,
        link: Py<PyAny>,
        class_name: String,
        timeout: Option<f64>,
        columnar: bool,
        spin: bool,
        inline: bool,
        num_threads: usize,
        affinity_offset: Option<usize>,
    ) -> PyResult<Self> {
        let memory = memory.get().memory.clone();
        let rows = memory.plan().rows();
        if objects.len() != memory.plan().shards.len() {
            return Err(PyValueError::new_err("one list of objects a shard"));
        }
        let crew = CrewSettings { threads: num_threads, spin, affinity_offset };
        let Made { workers, native, refuse_over } = Made::new(&memory, shard, &pids, inline, crew)?;
        let post_first = pids.is_empty();
        let policy = Policy { refuse_over, refuse_unstarted: native.is_some(), spin };
        let pool = Pool::new(memory, workers, policy).map_err(to_py_err)?;
        Ok(Self {
            state: Mutex::new(Some(State {
                pool,
                infos: Infos::new(rows, objects, columnar),
                late: false,
            })),
            link,
            class_name,
            timeout,
            batches: Batches::new(Tree::new(observations)?, rows),
            actions: Tree::new(actions)?,
            rows,
            native,
            post_first,
            inline,
            closing: AtomicBool::new(false),
            running: AtomicU8::new(0),
            owner: std::process::id(),
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
            self.finish_step(py, state, self.timeout)
        })
    }

    fn step_async<'py>(&self, py: Python<'py>, actions: &Bound<'py, PyAny>) -> PyResult<()> {
        self.enter(py, Call::Step, "step_async", |state| self.begin_step(py, state, actions))
    }

    #[pyo3(signature = (timeout = None))]
    fn step_wait<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.enter(py, Call::Step, "step_wait", |state| self.finish_step(py, state, timeout))
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
            let finished = self.finish(py, state, Call::Reset, timeout)?;
            let outputs = self.collect(py, state, finished)?;
            let parts = [outputs.observations, outputs.infos.into_any()];
            Ok(PyTuple::new(py, parts)?.into_any())
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
            self.finish(py, state, Call::Call, timeout)?;
            self.link.bind(py).call_method0(intern!(py, "receive_answers"))
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
            let Some(call) = state.pool.pending().filter(|_| state.late) else {
                return Ok(());
            };
            self.finish(py, state, call, timeout)?;
            for (shard, report) in state.pool.reports().enumerate() {
                if report != cartwheel::worker::Report::default() {
                    let link = self.link.bind(py);
                    link.call_method1(
                        intern!(py, "discard"),
                        (shard, report.failed, report.spilled),
                    )?;
                }
            }
            Ok(())
        })
    }

    /// Slabs that have memory behind them.
    fn num_slabs(&self, py: Python<'_>) -> PyResult<usize> {
        self.enter(py, Call::Call, "num_slabs", |state| Ok(state.pool.slabs().reserved()))
    }

    /// Ends the workers; returns those that did not end by themselves within `grace` seconds.
    fn close(&self, py: Python<'_>, grace: f64) -> Vec<usize> {
        if self.owner != std::process::id() {
            return Vec::new();
        }
        self.closing.store(true, Ordering::Release); // ends the wait of another thread
        let grace = Duration::try_from_secs_f64(grace).unwrap_or(Duration::ZERO);
        let patience = std::time::Instant::now() + grace + Duration::from_millis(500);
        let state = loop {
            match self.state.try_lock() {
                Ok(mut state) => break state.take(),
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner().take(),
                Err(TryLockError::WouldBlock) if std::time::Instant::now() < patience => {
                    py.detach(|| std::thread::sleep(Duration::from_millis(1)));
                }
                // Another thread is inside an environment; the pool ends when it comes back.
                Err(TryLockError::WouldBlock) => return Vec::new(),
            }
        };
        // With the state go the descriptors; memory stays for as long as some array shows it.
        let Some(mut state) = state else { return Vec::new() };
        let pool = &mut state.pool;
        if self.inline { pool.close(grace) } else { py.detach(|| pool.close(grace)) }
    }
}

impl PyPool {
    /// The one door: checks who calls, takes the state without ever waiting for it.
    fn enter<T>(
        &self,
        py: Python<'_>,
        call: Call,
        calling: &str,
        run: impl FnOnce(&mut State) -> PyResult<T>,
    ) -> PyResult<T> {
        if self.owner != std::process::id() {
            return Err(forked(py, self.owner));
        }
        if self.closing.load(Ordering::Acquire) {
            return Err(closed(py, &self.class_name));
        }
        // A second thread, or an environment that calls back, finds the state taken. It must not
        // wait: the first caller may need the interpreter to go on.
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let running = match self.running.load(Ordering::Relaxed) {
                    0 => Call::Step,
                    1 => Call::Reset,
                    _ => Call::Call,
                };
                return Err(already_pending(py, calling, &running.to_string()));
            }
        };
        let number = match call {
            Call::Step => 0,
            Call::Reset => 1,
            Call::Call => 2,
        };
        self.running.store(number, Ordering::Relaxed);
        let state = state.as_mut().ok_or_else(|| closed(py, &self.class_name))?;
        run(state)
    }

    /// The exception for an error of the core, with what only the pool knows.
    fn explain(&self, py: Python<'_>, error: Error, call: Call, calling: &str) -> PyErr {
        match error {
            Error::Closed => closed(py, &self.class_name),
            Error::AlreadyPending { pending } => already_pending(py, calling, &pending.to_string()),
            Error::NotPending { .. } => not_pending(py, call),
            Error::Timeout { timeout, rows } => {
                let rows: Vec<usize> = rows.into_iter().flatten().collect();
                timed_out(py, call, timeout.as_secs_f64(), &rows)
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
            if self.post_first {
                self.link.bind(py).call_method1(intern!(py, "post"), (messages,))?;
                return state.pool.begin(call, 0).map_err(explain);
            }
            state.pool.begin(call, 0).map_err(explain)?;
            self.post(py, state, call, messages)
        })
    }

    /// Sends one message a shard. A worker that cannot be reached is dead.
    fn post(
        &self,
        py: Python<'_>,
        state: &mut State,
        call: Call,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let Err(error) = self.link.bind(py).call_method1(intern!(py, "post"), (messages,)) else {
            return Ok(());
        };
        // One look at the workers' health tells a death, which ends the call, from anything else.
        match self.finish(py, state, call, Some(0.0)) {
            Err(died) if state.pool.pending().is_none() => Err(died),
            _ => Err(error),
        }
    }

    fn begin_step<'py>(
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
            return self.post(py, state, Call::Step, &messages);
        }
        let exact = self.native.is_some();
        let checked = Checked::new(&self.actions, actions, self.rows, exact)?;
        if let Some(native) = &self.native {
            let native = native.get();
            let checks = checked.store(|leaf, _, elements| native.check_actions(leaf, elements));
            checks.map_err(to_py_err)?;
        }
        let pool = &mut state.pool;
        checked
            .store(|leaf, tag, elements| pool.store_actions(leaf, tag, elements))
            .map_err(explain)?;
        pool.begin(Call::Step, 0).map_err(explain)
    }

    fn finish_step<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let finished = self.finish(py, state, Call::Step, timeout)?;
        let Outputs { observations, outcomes, infos } = self.collect(py, state, finished)?;
        let [rewards, terminations, truncations] = outcomes;
        let parts = [observations, rewards, terminations, truncations, infos.into_any()];
        Ok(PyTuple::new(py, parts)?.into_any())
    }

    fn collect<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        finished: Finished,
    ) -> PyResult<Outputs<'py>> {
        let State { pool, infos, .. } = state;
        self.batches.collect(self.link.bind(py), pool, infos, finished)
    }

    /// Waits for the pending call: detached, bounded, interruptible.
    fn finish(
        &self,
        py: Python<'_>,
        state: &mut State,
        call: Call,
        timeout: Option<f64>,
    ) -> PyResult<Finished> {
        let seconds = timeout.map(|timeout| Duration::try_from_secs_f64(timeout.max(0.0)));
        let timeout =
            seconds.transpose().map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mut raised = None;
        let mut interrupted = || {
            if self.closing.load(Ordering::Acquire) {
                return true;
            }
            raised = Python::attach(|py| py.check_signals().err());
            raised.is_some()
        };
        let pool = &mut state.pool;
        let outcome = if self.inline {
            pool.finish(call, timeout, &mut interrupted)
        } else {
            py.detach(|| pool.finish(call, timeout, &mut interrupted))
        };
        state.late = matches!(outcome, Err(Error::Timeout { .. } | Error::Interrupted));
        outcome.map_err(|error| match (error, raised) {
            (Error::Interrupted, Some(raised)) => raised,
            (Error::Interrupted, None) => closed(py, &self.class_name),
            (error, _) => self.explain(py, error, call, ""),
        })
    }
}
