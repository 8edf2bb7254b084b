//! The batch of a step on its way through a stack of wrappers.
//!
//! # Invariants
//!
//! 1. `gather` and `scatter` of the kernels write every number of their buffers, or panic.
#![expect(unsafe_code, reason = "rewards are written into new arrays, see the invariants")]

use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::{Places, StepResults, gather, is_stepped, num_kept, scatter};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyString, PyTuple};

use crate::array::{
    Block, Blocks, Number, Numbers, Objects, PyTensorExchange, Unwritten, from_bytes,
};
use crate::known::intern;
use crate::wrappers::column::{Column, RowValues, are_plain_numbers};
use crate::wrappers::rewards::Rewards;

/// Keys of infos: of values, and of their mask.
pub(super) type Keys = [Py<PyString>; 2];

/// Final observations that were taken out of the infos.
pub(super) struct Finals<'a, 'py> {
    /// One row for each known place; something else if there is none.
    pub(super) rows: Bound<'py, PyAny>,
    pub(super) form: Form<'a, 'py>,
}

/// The form in which final observations came.
pub(super) enum Form<'a, 'py> {
    /// An array of all places or, if there are some, these objects, under these keys, and the mask.
    Array { objects: Option<Objects<'py>>, keys: Vec<&'a Keys>, mask: Bound<'py, PyAny> },
    /// An object of Python's class `Finals` knows it.
    Other(Bound<'py, PyAny>),
}

/// Columns of a batch, whose memory every step uses again.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) kinds: Vec<u8>,
    pub(super) terminations: Vec<u8>,
    pub(super) truncations: Vec<u8>,
    /// Flags of another array.
    pub(super) flags: Vec<u8>,
    /// The places at which episodes ended in `SAME_STEP`.
    pub(super) ended: Vec<i64>,
    /// Whether they were found, of these flags.
    pub(super) are_ends_found: bool,
    /// Those of the final observations that were taken.
    pub(super) known: Vec<i64>,
    /// The memory of arrays of the rewards of transitions, for functions.
    pub(super) given: Blocks,
    /// The memory of arrays of final observations.
    pub(super) with_finals: Blocks,
}

/// The results of a step on their way.
pub(super) struct Batch<'a, 'py> {
    pub(super) py: Python<'py>,
    pub(super) num_envs: usize,
    pub(super) columns: &'a mut Columns,
    pub(super) observations: Bound<'py, PyAny>,
    pub(super) rewards: Rewards<'py>,
    pub(super) terminations: Bound<'py, PyAny>,
    pub(super) truncations: Bound<'py, PyAny>,
    pub(super) infos: Bound<'py, PyAny>,
    /// Under which infos may have final observations.
    pub(super) final_keys: &'a [Keys],
    /// Those that were taken out of the infos.
    pub(super) finals: Option<Finals<'a, 'py>>,
    /// Whether a method of Python has seen the infos, and may have kept them.
    pub(super) are_infos_shown: bool,
    /// Whether the flags that were read are still those of the batch.
    pub(super) are_flags_read: bool,
    /// Whether an operation changed anything.
    pub(super) has_changed: bool,
}

impl<'py> Batch<'_, 'py> {
    pub(super) fn places(&self) -> Places<'_> {
        Places::new(None, &self.columns.kinds, self.num_envs)
    }

    pub(super) fn set_rewards(&mut self, rewards: Rewards<'py>) {
        self.rewards = rewards;
        self.has_changed = true;
    }

    /// The step so far.
    pub(super) fn results(&mut self) -> PyResult<StepResults<'_>> {
        self.rewards.read(self.num_envs)?;
        self.read_flags()?;
        Ok(StepResults {
            places: self.places(),
            rewards: self.rewards.numbers(),
            terminations: &self.columns.terminations,
            truncations: &self.columns.truncations,
        })
    }

    pub(super) fn kinds_array(&self) -> PyResult<Bound<'py, PyAny>> {
        from_bytes(self.py, DType::U8, Some(self.num_envs), &[], &self.columns.kinds)
    }

    /// Reads the flags, unless they were read.
    pub(super) fn read_flags(&mut self) -> PyResult<()> {
        if self.are_flags_read {
            return Ok(());
        }
        self.are_flags_read = true;
        let (count, columns) = (self.num_envs, &mut *self.columns);
        columns.are_ends_found = false;
        Column::flags("terminations", &self.terminations, count)?
            .copy_to(&mut columns.terminations);
        Column::flags("truncations", &self.truncations, count)?.copy_to(&mut columns.truncations);
        Ok(())
    }

    /// Adds infos.
    pub(super) fn set_infos(
        &mut self,
        keys: &Keys,
        values: Bound<'py, PyDict>,
        mask: Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let infos = self.own_infos()?;
        infos.set_item(&keys[0], values)?;
        infos.set_item(&keys[1], mask)
    }

    /// The infos, to be changed: a copy, if other code may have them.
    pub(super) fn own_infos(&mut self) -> PyResult<&Bound<'py, PyDict>> {
        if self.are_infos_shown {
            self.infos = self.infos.cast::<PyDict>()?.copy()?.into_any();
            (self.are_infos_shown, self.has_changed) = (false, true);
        }
        Ok(self.infos.cast::<PyDict>()?)
    }

    pub(super) fn has_infos(&self) -> PyResult<bool> {
        Ok(self.infos.len()? > 0)
    }

    /// Whether there are infos under one of the keys.
    pub(super) fn has_key(&self, keys: &Keys) -> PyResult<bool> {
        let [key, mask_key] = keys;
        let has_either =
            || PyResult::Ok(self.infos.contains(key)? || self.infos.contains(mask_key)?);
        Ok(self.has_infos()? && has_either()?)
    }

    /// Calls the wrapper's `transform` with the batch as an object of Python.
    pub(super) fn transform(&mut self, wrapper: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = self.py;
        let kinds = self.kinds_array()?;
        let finals = if self.finals.is_some() {
            let inner = wrapper.getattr(intern!(py, "env"))?;
            let space = inner.getattr(intern!(py, "single_observation_space"))?;
            self.finals_object(wrapper, &space)?
        } else {
            None
        };
        let batch = wrapper.call_method1(
            intern!(py, "_transformed"),
            (
                finals,
                &kinds,
                &self.observations,
                self.rewards.array(py),
                &self.terminations,
                &self.truncations,
                &self.infos,
            ),
        )?;
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
        self.set_finals(batch.getattr(intern!(py, "_finals"))?)
    }

    /// Calls the wrapper's `_observe`, also with final observations.
    pub(super) fn observe(&mut self, wrapper: &Bound<'py, PyAny>) -> PyResult<()> {
        self.take_finals(wrapper)?;
        let observe = wrapper.getattr(intern!(self.py, "_observe"))?;
        let observations = observe.call1((&self.observations,))?;
        if observations.is_none() {
            return self.transform(wrapper); // refuses it by the name of the wrapper
        }
        (self.observations, self.has_changed) = (observations, true);
        self.change_finals(|finals| observe.call1((finals,)))
    }

    /// Calls a function with the rewards of transitions; those of other places become 0.
    pub(super) fn apply_to_rewards(
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
    pub(super) fn convert(
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

    /// The results as a tuple; `given` is what came.
    pub(super) fn tuple_of_results(
        &mut self,
        given: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if !self.has_changed {
            return Ok(given.clone().into_any());
        }
        let rewards = self.rewards.array(self.py);
        let parts =
            [&self.observations, rewards, &self.terminations, &self.truncations, &self.infos];
        Ok(PyTuple::new(self.py, parts)?.into_any())
    }
}
