//! The Python environments of one worker.

use std::ops::Range;
use std::time::{Duration, Instant};

use cartwheel_engine::autoreset::Autoreset;
use cartwheel_engine::info::InfoWriter;
use cartwheel_engine::memory::{ActionRows, SlabRows, process_id};
use cartwheel_engine::protocol::{Counters, QueuedRows};
use cartwheel_engine::wake::Op;
use cartwheel_engine::worker::{Report, Shard, Task};
use cartwheel_engine::{Error, FULL_RESET};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::to_py_err;
use crate::interpreter::{attach, besides_exceptions};
use crate::known::intern;
use crate::space::Tree;
use crate::value::Foreign;
use crate::worker::actions::{Actions, SmallIntegers};
use crate::worker::called::{Called, RowRequest};
use crate::worker::retirement::Retirement;
use crate::worker::row_timer::RowTimer;
use crate::worker::rows::{LastResult, PyRows};

/// Flag of a step whose actions arrive through the worker's channel and not through shared memory.
pub(crate) const ACTIONS_BY_CHANNEL: u32 = 1;
/// Flag of a step whose rows get something for their next automatic reset, through the channel.
pub(crate) const NEXT_RESETS: u32 = 2;

/// Python environments in a list, driven row by row.
#[derive(Debug)]
pub(crate) struct PyShard {
    /// `cartwheel.workers.serving.worker.Worker`: the environments, and all that is not on the
    /// step path.
    pub(super) worker: Py<PyAny>,
    /// The worker's list of environments; read again in each call, so the list may be changed.
    envs: Py<PyList>,
    /// The worker's entries for the next automatic resets of rows.
    next_resets: Py<PyDict>,
    observations: Tree,
    actions: Tree,
    /// Of each leaf of the actions; not shown to the garbage collector, which scalars do not concern.
    known_actions: Vec<SmallIntegers>,
    pub(super) autoreset: Autoreset,
    /// Whether batches have final observations.
    dense_finals: bool,
    /// The length of rewards that are arrays.
    reward_width: Option<usize>,
    pub(super) held: Vec<LastResult>,
    pub(super) writer: InfoWriter,
    foreign: Foreign,
    /// Rows that lost their environments before the caller was informed.
    pub(super) lost: Vec<bool>,
    /// Those of them whose new environments a control call has to reset first.
    unbegun: Vec<bool>,
    /// Whether the worker process ends before an episode, and what one that ended left.
    retirement: Retirement,
    pub(super) faults: Vec<(usize, PyErr)>,
    /// A single sent row whose environment was called.
    prepared: Option<Called>,
    /// The time of these calls.
    spent: Duration,
    /// The messages that the last report announced, packed: they are sent when the task is
    /// acknowledged, since then the caller receives them. Packing may run code of environments, so it
    /// is a part of the task: time-outs, and deaths of the worker, concern it as they do a step.
    pub(super) unsent: Vec<Py<PyAny>>,
    /// Packed in advance, instead of exceptions or an answer that cannot be packed: an exception that
    /// says so.
    pub(super) instead_of_answer: Py<PyAny>,
    /// The same instead of infos: none.
    pub(super) instead_of_infos: Py<PyAny>,
    /// The worker's end of its channel, and the number of the last message that was announced.
    pub(super) channel: Py<PyAny>,
    pub(super) announced: u64,
    /// The process that serves this shard as a worker; `None` where the caller's thread steps it.
    server: Option<u32>,
}

impl PyShard {
    pub(crate) fn new(
        worker: &Bound<'_, PyAny>,
        observations: Tree,
        actions: Tree,
        autoreset: Autoreset,
        foreign: Foreign,
        (dense_finals, reward_width): (bool, Option<usize>),
        lost: bool,
    ) -> PyResult<Self> {
        let mut held: Vec<_> =
            (0..autoreset.len()).map(|_| LastResult::new(reward_width)).collect();
        let (retirement, shown) = Retirement::new(worker)?;
        if let Some(first) = held.first_mut() {
            first.shown = shown;
        }
        let channel = worker.getattr("channel")?;
        let (instead_of_answer, instead_of_infos) =
            worker.call_method0("pack_in_advance")?.extract()?;
        Ok(Self {
            envs: worker.getattr("envs")?.cast_into::<PyList>()?.unbind(),
            next_resets: worker.getattr("next_resets")?.cast_into::<PyDict>()?.unbind(),
            worker: worker.clone().unbind(),
            observations,
            known_actions: actions.leaves.iter().map(|_| SmallIntegers::default()).collect(),
            actions,
            dense_finals,
            reward_width,
            retirement,
            held,
            lost: vec![lost; autoreset.len()],
            unbegun: vec![lost; autoreset.len()],
            autoreset,
            writer: InfoWriter::new(),
            foreign,
            faults: Vec::new(),
            prepared: None,
            spent: Duration::ZERO,
            unsent: Vec::new(),
            instead_of_answer,
            instead_of_infos,
            announced: channel.getattr("announced")?.extract()?,
            channel: channel.unbind(),
            server: None,
        })
    }

    /// Tells Python's garbage collector which objects the shard keeps between calls.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.worker)?;
        visit.call(&self.envs)?;
        visit.call(&self.next_resets)?;
        visit.call(&self.channel)?;
        visit.call(&self.instead_of_answer)?;
        visit.call(&self.instead_of_infos)?;
        self.observations.traverse(visit)?;
        self.actions.traverse(visit)?;
        self.foreign.traverse(visit)?;
        self.retirement.traverse(visit)?;
        self.held.iter().try_for_each(|held| held.traverse(visit))
    }

    /// Declares that a worker of this process serves it. If an environment's call returns in
    /// another process, that process is a copy of the worker, which the environment forked.
    pub(crate) fn served(mut self) -> Self {
        self.server = Some(process_id());
        self
    }

    /// Runs `task` on every row; the error is one that does not belong to a single row.
    fn run_rows(&mut self, py: Python<'_>, task: &mut Task<'_>) -> PyResult<()> {
        let (actions, resets) = match task.op {
            // The environments were called already, and their rows wait for places.
            _ if self.prepared.is_some() => (None, None),
            Op::Step if task.flags & ACTIONS_BY_CHANNEL != 0 => {
                (Some(self.actions_by_channel(py, &task.own_rows(), task.is_sent())?), None)
            }
            Op::Step => (self.actions_in_memory(py, &task.actions, task.own_rows())?, None),
            _ => {
                let resets = self.worker.bind(py).call_method0(intern!(py, "receive_reset"))?;
                (None, Some(resets.cast_into::<PyList>()?))
            }
        };
        let (span, is_sent) = (task.own_rows(), task.is_sent());
        if task.op == Op::Step && !is_sent {
            self.receive_next_resets(py, task.flags, span.clone())?;
        }
        let (mut prepared, spent) = (self.prepared.take(), std::mem::take(&mut self.spent));
        let mut row_timer = RowTimer::begin(task.op, task.counters, spent);
        let place = Some(&mut task.slab);
        let (mut batch, faults) =
            self.rows(py, (task.op, task.flags), task.first, span.clone(), actions, place);
        let mut is_interrupted = false;
        for row in span {
            let request = match &resets {
                None => RowRequest::Step,
                Some(resets) => RowRequest::from_reset(&resets.get_item(row)?),
            };
            if is_interrupted && !matches!(request, RowRequest::Leave) {
                batch.autoreset.fail(row);
                batch.show_nothing(row);
                continue;
            }
            let called = prepared.take().unwrap_or_else(|| batch.call(row, request));
            if let Some(failure) = batch.show(row, called) {
                // Ctrl-C must not wait for the other environments. Rows that were sent are received one
                // by one, so each of them needs a result.
                is_interrupted |= !is_sent && batch.server.is_none() && is_ctrl_c(py, &failure)?;
                faults.push((task.first + row, failure));
            }
            row_timer.end(row, &mut batch.held[row]);
        }
        Ok(())
    }

    /// The rows `span` during one task, with their places if they have some, and their faults.
    fn rows<'a, 's, 'py>(
        &'a mut self,
        py: Python<'py>,
        (op, flags): (Op, u32),
        first: usize,
        span: Range<usize>,
        actions: Option<Actions<'py>>,
        slab: Option<&'a mut SlabRows<'s>>,
    ) -> (PyRows<'a, 's, 'py>, &'a mut Vec<(usize, PyErr)>) {
        let rules = self.autoreset.rules();
        let staggers = op == Op::Reset && flags & FULL_RESET != 0 && rules.staggered_reset;
        let rows = PyRows {
            py,
            first,
            span,
            worker: self.worker.bind(py),
            envs: self.envs.bind(py),
            next_resets: self.next_resets.bind(py),
            autoreset: &mut self.autoreset,
            lost: &mut self.lost,
            retirement: &mut self.retirement,
            tree: &self.observations,
            dense_finals: self.dense_finals,
            reward_width: self.reward_width,
            held: &mut self.held,
            infos: &mut self.writer,
            foreign: &self.foreign,
            slab,
            stepping: op == Op::Step,
            staggers,
            actions,
            action_node: &self.actions.root,
            server: self.server,
        };
        (rows, &mut self.faults)
    }

    /// Resets the environments of rows that lost their old ones, because a control call may need
    /// them; once, because another reset could undo what a control call has set. The next step or reset
    /// reports the loss to the caller.
    fn reset_lost(&mut self, py: Python<'_>, task: &Task<'_>) {
        for row in task.own_rows() {
            if !std::mem::take(&mut self.unbegun[row]) || !self.lost[row] {
                continue;
            }
            let env = self.envs.bind(py).get_item(row);
            if let Err(error) = env.and_then(|env| env.call_method0(intern!(py, "reset"))) {
                error.write_unraisable(py, None); // it will fail again, and be reported then
            }
        }
    }

    /// The actions of rows whose space has a fixed shape, where one of the rows needs its action. Rows
    /// that lost their environments are reset instead; those of the dead worker may have arrived
    /// through its channel, and are nowhere now.
    fn actions_in_memory<'py>(
        &mut self,
        py: Python<'py>,
        area: &ActionRows<'_>,
        own: Range<usize>,
    ) -> PyResult<Option<Actions<'py>>> {
        if self.lost[own].iter().all(|lost| *lost) {
            return Ok(None);
        }
        let rows = &area.rows();
        let (leaves, known) = (&self.actions.leaves, &mut self.known_actions);
        Actions::load(py, leaves, known, area, rows).map(Some)
    }

    /// The actions of rows whose space has no fixed shape.
    fn actions_by_channel<'py>(
        &self,
        py: Python<'py>,
        rows: &Range<usize>,
        sent: bool,
    ) -> PyResult<Actions<'py>> {
        let worker = self.worker.bind(py);
        if !sent {
            let actions = worker.call_method0(intern!(py, "receive_actions"))?;
            return Ok(Actions::Pickled(actions.cast_into::<PyList>()?));
        }
        let action = |row| worker.call_method1(intern!(py, "take_action"), (row,));
        let actions = rows.clone().map(action).collect::<PyResult<Vec<_>>>()?;
        Ok(Actions::Pickled(PyList::new(py, actions)?))
    }

    /// Receives what these rows of a step get for their next automatic reset.
    fn receive_next_resets(&self, py: Python<'_>, flags: u32, rows: Range<usize>) -> PyResult<()> {
        if flags & NEXT_RESETS != 0 {
            let rows: Vec<_> = rows.collect();
            self.worker.bind(py).call_method1(intern!(py, "receive_next_resets"), (rows,))?;
        }
        Ok(())
    }

    /// Calls the environment of one sent row, which has no place yet.
    fn call(
        &mut self,
        py: Python<'_>,
        queued: &QueuedRows,
        first: usize,
        area: &ActionRows<'_>,
    ) -> PyResult<Called> {
        let row = queued.rows.start - first;
        self.forget(py, row..row + 1);
        let (request, actions) = match queued.op {
            Op::Step if queued.flags & ACTIONS_BY_CHANNEL != 0 => {
                (RowRequest::Step, Some(self.actions_by_channel(py, &(row..row + 1), true)?))
            }
            Op::Step => (RowRequest::Step, self.actions_in_memory(py, area, row..row + 1)?),
            _ => {
                let how = self.worker.bind(py).call_method1(intern!(py, "take_reset"), (row,))?;
                (RowRequest::from_reset(&how), None)
            }
        };
        if queued.op == Op::Step {
            self.receive_next_resets(py, queued.flags, row..row + 1)?;
        }
        let (mut batch, _) =
            self.rows(py, (queued.op, queued.flags), first, row..row + 1, actions, None);
        Ok(batch.call(row, request))
    }

    /// Forgets the infos of the last task, and the objects of these rows.
    fn forget(&mut self, py: Python<'_>, rows: Range<usize>) {
        self.writer.clear();
        for row in rows {
            self.foreign.forget(py, row).expect("a list can be cleared");
        }
    }
}

/// Whether this is Ctrl-C, which Python raises in the main thread alone.
fn is_ctrl_c(py: Python<'_>, failure: &PyErr) -> PyResult<bool> {
    if !failure.is_instance_of::<PyKeyboardInterrupt>(py) {
        return Ok(false);
    }
    let threading = py.import("threading")?;
    let current = threading.call_method0("current_thread")?;
    Ok(current.is(threading.call_method0("main_thread")?))
}

impl Shard for PyShard {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        attach(|py| {
            if self.prepared.is_none() {
                self.forget(py, task.own_rows());
            }
            if task.op == Op::Call {
                self.reset_lost(py, task);
                // An error is Ctrl-C, or the channel is closed.
                let packed = self.answer(py).or_else(|error| self.answer_failed(py, error));
                return self.announce_answer(py, packed);
            }
            if let Err(error) = self.run_rows(py, task) {
                // Rows that were not called are as they were.
                for (own, place) in task.own_rows().zip(task.slab.rows()) {
                    let last = self.autoreset.last_transition(own);
                    task.slab.write_transition(place, &last, self.autoreset.phase(own));
                }
                self.faults.push((task.rows.start, error));
            }
            let failed = self.announce_faults(py);
            let spilled = !task.store_infos(self.writer.stream());
            if spilled {
                self.announce_rest(py);
            }
            Report { failed, spilled }
        })
    }

    fn times_rows(&self) -> bool {
        true
    }

    fn prepare(
        &mut self,
        queued: &QueuedRows,
        first: usize,
        actions: &ActionRows<'_>,
        _: Counters<'_>,
    ) {
        attach(|py| {
            let began = Instant::now(); // waiting for the interpreter does not count
            let called = self.call(py, queued, first, actions);
            self.prepared = Some(called.unwrap_or_else(|error| {
                self.autoreset.fail(queued.rows.start - first);
                Called::Failed(error)
            }));
            self.spent = began.elapsed();
        });
    }

    /// A bug of this package, or a panic of another extension that passed through Python.
    fn panicked(&mut self, task: &Task<'_>, message: &str) -> Report {
        self.prepared = None;
        let failed = |row| Error::Panicked { row, message: message.to_owned() };
        attach(|py| {
            self.unsent.clear();
            self.writer.clear();
            if task.op == Op::Call {
                let packed = self.answer_failed(py, to_py_err(failed(task.rows.start)));
                return self.announce_answer(py, packed);
            }
            for (own, row) in task.own_rows().zip(task.rows.clone()) {
                self.autoreset.fail(own);
                if self.faults.iter().all(|(known, _)| *known != row) {
                    self.faults.push((row, to_py_err(failed(row))));
                }
            }
            Report { failed: self.announce_faults(py), spilled: false }
        })
    }

    fn flush(&mut self, _report: Report) {
        attach(|py| self.send_announced(py));
    }

    /// Inline, a pool that was not closed is dropped with its last reference, which may be one of a
    /// function that an exception ends.
    fn close(&mut self) {
        attach(|py| {
            let worker = self.worker.bind(py);
            besides_exceptions(py, || {
                if let Err(error) = worker.call_method0(intern!(py, "close")) {
                    error.write_unraisable(py, Some(worker));
                }
            });
        });
    }
}
