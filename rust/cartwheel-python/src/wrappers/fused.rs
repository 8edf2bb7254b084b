//! One pass over the batch of a step for a whole stack of wrappers; documented in the stub.
//!
//! A batch of all rows without infos is passed from operation to operation here: kinds, flags and
//! rewards are read once, and rewards are written once, at the end. Every other batch (with infos, final
//! observations, lost results, seeds that are not shown yet) goes through the methods `transform` in
//! Python, which use the same state.

use cartwheel_kernels::wrappers::{
    Places, StepResults, TRANSITION, clip, gather, is_stepped, scatter,
};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyString, PyTuple};

use super::column::{Column, RowValues, are_plain_numbers};
use super::locked::Locked;
use super::{
    PyEpisodeMetrics, PyFrameStack, PyObservationNormalizer, PyRewardNormalizer, PyRowKinds,
    PyTimedEpisodes,
};
use crate::array::{Number, PyTensorExchange, from_bytes, from_numbers};
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
    /// A function of the rewards of transitions, whose result the wrapper's `_checked` looks at.
    Reward(Py<PyAny>),
    /// Rewards within limits.
    Clip(f64, f64),
    NormalizeRewards(Py<PyRewardNormalizer>, Option<f64>),
    NormalizeObservations(Py<PyObservationNormalizer>),
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
            "reward" => Self::Reward(at(0)?.unbind()),
            "clip" => Self::Clip(at(0)?.extract()?, at(1)?.extract()?),
            "normalize_rewards" => Self::NormalizeRewards(at(0)?.extract()?, at(1)?.extract()?),
            "normalize_observations" => Self::NormalizeObservations(at(0)?.extract()?),
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
    rewards: Vec<f64>,
    /// Rewards that an operation writes.
    spare: Vec<f64>,
    /// Whether `rewards` has those of the batch, and whether no array has them.
    are_read: bool,
    are_new: bool,
}

/// The results of a step on their way.
struct Batch<'py> {
    py: Python<'py>,
    num_envs: usize,
    columns: Columns,
    observations: Bound<'py, PyAny>,
    rewards: Bound<'py, PyAny>,
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

impl<'py> Batch<'py> {
    fn places(&self) -> Places<'_> {
        Places::new(None, &self.columns.kinds, self.num_envs)
    }

    /// Reads the rewards, unless they were read.
    fn read_rewards(&mut self) -> PyResult<()> {
        if !self.columns.are_read {
            let rewards = RowValues::new("rewards", &self.rewards, f64::DTYPE, self.num_envs, &[])?;
            rewards.copy_numbers_to(&mut self.columns.rewards);
            self.columns.are_read = true;
        }
        Ok(())
    }

    /// The rewards as an array.
    fn reward_array(&mut self) -> PyResult<&Bound<'py, PyAny>> {
        if self.columns.are_new {
            self.rewards = from_numbers(self.py, self.num_envs, &[], &self.columns.rewards)?;
            self.columns.are_new = false;
        }
        Ok(&self.rewards)
    }

    fn set_reward_array(&mut self, rewards: Bound<'py, PyAny>) {
        self.rewards = rewards;
        (self.columns.are_read, self.columns.are_new) = (false, false);
        self.has_changed = true;
    }

    /// The rewards that were read are others now.
    fn note_new_rewards(&mut self) {
        self.columns.are_new = true;
        self.has_changed = true;
    }

    /// The step so far.
    fn results(&mut self) -> PyResult<StepResults<'_>> {
        self.read_rewards()?;
        self.read_flags()?;
        Ok(StepResults {
            places: self.places(),
            rewards: &self.columns.rewards,
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
        let (count, columns) = (self.num_envs, &mut self.columns);
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
        self.reward_array()?;
        let batch = wrapper.call_method1(
            intern!(py, "_new_batch"),
            (
                &kinds,
                &self.observations,
                &self.rewards,
                &self.terminations,
                &self.truncations,
                &self.infos,
            ),
        )?;
        wrapper.call_method1(intern!(py, "_transform_alone"), (&batch,))?;
        self.observations = batch.getattr(intern!(py, "observations"))?;
        self.set_reward_array(batch.getattr(intern!(py, "rewards"))?);
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

    /// Calls a function with the rewards of transitions; those of other places become 0.
    fn apply_to_rewards(
        &mut self,
        wrapper: &Bound<'py, PyAny>,
        func: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let apply = |rewards: &Bound<'py, PyAny>, count: usize| -> PyResult<Bound<'py, PyAny>> {
            let applied = func.call1((rewards,))?;
            if are_plain_numbers(&applied, count) {
                return Ok(applied);
            }
            wrapper.call_method1(intern!(rewards.py(), "_checked"), (applied, count))
        };
        if self.places().all_are(|kind| kind == TRANSITION) {
            let count = self.num_envs;
            let rewards = apply(self.reward_array()?, count)?;
            self.set_reward_array(rewards);
            return Ok(());
        }
        self.read_rewards()?;
        let mut applied = std::mem::take(&mut self.columns.spare);
        gather(&self.columns.rewards, &self.columns.kinds, is_stepped, &mut applied);
        if !applied.is_empty() {
            let count = applied.len();
            let new = apply(&from_numbers(self.py, count, &[], &applied)?, count)?;
            RowValues::new("rewards", &new, f64::DTYPE, count, &[])?.copy_numbers_to(&mut applied);
        }
        scatter(&applied, &self.columns.kinds, is_stepped, &mut self.columns.rewards);
        self.columns.spare = applied;
        self.note_new_rewards();
        Ok(())
    }

    /// Makes tensors of all arrays. If one fails, the batch has arrays still, which is lost as such.
    fn convert(
        &mut self,
        wrapper: &Bound<'py, PyAny>,
        tensor: &Bound<'py, PyAny>,
        exchange: Option<&PyTensorExchange>,
    ) -> PyResult<()> {
        self.reward_array()?;
        let exchange = match exchange {
            Some(exchange) if !exchange.is_passed_by(self.py)? => Some(exchange),
            _ => None,
        };
        let made = |array: &Bound<'py, PyAny>| {
            let made = exchange.map_or(Ok(None), |exchange| exchange.tensor_of(array))?;
            made.map_or_else(|| tensor.call1((array,)), Ok)
        };
        let (observations, rewards) = (made(&self.observations)?, made(&self.rewards)?);
        let (terminations, truncations) = (made(&self.terminations)?, made(&self.truncations)?);
        if self.has_infos()? {
            let shown = intern!(self.py, "_shown_infos");
            self.infos = wrapper.call_method1(shown, (&self.infos,))?;
        }
        (self.observations, self.rewards) = (observations, rewards);
        (self.terminations, self.truncations) = (terminations, truncations);
        self.has_changed = true;
        Ok(())
    }

    fn run(&mut self, kernel: &Kernel, wrapper: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = self.py;
        match kernel {
            Kernel::Transform => self.transform(wrapper)?,
            Kernel::Observe => {
                let observe = wrapper.getattr(intern!(py, "_observe"))?;
                self.observations = observe.call1((&self.observations,))?;
                self.has_changed = true;
                if self.observations.is_none() {
                    wrapper.call_method0(intern!(py, "_refuse_none"))?;
                }
            }
            Kernel::Reward(func) => self.apply_to_rewards(wrapper, func.bind(py))?,
            Kernel::Clip(low, high) => {
                self.read_rewards()?;
                clip(&mut self.columns.rewards, *low, *high);
                self.note_new_rewards();
            }
            Kernel::NormalizeRewards(normalizer, limit) => {
                let mut scaled = std::mem::take(&mut self.columns.spare);
                normalizer.get().write(py, &self.results()?, &mut scaled);
                if let Some(limit) = limit {
                    clip(&mut scaled, -limit, *limit);
                }
                self.columns.spare = std::mem::replace(&mut self.columns.rewards, scaled);
                self.note_new_rewards();
            }
            Kernel::NormalizeObservations(normalizer) => {
                let normalizer = normalizer.get();
                let shown = normalizer.normalized(py, self.places(), &self.observations, None)?;
                self.observations = shown.0;
                self.has_changed = true;
            }
            Kernel::Stack(stack) => {
                let stack = stack.get();
                self.observations = stack.stacked(py, self.places(), &self.observations, None)?.0;
                self.has_changed = true;
            }
            // These two refuse infos that have their keys, and read others.
            Kernel::Episodes(..) | Kernel::Metrics(..) if self.has_infos()? => {
                self.transform(wrapper)?;
            }
            Kernel::Episodes(episodes, keys) => {
                if let Some((values, mask)) = episodes.get().count(py, &self.results()?)? {
                    self.set_infos(keys, values, mask)?;
                }
            }
            Kernel::Metrics(metrics, keys) => {
                let metrics = metrics.get();
                let (values, mask, _) = metrics.count(py, &self.results()?, [None, None], None)?;
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
        self.reward_array()?;
        let parts =
            [&self.observations, &self.rewards, &self.terminations, &self.truncations, &self.infos];
        Ok(PyTuple::new(self.py, parts)?.into_any())
    }
}

#[pyclass(frozen, name = "FusedStep", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyFusedStep {
    kinds: Py<PyRowKinds>,
    is_same_step: bool,
    /// The parts of the source that say in `are_known` and `are_there` that a batch is not plain.
    beginnings: Py<PyAny>,
    unseen: Py<PyAny>,
    operations: Vec<Operation>,
    columns: Locked<Columns>,
    /// The changes of wrappers before this was made.
    changes: u64,
}

#[pymethods]
impl PyFusedStep {
    #[new]
    fn new(
        kinds: Py<PyRowKinds>,
        is_same_step: bool,
        beginnings: Py<PyAny>,
        unseen: Py<PyAny>,
        operations: Vec<(Option<Py<PyAny>>, String, Bound<'_, PyTuple>)>,
    ) -> PyResult<Self> {
        let operations = operations.into_iter().map(|(wrapper, name, given)| {
            Ok(Operation { wrapper, kernel: Kernel::new(&name, &given)? })
        });
        let operations = operations.collect::<PyResult<Vec<_>>>()?;
        let columns = Locked::new(Columns::default());
        let changes = kinds.get().changes();
        Ok(Self { kinds, is_same_step, beginnings, unseen, operations, columns, changes })
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
            && !self.beginnings.bind(py).getattr(intern!(py, "are_known"))?.is_truthy()?
            && !self.unseen.bind(py).getattr(intern!(py, "are_there"))?.is_truthy()?;
        let through_python = || wrapper.call_method1(intern!(py, "_pass_on"), (result,));
        if !is_plain {
            return through_python();
        }
        let mut batch = Batch {
            py,
            num_envs: self.kinds.get().num_envs(),
            columns: std::mem::take(&mut *self.columns.lock(py)),
            observations: observations?.to_owned(),
            rewards: rewards?.to_owned(),
            terminations: terminations?.to_owned(),
            truncations: truncations?.to_owned(),
            infos,
            are_infos_shown: false,
            are_flags_read: false,
            has_changed: false,
        };
        (batch.columns.are_read, batch.columns.are_new) = (false, false);
        batch.read_flags()?;
        let Columns { kinds, terminations, truncations, .. } = &mut batch.columns;
        let is_over = |flags: &[u8]| flags.iter().any(|&flag| flag != 0);
        if self.is_same_step && (is_over(terminations) || is_over(truncations)) {
            *self.columns.lock(py) = batch.columns;
            return through_python();
        }
        self.kinds.get().classify(py, [terminations, truncations], kinds);
        for (number, Operation { wrapper: of, kernel }) in self.operations.iter().enumerate() {
            let of = of.as_ref().map_or(wrapper, |of| of.bind(py));
            if let Err(error) = batch.run(kernel, of) {
                // The results are lost, and the wrappers inside have seen them.
                let lost = (
                    number,
                    batch.kinds_array()?,
                    &batch.observations,
                    &batch.rewards,
                    &batch.terminations,
                    &batch.truncations,
                );
                wrapper.call_method1(intern!(py, "_lose_at"), lost)?;
                return Err(error);
            }
        }
        let step = batch.tuple_of_results(result);
        *self.columns.lock(py) = batch.columns;
        step
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.beginnings)?;
        visit.call(&self.unseen)?;
        for operation in &self.operations {
            visit.call(&operation.wrapper)?;
            if let Kernel::Tensors(function, _) | Kernel::Reward(function) = &operation.kernel {
                visit.call(function)?;
            }
        }
        Ok(())
    }
}
