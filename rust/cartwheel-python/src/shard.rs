//! The environments of one worker, when they are Python objects.

use cartwheel::autoreset::{Autoreset, Refusal, Rows, Transition};
use cartwheel::info::{DEEPEST, InfoWriter, Kind};
use cartwheel::memory::SlabRows;
use cartwheel::space::Leaf;
use cartwheel::wake::Op;
use cartwheel::worker::{Report, Shard, Task};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyTuple};

use crate::actions::Actions;
use crate::array::{scalar_bytes, with_bytes};
use crate::dtype::{self, descr};
use crate::space::{Node, Tree};
use crate::value::{Encoder, Foreign, has_text_keys};

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

/// What a row's environment returned last.
#[derive(Debug, Default)]
struct Held {
    observation: Option<Py<PyAny>>,
    info: Option<Py<PyAny>>,
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
                let actions = self
                    .worker
                    .bind(py)
                    .call_method0(intern!(py, "receive_actions"))?;
                (Some(Actions::Rows(actions.cast_into::<PyList>()?)), None)
            }
            Op::Step => {
                let (tree, area) = (&self.actions, task.actions);
                (
                    Some(Actions::load(py, tree, &tree.root, area, &rows)?),
                    None,
                )
            }
            _ => {
                let resets = self
                    .worker
                    .bind(py)
                    .call_method0(intern!(py, "receive_reset"))?;
                (None, Some(resets.cast_into::<PyList>()?))
            }
        };
        let Self {
            autoreset, faults, ..
        } = self;
        let mut batch = Batch {
            py,
            first: rows.start,
            envs: self.envs.bind(py),
            tree: &self.observations,
            held: &mut self.held,
            writer: &mut self.writer,
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
            batch
                .slab
                .write_transition(rows.start + row, &transition, autoreset.phase(row));
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
                return Report {
                    spilled: true,
                    ..Report::default()
                };
            }
            if let Err(error) = self.run_rows(py, task) {
                self.faults.push((task.slab.rows().start, error));
            }
            let spilled = !task.store_infos(self.writer.stream());
            Report {
                failed: !self.faults.is_empty(),
                spilled,
            }
        })
    }

    /// Sends faults, then infos that did not fit; after a control call, its answer.
    fn flush(&mut self, report: Report) {
        let outcome = Python::attach(|py| {
            let worker = self.worker.bind(py);
            if report.failed {
                let faults: Vec<_> = self
                    .faults
                    .drain(..)
                    .map(|(row, fault)| (row, fault.into_value(py)))
                    .collect();
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

/// The rows of a shard during one task.
struct Batch<'a, 's, 'py> {
    py: Python<'py>,
    first: usize,
    envs: &'a Bound<'py, PyList>,
    tree: &'a Tree,
    held: &'a mut [Held],
    writer: &'a mut InfoWriter,
    foreign: &'a Foreign,
    slab: &'a mut SlabRows<'s>,
    actions: Option<Actions<'py>>,
}

impl<'py> Batch<'_, '_, 'py> {
    /// An explicit reset: `how` is the keywords of `reset`, or `None` to leave the row as it is.
    fn reset_row(
        &mut self,
        autoreset: &mut Autoreset,
        row: usize,
        how: &Bound<'py, PyAny>,
    ) -> Result<Transition, Refusal<PyErr>> {
        if how.is_none() {
            self.repeat(row).map_err(Refusal::Environment)?;
            return Ok(autoreset.last_transition(row));
        }
        let reset = |batch: &mut Self| batch.call_reset(row, Some(how.cast::<PyDict>()?));
        autoreset
            .reset(self, row, reset)
            .map_err(Refusal::Environment)?;
        Ok(Transition::RESET)
    }

    fn call_reset(&mut self, row: usize, keywords: Option<&Bound<'py, PyDict>>) -> PyResult<()> {
        let py = self.py;
        let env = self.envs.get_item(row)?;
        let result = env.call_method(intern!(py, "reset"), (), keywords)?;
        let [observation, info] = unpack(result, "reset", ["observation", "info"])?;
        self.hold(row, observation, info);
        Ok(())
    }

    fn hold(&mut self, row: usize, observation: Bound<'py, PyAny>, info: Bound<'py, PyAny>) {
        self.held[row] = Held {
            observation: Some(observation.unbind()),
            info: Some(info.unbind()),
        };
    }

    /// Writes an observation, leaf by leaf.
    fn write(&mut self, node: &Node, value: &Bound<'py, PyAny>, row: usize) -> PyResult<()> {
        match node {
            Node::Leaf(leaf) => self.write_leaf(*leaf, value, row),
            Node::Dict(items) => items
                .iter()
                .try_for_each(|(key, node)| self.write(node, &value.get_item(key)?, row)),
            Node::Tuple(nodes) => {
                let nodes = nodes.iter().enumerate();
                nodes
                    .into_iter()
                    .try_for_each(|(at, node)| self.write(node, &value.get_item(at)?, row))
            }
            Node::Opaque(number, _) => {
                let record = self.writer.begin(Kind::Opaque, row, *number);
                let (writer, foreign) = (&mut *self.writer, self.foreign);
                Encoder {
                    writer,
                    foreign,
                    snapshot: true,
                }
                .value(value)?;
                self.writer.end(record);
                Ok(())
            }
        }
    }

    fn write_leaf(&mut self, number: usize, value: &Bound<'py, PyAny>, row: usize) -> PyResult<()> {
        let leaf = &self.tree.leaves[number];
        if let Ok(array) = value.cast_exact::<PyUntypedArray>() {
            if self.write_array(number, array, row) {
                return Ok(());
            }
        } else if leaf.shape.is_empty() {
            if let (Ok(integer), 8) = (value.cast_exact::<PyInt>(), leaf.dtype.size()) {
                if leaf.dtype == cartwheel::space::DType::I64 {
                    let integer: i64 = integer.extract()?;
                    self.slab.write(number, row, &integer.to_ne_bytes());
                    return Ok(());
                }
            } else if dtype::from_scalar(value)? == Some(leaf.dtype) {
                let bytes = scalar_bytes(value, leaf.dtype);
                self.slab.write(number, row, &bytes[..leaf.dtype.size()]);
                return Ok(());
            }
        }
        let array = fit(value, leaf)?;
        if self.write_array(number, &array, row) {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "a fitted observation can be written",
        ))
    }

    /// Copies an array that is just like the leaf; `false` for any other.
    fn write_array(
        &mut self,
        number: usize,
        array: &Bound<'py, PyUntypedArray>,
        row: usize,
    ) -> bool {
        let leaf = &self.tree.leaves[number];
        let fits = array.shape() == leaf.shape
            && array.is_c_contiguous()
            && dtype::from_descr(&array.dtype()) == Some(leaf.dtype);
        if fits {
            with_bytes(array, |bytes| self.slab.write(number, row, bytes));
        }
        fits
    }

    /// Writes one info dictionary as a record of `row`.
    fn write_info(&mut self, row: usize, info: &Bound<'py, PyAny>, snapshot: bool) -> PyResult<()> {
        let (writer, foreign) = (&mut *self.writer, self.foreign);
        let dict = match info.cast::<PyDict>() {
            Ok(dict) => dict.clone(),
            Err(_) => self
                .py
                .get_type::<PyDict>()
                .call1((info,))?
                .cast_into::<PyDict>()?,
        };
        if dict.is_empty() {
            return Ok(());
        }
        let entries = has_text_keys(&dict);
        let record = writer.begin(if entries { Kind::Info } else { Kind::Whole }, row, 0);
        let mut encoder = Encoder {
            writer,
            foreign,
            snapshot,
        };
        let written = if entries {
            encoder.entries(&dict, DEEPEST)
        } else {
            encoder.value(dict.as_any())
        };
        match written {
            Ok(()) => self.writer.end(record),
            Err(error) => {
                self.writer.cancel(record);
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Rows for Batch<'_, '_, '_> {
    type Error = PyErr;

    fn step(&mut self, row: usize) -> PyResult<Transition> {
        let py = self.py;
        let env = self.envs.get_item(row)?;
        let actions = self.actions.as_ref().expect("a step has actions");
        let result = env.call_method1(intern!(py, "step"), (actions.row(py, row)?,))?;
        let names = ["observation", "reward", "terminated", "truncated", "info"];
        let [observation, reward, terminated, truncated, info] = unpack(result, "step", names)?;
        let transition = Transition {
            reward: number(&reward)?,
            terminated: flag(&terminated)?,
            truncated: flag(&truncated)?,
        };
        self.hold(row, observation, info);
        Ok(transition)
    }

    fn reset(&mut self, row: usize) -> PyResult<()> {
        self.call_reset(row, None)
    }

    fn keep_final(&mut self, row: usize) -> PyResult<()> {
        let held = &self.held[row];
        let (Some(observation), Some(info)) = (&held.observation, &held.info) else {
            return Err(PyRuntimeError::new_err(
                "a row is stepped before it is over",
            ));
        };
        let kept = PyDict::new(self.py);
        kept.set_item(intern!(self.py, "final_obs"), observation)?;
        kept.set_item(intern!(self.py, "final_info"), info)?;
        self.write_info(self.first + row, kept.as_any(), true)
    }

    fn publish(&mut self, row: usize) -> PyResult<()> {
        let py = self.py;
        self.repeat(row)?;
        match self.held[row].info.take() {
            Some(info) => self.write_info(self.first + row, info.bind(py), false),
            None => Ok(()),
        }
    }

    fn repeat(&mut self, row: usize) -> PyResult<()> {
        let (py, tree) = (self.py, self.tree);
        let Some(observation) = self.held[row]
            .observation
            .as_ref()
            .map(|held| held.clone_ref(py))
        else {
            // Never reset: zeros, as in Gymnasium's own buffer.
            (0..tree.leaves.len()).for_each(|leaf| self.slab.write_zeros(leaf, self.first + row));
            return Ok(());
        };
        self.write(&tree.root, observation.bind(py), self.first + row)
    }
}

/// The parts of what `method` returned.
fn unpack<'py, const N: usize>(
    result: Bound<'py, PyAny>,
    method: &str,
    names: [&str; N],
) -> PyResult<[Bound<'py, PyAny>; N]> {
    let wrong = |got: &dyn std::fmt::Display| {
        let names = names.join(", ");
        PyValueError::new_err(format!("{method}() must return ({names}), got {got}"))
    };
    let tuple = match result.cast::<PyTuple>() {
        Ok(tuple) => tuple.clone(),
        Err(_) => match result.cast::<PyList>() {
            Ok(list) => list.to_tuple(),
            Err(_) => return Err(wrong(&result.get_type())),
        },
    };
    let got = tuple.len();
    if got != N {
        return Err(wrong(&format_args!("{got} values")));
    }
    Ok(std::array::from_fn(|at| {
        tuple.get_item(at).expect("the length was checked")
    }))
}

/// A reward: a number, `None` (as NumPy: not a number) or an array of one element.
fn number(reward: &Bound<'_, PyAny>) -> PyResult<f64> {
    if let Ok(float) = reward.cast_exact::<PyFloat>() {
        return Ok(float.value());
    }
    if reward.is_none() {
        return Ok(f64::NAN);
    }
    if let Ok(array) = reward.cast::<PyUntypedArray>() {
        if array.len() != 1 {
            let shape = array.shape();
            return Err(PyValueError::new_err(format!(
                "a reward must be a number, got an array of shape {shape:?}"
            )));
        }
        return array.call_method0(intern!(reward.py(), "item"))?.extract();
    }
    reward.extract()
}

fn flag(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    match value.cast_exact::<PyBool>() {
        Ok(flag) => Ok(flag.is_true()),
        Err(_) => value.is_truthy(),
    }
}

/// `value` as a contiguous array just like `leaf`, by the rule that Gymnasium's `concatenate` follows:
/// the shape must be the leaf's own, the dtype may be cast within its kind.
fn fit<'py>(value: &Bound<'py, PyAny>, leaf: &Leaf) -> PyResult<Bound<'py, PyUntypedArray>> {
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let array = ASARRAY.import(py, "numpy", "asarray")?.call1((value,))?;
    let array = array.cast_into::<PyUntypedArray>()?;
    if array.shape() != leaf.shape {
        return Err(PyValueError::new_err(format!(
            "the observation has shape {:?}, its space has {:?}",
            array.shape(),
            leaf.shape
        )));
    }
    let keywords = PyDict::new(py);
    keywords.set_item("casting", "same_kind")?;
    keywords.set_item("order", "C")?;
    let array = array.call_method("astype", (descr(py, leaf.dtype)?,), Some(&keywords))?;
    let array = array.cast_into::<PyUntypedArray>().map_err(|_| {
        PyTypeError::new_err("an observation cannot be made an array of its space's dtype")
    })?;
    Ok(array)
}
