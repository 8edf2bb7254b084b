//! One pass over the batch of a step for a whole stack of wrappers; documented in the stub.
//!
//! A batch of all rows without infos is passed from operation to operation here: kinds and flags are
//! read once, and operations write new arrays. Each operation has [`Blocks`], which reuse the arrays of
//! an earlier step. Every other batch (with infos, final observations, lost results, seeds that are not
//! shown yet) goes through the methods `transform` in Python, which use the same state.
//!
//! # Invariants
//!
//! 1. `gather` and `scatter` of the kernels write every number of their buffers, or panic.
#![expect(unsafe_code, reason = "rewards are written into new arrays, see the invariants")]

use cartwheel_kernels::wrappers::{
    Places, StepResults, clip, gather, is_stepped, num_kept, scatter,
};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyString, PyTuple};

use super::column::{Column, RowValues, are_plain_numbers};
use super::conversions::{is_array, widened};
use super::episode_metrics::NewValues;
use super::locked::Locked;
use super::rewards::Rewards;
use super::{
    PyEpisodeMetrics, PyFlag, PyFrameStack, PyObservationNormalizer, PyRewardNormalizer,
    PyRowKinds, PyTimedEpisodes,
};
use crate::array::{
    Block, Blocks, Number, Numbers, PyTensorExchange, Unwritten, dtype, from_bytes,
};
use crate::known::intern;

use cartwheel_engine::space::DType;

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
    Episodes(Py<PyTimedEpisodes>, [Py<PyString>; 2]),
    /// Infos of all episodes, likewise.
    Metrics(Py<PyEpisodeMetrics>, [Py<PyString>; 2]),
    /// Tensors of all arrays, by the functions of their type, or else by this function.
    Tensors(Py<PyAny>, Option<Py<PyTensorExchange>>),
}

impl Kernel {
    /// Of a name and its arguments.
    fn new(name: &str, given: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let at = |place| given.get_item(place);
        let keys = || -> PyResult<[Py<PyString>; 2]> { Ok([at(1)?.extract()?, at(2)?.extract()?]) };
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

/// Columns of a batch, whose memory every step uses again.
#[derive(Debug, Default)]
struct Columns {
    kinds: Vec<u8>,
    terminations: Vec<u8>,
    truncations: Vec<u8>,
    /// The memory of arrays of the rewards of transitions, for functions.
    given: Blocks,
}

/// The memory of a step. A step takes it, since functions of Python run meanwhile, which may step again.
#[derive(Debug)]
struct Memory {
    columns: Columns,
    /// Those of each operation.
    blocks: Vec<Blocks>,
}

/// The results of a step on their way.
struct Batch<'a, 'py> {
    py: Python<'py>,
    num_envs: usize,
    columns: &'a mut Columns,
    observations: Bound<'py, PyAny>,
    rewards: Rewards<'py>,
    terminations: Bound<'py, PyAny>,
    truncations: Bound<'py, PyAny>,
    infos: Bound<'py, PyAny>,
    /// Whether a method of Python has seen the infos, and may have kept them.
    are_infos_shown: bool,
    /// Whether the flags that were read are still those of the batch.
    are_flags_read: bool,
    /// Whether an operation changed anything.
    has_changed: bool,
}

impl<'py> Batch<'_, 'py> {
    fn places(&self) -> Places<'_> {
        Places::new(None, &self.columns.kinds, self.num_envs)
    }

    fn set_rewards(&mut self, rewards: Rewards<'py>) {
        self.rewards = rewards;
        self.has_changed = true;
    }

    /// The step so far.
    fn results(&mut self) -> PyResult<StepResults<'_>> {
        self.rewards.read(self.num_envs)?;
        self.read_flags()?;
        Ok(StepResults {
            places: self.places(),
            rewards: self.rewards.numbers(),
            terminations: &self.columns.terminations,
            truncations: &self.columns.truncations,
        })
    }

    fn kinds_array(&self) -> PyResult<Bound<'py, PyAny>> {
        from_bytes(self.py, DType::U8, Some(self.num_envs), &[], &self.columns.kinds)
    }

    /// Reads the flags, unless they were read.
    fn read_flags(&mut self) -> PyResult<()> {
        if self.are_flags_read {
            return Ok(());
        }
        self.are_flags_read = true;
        let (count, columns) = (self.num_envs, &mut *self.columns);
        Column::flags("terminations", &self.terminations, count)?
            .copy_to(&mut columns.terminations);
        Column::flags("truncations", &self.truncations, count)?.copy_to(&mut columns.truncations);
        Ok(())
    }

    /// Adds infos, of which there are none yet.
    fn set_infos(
        &mut self,
        keys: &[Py<PyString>; 2],
        values: Bound<'py, PyDict>,
        mask: Bound<'py, PyAny>,
    ) -> PyResult<()> {
        if self.are_infos_shown {
            self.infos = PyDict::new(self.py).into_any();
            self.has_changed = true;
        }
        self.infos.set_item(&keys[0], values)?;
        self.infos.set_item(&keys[1], mask)
    }

    fn has_infos(&self) -> PyResult<bool> {
        Ok(self.infos.len()? > 0)
    }

    /// Calls the wrapper's `transform` with the batch as an object of Python.
    fn transform(&mut self, wrapper: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = self.py;
        let kinds = self.kinds_array()?;
        let batch = wrapper.call_method1(
            intern!(py, "_new_batch"),
            (
                &kinds,
                &self.observations,
                self.rewards.array(py),
                &self.terminations,
                &self.truncations,
                &self.infos,
            ),
        )?;
        wrapper.call_method1(intern!(py, "_transform_alone"), (&batch,))?;
        self.observations = batch.getattr(intern!(py, "observations"))?;
        self.set_rewards(Rewards::Given(batch.getattr(intern!(py, "rewards"))?, None));
        self.infos = batch.getattr(intern!(py, "infos"))?;
        self.are_infos_shown = true;
        let (before, now) = (&self.terminations, batch.getattr(intern!(py, "terminations"))?);
        let same = now.is(before);
        self.terminations = now;
        let now = batch.getattr(intern!(py, "truncations"))?;
        if !(same && now.is(&self.truncations)) {
            (self.truncations, self.are_flags_read) = (now, false);
        }
        let now = batch.getattr(intern!(py, "kinds"))?;
        if !now.is(&kinds) {
            Column::kinds(&now, self.num_envs)?.copy_to(&mut self.columns.kinds);
        }
        Ok(())
    }

    /// Calls the wrapper's `_observe`.
    fn observe(&mut self, wrapper: &Bound<'py, PyAny>) -> PyResult<()> {
        let observe = wrapper.getattr(intern!(self.py, "_observe"))?;
        self.observations = observe.call1((&self.observations,))?;
        self.has_changed = true;
        if self.observations.is_none() {
            wrapper.call_method0(intern!(self.py, "_refuse_none"))?;
        }
        Ok(())
    }

    /// Calls a function with the rewards of transitions; those of other places become 0.
    fn apply_to_rewards(
        &mut self,
        wrapper: &Bound<'py, PyAny>,
        func: &Bound<'py, PyAny>,
        blocks: &mut Blocks,
    ) -> PyResult<()> {
        let apply = |rewards: &Bound<'py, PyAny>, count: usize| -> PyResult<Bound<'py, PyAny>> {
            let applied = func.call1((rewards,))?;
            if are_plain_numbers(&applied, count) {
                return Ok(applied);
            }
            wrapper.call_method1(intern!(rewards.py(), "_checked"), (applied, count))
        };
        let (py, num_envs) = (self.py, self.num_envs);
        let count = num_kept(&self.columns.kinds, is_stepped);
        if count == num_envs {
            let rewards = apply(self.rewards.array(py), count)?;
            self.set_rewards(Rewards::Given(rewards, None));
            return Ok(());
        }
        self.rewards.read(num_envs)?;
        let Columns { kinds, given, .. } = &mut *self.columns;
        let mut applied = None;
        if count > 0 {
            // Space for all rewards, so that it does not change from step to step.
            let block = given.next(py, Block::space(num_envs * size_of::<f64>()))?;
            let mut given = Unwritten::new(py, block, count, &[])?;
            gather(self.rewards.numbers(), kinds, is_stepped, given.room());
            // SAFETY: `gather` wrote every number (invariant 1).
            let given = unsafe { given.written() }.into_shown().0;
            let new = apply(&given, count)?;
            let new = RowValues::new("rewards", &new, f64::DTYPE, count, &[])?;
            applied = Some(new.into_numbers()?);
        }
        let mut new = Unwritten::alone(py, blocks, num_envs)?;
        let applied = applied.as_ref().map_or(&[][..], Numbers::cells);
        scatter(applied, kinds, is_stepped, new.room());
        // SAFETY: `scatter` wrote every number (invariant 1).
        self.set_rewards(Rewards::New(unsafe { new.written() }));
        Ok(())
    }

    /// Makes tensors of all arrays. If one fails, the batch has arrays still, which is lost as such.
    fn convert(
        &mut self,
        wrapper: &Bound<'py, PyAny>,
        tensor: &Bound<'py, PyAny>,
        exchange: Option<&PyTensorExchange>,
    ) -> PyResult<()> {
        let exchange = match exchange {
            Some(exchange) if !exchange.is_passed_by(self.py)? => Some(exchange),
            _ => None,
        };
        let rewards = self.rewards.array(self.py).clone();
        let arrays = [&rewards, &self.observations, &self.terminations, &self.truncations];
        let made = exchange.map(|exchange| exchange.tensors_of(arrays)).transpose()?;
        let mut made = made.unwrap_or_default();
        let mut tensor_at =
            |place: usize| made[place].take().map_or_else(|| tensor.call1((arrays[place],)), Ok);
        let (rewards, observations) = (tensor_at(0)?, tensor_at(1)?);
        let (terminations, truncations) = (tensor_at(2)?, tensor_at(3)?);
        if self.has_infos()? {
            let shown = intern!(self.py, "_shown_infos");
            self.infos = wrapper.call_method1(shown, (&self.infos,))?;
        }
        (self.observations, self.rewards) = (observations, Rewards::Given(rewards, None));
        (self.terminations, self.truncations) = (terminations, truncations);
        self.has_changed = true;
        Ok(())
    }

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
                if !is_array(&self.observations, &[self.num_envs, *length], *dtype) {
                    self.observe(wrapper)?;
                }
            }
            Kernel::Widen => match widened(&self.observations, blocks)? {
                Some(wide) => (self.observations, self.has_changed) = (wide, true),
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
                let (normalizer, given) = (normalizer.get(), &self.observations);
                let shown =
                    normalizer.normalized(py, self.places(), given, None, *limit, blocks)?;
                self.observations = shown.0;
                self.has_changed = true;
            }
            Kernel::Stack(stack) => {
                let (stack, given) = (stack.get(), &self.observations);
                let shown = stack.stacked(py, self.places(), given, None, blocks)?;
                self.observations = shown.0;
                self.has_changed = true;
            }
            // These two refuse infos that have their keys, and read others.
            Kernel::Episodes(..) | Kernel::Metrics(..) if self.has_infos()? => {
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
                let (values, mask, _) = metrics.count(py, &self.results()?, said, None, new)?;
                self.set_infos(keys, values, mask)?;
            }
            Kernel::Tensors(tensor, exchange) => {
                self.convert(wrapper, tensor.bind(py), exchange.as_ref().map(Py::get))?;
            }
        }
        Ok(())
    }

    /// The results as a tuple; `given` is what came.
    fn tuple_of_results(&mut self, given: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        if !self.has_changed {
            return Ok(given.clone().into_any());
        }
        let rewards = self.rewards.array(self.py);
        let parts =
            [&self.observations, rewards, &self.terminations, &self.truncations, &self.infos];
        Ok(PyTuple::new(self.py, parts)?.into_any())
    }
}

#[pyclass(frozen, name = "FusedStep", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyFusedStep {
    kinds: Py<PyRowKinds>,
    is_same_step: bool,
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
    #[expect(clippy::unnecessary_box_returns, reason = "the lock keeps it in this box")]
    fn take_memory(&self, py: Python<'_>) -> Box<Memory> {
        let kept = self.memory.lock(py).take();
        kept.unwrap_or_else(|| {
            let blocks = self.operations.iter().map(|_| Blocks::default()).collect();
            Box::new(Memory { columns: Columns::default(), blocks })
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
        is_same_step: bool,
        beginnings: Py<PyFlag>,
        unseen: Py<PyFlag>,
        operations: Vec<(Option<Py<PyAny>>, String, Bound<'_, PyTuple>)>,
    ) -> PyResult<Self> {
        let operations = operations.into_iter().map(|(wrapper, name, given)| {
            Ok(Operation { wrapper, kernel: Kernel::new(&name, &given)? })
        });
        let operations = operations.collect::<PyResult<Vec<_>>>()?;
        let memory = Locked::new(None);
        let changes = kinds.get().changes();
        Ok(Self { kinds, is_same_step, beginnings, unseen, operations, memory, changes })
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
            && infos.cast::<PyDict>().is_ok_and(PyDictMethods::is_empty)
            && !self.beginnings.get().is_set()
            && !self.unseen.get().is_set();
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
            are_infos_shown: false,
            are_flags_read: false,
            has_changed: false,
        };
        batch.read_flags()?;
        let Columns { kinds, terminations, truncations, .. } = &mut *batch.columns;
        let is_over = |flags: &[u8]| flags.iter().any(|&flag| flag != 0);
        if self.is_same_step && (is_over(terminations) || is_over(truncations)) {
            drop(batch);
            self.keep(py, memory);
            return through_python();
        }
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
        let step = batch.tuple_of_results(result);
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
