//! One pass over the batch of a step for a whole stack of wrappers; documented in the stub.
//!
//! A batch of all rows is passed from operation to operation here: kinds and flags are read once, and
//! operations write new arrays. Each operation has [`Blocks`], which reuse the arrays of an earlier
//! step. Every other batch (of failed rows, after lost results, with seeds that are not shown yet) goes
//! through the methods `transform` in Python, which use the same state.

mod batch;
mod finals;

use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::clip;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyString, PyTuple};

use self::batch::{Batch, Columns, Keys};
use super::conversions::{is_array, widened};
use super::episode_metrics::NewValues;
use super::locked::Locked;
use super::rewards::Rewards;
use super::{
    PyEpisodeMetrics, PyFlag, PyFrameStack, PyObservationNormalizer, PyRewardNormalizer,
    PyRowKinds, PyTimedEpisodes,
};
use crate::array::{Blocks, PyTensorExchange, Unwritten, dtype};
use crate::known::intern;

/// A wrapper's part of the pass. The wrapper itself is `None` for the outermost, which a step is
/// given: a pass that kept it would be a cycle that only a garbage collection ends.
#[derive(Debug)]
struct Operation {
    wrapper: Option<Py<PyAny>>,
    kernel: Kernel,
}

/// The effect of a wrapper on a batch.
#[derive(Debug)]
enum Kernel {
    /// The wrapper's `transform`.
    Transform,
    /// The wrapper's `_observe`, a function of observations.
    Observe,
    /// The same, which returns arrays of this dtype with so many numbers of each row unchanged.
    Flatten(DType, usize),
    /// The same, which makes `float64` of `float32`.
    Widen,
    /// A function of the rewards of transitions, whose result the wrapper's `_checked` looks at.
    Reward(Py<PyAny>),
    /// Rewards within limits.
    Clip(f64, f64),
    NormalizeRewards(Py<PyRewardNormalizer>, Option<f64>),
    NormalizeObservations(Py<PyObservationNormalizer>, Option<f32>),
    Stack(Py<PyFrameStack>),
    /// Infos of episodes that ended, with the keys of the values and of the mask.
    Episodes(Py<PyTimedEpisodes>, Keys),
    /// Infos of all episodes, likewise.
    Metrics(Py<PyEpisodeMetrics>, Keys),
    /// Tensors of all arrays, by the functions of their type, or else by this function.
    Tensors(Py<PyAny>, Option<Py<PyTensorExchange>>),
}

impl Kernel {
    /// Of a name and its arguments.
    fn new(name: &str, given: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let at = |place| given.get_item(place);
        let keys = || -> PyResult<Keys> { Ok([at(1)?.extract()?, at(2)?.extract()?]) };
        Ok(match name {
            "transform" => Self::Transform,
            "observe" => Self::Observe,
            "flatten" => match dtype::from_descr(at(0)?.cast()?) {
                Some(dtype) => Self::Flatten(dtype, at(1)?.extract()?),
                None => Self::Observe,
            },
            "widen" => Self::Widen,
            "reward" => Self::Reward(at(0)?.unbind()),
            "clip" => Self::Clip(at(0)?.extract()?, at(1)?.extract()?),
            "normalize_rewards" => Self::NormalizeRewards(at(0)?.extract()?, at(1)?.extract()?),
            "normalize_observations" => {
                Self::NormalizeObservations(at(0)?.extract()?, at(1)?.extract()?)
            }
            "stack" => Self::Stack(at(0)?.extract()?),
            "episodes" => Self::Episodes(at(0)?.extract()?, keys()?),
            "metrics" => Self::Metrics(at(0)?.extract()?, keys()?),
            "tensors" => Self::Tensors(at(0)?.unbind(), at(1)?.extract()?),
            _ => return Err(PyValueError::new_err(format!("no operation has the name {name:?}"))),
        })
    }
}

/// The memory of a step. A step takes it, since functions of Python run meanwhile, which may step again.
#[derive(Debug)]
struct Memory {
    columns: Columns,
    /// Those of each operation.
    blocks: Vec<Blocks>,
}

impl<'py> Batch<'_, 'py> {
    fn run(
        &mut self,
        kernel: &Kernel,
        wrapper: &Bound<'py, PyAny>,
        blocks: &mut Blocks,
    ) -> PyResult<()> {
        let py = self.py;
        match kernel {
            Kernel::Transform => self.transform(wrapper)?,
            Kernel::Observe => self.observe(wrapper)?,
            Kernel::Flatten(dtype, length) => {
                let are_flat = |count, rows: &_| is_array(rows, &[count, *length], *dtype);
                if !(are_flat(self.num_envs, &self.observations) && self.finals_are(are_flat)) {
                    self.observe(wrapper)?;
                }
            }
            Kernel::Widen => match widened(&self.observations, blocks)? {
                Some(wide) => {
                    self.take_finals(wrapper)?;
                    (self.observations, self.has_changed) = (wide, true);
                    self.change_finals(|finals| {
                        let wide = widened(finals, &mut Blocks::default())?;
                        let observe = || wrapper.call_method1(intern!(py, "_observe"), (finals,));
                        wide.map_or_else(observe, Ok)
                    })?;
                }
                None => self.observe(wrapper)?,
            },
            Kernel::Reward(func) => self.apply_to_rewards(wrapper, func.bind(py), blocks)?,
            Kernel::Clip(low, high) => {
                clip(self.rewards.numbers_mut(self.num_envs, blocks)?, *low, *high);
                self.has_changed = true;
            }
            Kernel::NormalizeRewards(normalizer, limit) => {
                let new = Unwritten::alone(py, blocks, self.num_envs)?;
                let mut rewards = normalizer.get().normalized(py, &self.results()?, new);
                if let Some(limit) = limit {
                    clip(rewards.cells_mut(), -limit, *limit);
                }
                self.set_rewards(Rewards::New(rewards));
            }
            Kernel::NormalizeObservations(normalizer, limit) => {
                self.take_finals(wrapper)?;
                self.find_ends()?;
                let (places, given, ended) = (self.places(), &self.observations, self.ended()?);
                let shown =
                    normalizer.get().normalized(py, places, given, ended, *limit, blocks)?;
                self.set_observations(shown)?;
            }
            Kernel::Stack(stack) => {
                self.take_finals(wrapper)?;
                self.find_ends()?;
                let (places, given, ended) = (self.places(), &self.observations, self.ended()?);
                let shown = stack.get().stacked(py, places, given, ended, blocks)?;
                self.set_observations(shown)?;
            }
            // These two refuse infos that have their keys, and the second one reads others.
            Kernel::Episodes(_, keys) if self.has_key(keys)? => self.transform(wrapper)?,
            Kernel::Metrics(_, keys) if self.has_key(keys)? || self.has_other_infos()? => {
                self.transform(wrapper)?;
            }
            Kernel::Episodes(episodes, keys) => {
                let episodes = episodes.get();
                if episodes.count(py, &self.results()?) {
                    let (values, mask) = episodes.report(py, self.num_envs, blocks)?;
                    self.set_infos(keys, values, mask)?;
                }
            }
            Kernel::Metrics(metrics, keys) => {
                let (metrics, said) = (metrics.get(), [None, None]);
                let new = NewValues::new(py, self.num_envs, blocks)?;
                let (values, mask, last) = metrics.count(py, &self.results()?, said, None, new)?;
                self.set_infos(keys, values, mask)?;
                if let Some((values, mask)) = last {
                    self.set_final_infos(keys, values, mask)?;
                }
            }
            Kernel::Tensors(tensor, exchange) => {
                self.convert(wrapper, tensor.bind(py), exchange.as_ref().map(Py::get))?;
            }
        }
        Ok(())
    }
}

/// Whether a row of a batch with these infos may have failed, or they are not a dictionary.
fn may_have_failures(infos: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = infos.py();
    let Ok(infos) = infos.cast::<PyDict>() else { return Ok(true) };
    Ok(!infos.is_empty()
        && (infos.contains(intern!(py, "_env_error"))?
            || infos.contains(intern!(py, "_worker_restarted"))?
            || infos.contains(intern!(py, "_infos_lost"))?))
}

#[pyclass(frozen, name = "FusedStep", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyFusedStep {
    kinds: Py<PyRowKinds>,
    final_keys: Vec<Keys>,
    /// Each says that a batch is not plain: there are beginnings, or there is something unseen.
    beginnings: Py<PyFlag>,
    unseen: Py<PyFlag>,
    operations: Vec<Operation>,
    /// `None`: a step has it.
    memory: Locked<Option<Box<Memory>>>,
    /// The changes of wrappers before this was made.
    changes: u64,
}

impl PyFusedStep {
    /// The memory of the last step, or, in a step of a function that a step calls, new memory.
    fn take_memory(&self, py: Python<'_>) -> Box<Memory> {
        let kept = self.memory.lock(py).take();
        kept.unwrap_or_else(|| {
            let blocks = self.operations.iter().map(|_| Blocks::default()).collect();
            let columns = Columns { with_finals: Blocks::of_second_arrays(), ..Columns::default() };
            Box::new(Memory { columns, blocks })
        })
    }

    /// Keeps the memory for the next step.
    fn keep(&self, py: Python<'_>, memory: Box<Memory>) {
        let other = self.memory.lock(py).replace(memory);
        drop(other); // without the lock: arrays with weak references may end
    }
}

#[pymethods]
impl PyFusedStep {
    #[new]
    fn new(
        kinds: Py<PyRowKinds>,
        final_names: Vec<String>,
        beginnings: Py<PyFlag>,
        unseen: Py<PyFlag>,
        operations: Vec<(Option<Py<PyAny>>, String, Bound<'_, PyTuple>)>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let key = |name: &str| PyString::new(py, name).unbind();
        let final_keys = final_names.iter().map(|name| [key(name), key(&format!("_{name}"))]);
        let final_keys = final_keys.collect();
        let operations = operations.into_iter().map(|(wrapper, name, given)| {
            Ok(Operation { wrapper, kernel: Kernel::new(&name, &given)? })
        });
        let operations = operations.collect::<PyResult<Vec<_>>>()?;
        let memory = Locked::new(None);
        let changes = kinds.get().changes();
        Ok(Self { kinds, final_keys, beginnings, unseen, operations, memory, changes })
    }

    #[pyo3(signature = (wrapper, result, /))]
    fn pass_on<'py>(
        &self,
        wrapper: &Bound<'py, PyAny>,
        result: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = wrapper.py();
        let [observations, rewards, terminations, truncations, infos] =
            std::array::from_fn(|part| result.get_borrowed_item(part));
        let infos = infos?.to_owned();
        let is_current = self.kinds.get().changes() == self.changes;
        if !is_current {
            wrapper.setattr(intern!(py, "_plan"), py.None())?; // it makes another one
        }
        let is_plain = is_current
            && !self.beginnings.get().is_set()
            && !self.unseen.get().is_set()
            && !may_have_failures(&infos)?;
        let through_python = || wrapper.call_method1(intern!(py, "_pass_on"), (result,));
        if !is_plain {
            return through_python();
        }
        let mut memory = self.take_memory(py);
        let Memory { columns, blocks } = &mut *memory;
        let mut batch = Batch {
            py,
            num_envs: self.kinds.get().num_envs(),
            columns,
            observations: observations?.to_owned(),
            rewards: Rewards::Given(rewards?.to_owned(), None),
            terminations: terminations?.to_owned(),
            truncations: truncations?.to_owned(),
            infos,
            final_keys: &self.final_keys,
            finals: None,
            are_infos_shown: false,
            are_flags_read: false,
            has_changed: false,
        };
        batch.read_flags()?;
        let Columns { kinds, terminations, truncations, .. } = &mut *batch.columns;
        self.kinds.get().classify(py, [terminations, truncations], kinds);
        let operations = self.operations.iter().zip(blocks).enumerate();
        for (number, (Operation { wrapper: of, kernel }, blocks)) in operations {
            let of = of.as_ref().map_or(wrapper, |of| of.bind(py));
            if let Err(error) = batch.run(kernel, of, blocks) {
                // The results are lost, and the wrappers inside have seen them.
                let lost = (
                    number,
                    batch.kinds_array()?,
                    &batch.observations,
                    batch.rewards.array(py),
                    &batch.terminations,
                    &batch.truncations,
                );
                wrapper.call_method1(intern!(py, "_lose_at"), lost)?;
                return Err(error);
            }
        }
        let step = batch.put_finals_back(wrapper).and_then(|()| batch.tuple_of_results(result));
        drop(batch);
        self.keep(py, memory);
        step
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for operation in &self.operations {
            visit.call(&operation.wrapper)?;
            if let Kernel::Tensors(function, _) | Kernel::Reward(function) = &operation.kernel {
                visit.call(function)?;
            }
        }
        Ok(())
    }
}
