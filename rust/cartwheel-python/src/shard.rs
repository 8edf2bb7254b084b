//! The environments of one worker, when they are Python objects.

use cartwheel::autoreset::{Autoreset, Refusal, Transition};
use cartwheel::info::InfoWriter;
use cartwheel::wake::Op;
use cartwheel::worker::{Report, Shard, Task};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::actions::Actions;
use crate::rows::{Held, PyRows};
use crate::space::Tree;
use crate::value::Foreign;

/// Flag of a step whose actions come by the worker's channel and not through shared memory.
pub(crate) const ACTIONS_BY_CHANNEL: u32 = 1;

/// Python environments in a list, driven row by row.
#[derive(Debug)]
pub(crate) struct PyShard {
    /// `cartwheel.worker.Worker`: the environments and everything that is not the step path.
    worker: Py<PyAny>,
    /// The worker's list of environments; looked up at each call, so that it may be changed.
    envs: Py<PyList>,
    observations: Tree,
    actions: Tree,
    autoreset: Autoreset,
    held: Vec<Held>,
    writer: InfoWriter,
    foreign: Foreign,
    faults: Vec<(usize, PyErr)>,
    /// The task was a control call, whose answer waits to be sent.
    answering: bool,
}

impl PyShard {
    pub(crate) fn new(
        worker: &Bound<'_, PyAny>,
        observations: Tree,
        actions: Tree,
        autoreset: Autoreset,
        foreign: Foreign,
    ) -> PyResult<Self> {
        Ok(Self {
            envs: worker.getattr("envs")?.cast_into::<PyList>()?.unbind(),
            worker: worker.clone().unbind(),
            observations,
            actions,
            held: (0..autoreset.len()).map(|_| Held::default()).collect(),
            autoreset,
            writer: InfoWriter::new(),
            foreign,
            faults: Vec::new(),
            answering: false,
        })
    }

    /// Runs `task` on every row; the error is one that concerns no single row.
    fn run_rows(&mut self, py: Python<'_>, task: &mut Task<'_>) -> PyResult<()> {
        let rows = task.slab.rows();
        let (actions, resets) = match task.op {
            Op::Step if task.flags & ACTIONS_BY_CHANNEL != 0 => {
                let actions = self.worker.bind(py).call_method0(intern!(py, "receive_actions"))?;
                (Some(Actions::Rows(actions.cast_into::<PyList>()?)), None)
            }
            Op::Step => {
                let (tree, area) = (&self.actions, task.actions);
                (Some(Actions::load(py, tree, &tree.root, area, &rows)?), None)
            }
            _ => {
                let resets = self.worker.bind(py).call_method0(intern!(py, "receive_reset"))?;
                (None, Some(resets.cast_into::<PyList>()?))
            }
        };
        let Self { autoreset, faults, .. } = self;
        let mut batch = PyRows {
            py,
            first: rows.start,
            envs: self.envs.bind(py),
            tree: &self.observations,
            held: &mut self.held,
            infos: &mut self.writer,
            foreign: &self.foreign,
            slab: &mut task.slab,
            actions,
        };
        for row in 0..autoreset.len() {
            let outcome = match &resets {
                None => autoreset.step(&mut batch, row),
                Some(resets) => batch.reset_row(autoreset, row, &resets.get_item(row)?),
            };
            let transition = outcome.unwrap_or_else(|refusal| {
                faults.push((rows.start + row, refused(refusal)));
                Transition::RESET
            });
            batch.slab.write_transition(rows.start + row, &transition, autoreset.phase(row));
        }
        Ok(())
    }
}

/// The pool refuses such steps before they are published, so only an error of ours shows these.
fn refused(refusal: Refusal<PyErr>) -> PyErr {
    match refusal {
        Refusal::Environment(error) => error,
        Refusal::Over => PyRuntimeError::new_err("the row's episode is over"),
        Refusal::Failed => PyRuntimeError::new_err("the row failed and has not been reset"),
        Refusal::Unstarted => PyRuntimeError::new_err("the row was never reset"),
    }
}

impl Shard for PyShard {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        Python::attach(|py| {
            self.writer.clear();
            if let Foreign::Kept(objects) = &self.foreign {
                let objects = objects.bind(py);
                if !objects.is_empty() {
                    let cleared = objects.call_method0(intern!(py, "clear"));
                    cleared.expect("a list can be cleared");
                }
            }
            self.answering = task.op == Op::Call;
            if self.answering {
                let answered = self.worker.bind(py).call_method0(intern!(py, "answer"));
                if let Err(error) = answered {
                    error.write_unraisable(py, None); // the channel is gone
                }
                return Report { spilled: true, ..Report::default() };
            }
            if let Err(error) = self.run_rows(py, task) {
                self.faults.push((task.slab.rows().start, error));
            }
            let spilled = !task.store_infos(self.writer.stream());
            Report { failed: !self.faults.is_empty(), spilled }
        })
    }

    /// Sends faults, then infos that did not fit; after a control call, its answer.
    fn flush(&mut self, report: Report) {
        let outcome = Python::attach(|py| {
            let worker = self.worker.bind(py);
            if report.failed {
                let faults: Vec<_> =
                    self.faults.drain(..).map(|(row, fault)| (row, fault.into_value(py))).collect();
                worker.call_method1(intern!(py, "send_faults"), (faults,))?;
            }
            if self.answering {
                worker.call_method0(intern!(py, "send_answer"))?;
            } else if report.spilled {
                let stream = PyBytes::new(py, self.writer.stream());
                worker.call_method1(intern!(py, "send_rest"), (stream,))?;
            }
            PyResult::Ok(())
        });
        // The channel is gone: so is the pool, or soon will be.
        drop(outcome);
    }

    fn close(&mut self) {
        Python::attach(|py| {
            if let Err(error) = self.worker.bind(py).call_method0(intern!(py, "close")) {
                error.write_unraisable(py, Some(self.worker.bind(py)));
            }
        });
    }
}
