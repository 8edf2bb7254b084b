//! Steps of rows with external rewards, which a callable of Python computes: they have two halves.

use cartwheel_engine::memory::Lease;
use cartwheel_engine::native::{ExternalInfo, ExternalRewards};
use cartwheel_engine::pool::Received;
use cartwheel_engine::space::DType;
use cartwheel_engine::{Call, PhaseTag};
use numpy::PyUntypedArrayMethods;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::dtype::from_descr;
use crate::array::{as_array, as_contiguous, as_flags, copied_flags, copy_bytes, copy_numbers};
use crate::pool::State;
use crate::pool::actions::Checked;
use crate::pool::batch::{Outputs, of_batch};

/// Rewards, terminations and truncations of all rows, and infos with their names.
type Computed<'py> =
    (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>, Vec<(String, Bound<'py, PyAny>)>);

/// The callable, and its arguments that are known before the step.
#[derive(Debug)]
pub(super) struct RewardFunction {
    callable: Py<PyAny>,
    /// Called before each step.
    before_step: Option<Py<PyAny>>,
    /// The elements of the first leaf of the observations that rows show before the step.
    before: Vec<u8>,
    actions: Option<Py<PyAny>>,
}

impl RewardFunction {
    pub(super) fn new(callable: Py<PyAny>, before_step: Option<Py<PyAny>>) -> Self {
        Self { callable, before_step, before: Vec::new(), actions: None }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.callable)?;
        visit.call(&self.before_step)?;
        visit.call(&self.actions)
    }

    /// Copies what rows show before their next step: the caller may write the arrays of this batch.
    /// The places of the batch belong to `rows`, in their order.
    pub(super) fn remember(&mut self, lease: &Lease, rows: impl Iterator<Item = usize>) {
        let (layout, bytes) = (lease.layout(), lease.layout().row_bytes(0));
        self.before.resize(layout.rows() * bytes, 0);
        for (place, row) in rows.enumerate() {
            let into = &mut self.before[row * bytes..(row + 1) * bytes];
            lease.read(layout.leaf_offset(0) + (lease.first() + place) * bytes, into);
        }
    }
}

/// Which rows were stepped, as truth values: after the first half of a step, rows are in the phases that
/// they had before it, unless they failed.
fn stepped(lease: &Lease) -> Vec<u8> {
    let layout = lease.layout();
    let mut phases = vec![0; layout.rows()];
    lease.read(layout.phases_offset() + lease.first(), &mut phases);
    phases.into_iter().map(|phase| u8::from(phase == PhaseTag::Running as u8)).collect()
}

/// An info from its array, whose first axis are the rows.
fn to_info(name: &str, array: &Bound<'_, PyAny>) -> PyResult<ExternalInfo> {
    let array = as_array(array)?;
    let dtype = from_descr(&array.dtype()).ok_or_else(|| {
        PyTypeError::new_err(format!("`infos` has {name:?} of {}", array.dtype()))
    })?;
    let array = as_contiguous(array.as_any(), dtype)?;
    let mut elements = vec![0; array.len() * dtype.size()];
    copy_bytes(&array, 0, &mut elements);
    if dtype == DType::Bool {
        as_flags(&mut elements);
    }
    let shape = array.shape().get(1..).unwrap_or_default().to_vec();
    Ok(ExternalInfo { name: name.to_owned(), dtype, shape, elements })
}

impl State {
    /// Lets the callable before steps read the rows, if there is one and a step of all rows can begin.
    pub(super) fn prepare_step(&self, py: Python<'_>) -> PyResult<()> {
        let function = self.reward_function.as_ref();
        match function.and_then(|function| function.before_step.as_ref()) {
            Some(before_step) if self.pool.check(Call::Step).is_ok() => {
                before_step.call0(py).map(drop)
            }
            _ => Ok(()), // the step says why it cannot begin
        }
    }

    /// Copies the actions of a step that is about to begin, if rewards depend on them: the caller may
    /// write theirs before the step is finished.
    pub(super) fn keep_actions(&mut self, checked: &Checked<'_>, py: Python<'_>) -> PyResult<()> {
        if let Some(function) = &mut self.reward_function {
            function.actions = Some(checked.copies(&self.actions, py)?.unbind());
        }
        Ok(())
    }

    /// The second half of a step whose rewards are external, if they are: replaces the result of the first
    /// half. If the callable raises, the rows that were stepped need a reset.
    pub(super) fn finish_with_rewards(
        &mut self,
        py: Python<'_>,
        received: &mut Received,
        calling: &str,
    ) -> PyResult<()> {
        let Some(function) = &mut self.reward_function else { return Ok(()) };
        let (callable, actions) = (function.callable.clone_ref(py), function.actions.take());
        let before = PyBytes::new(py, &function.before);
        let stepped = PyBytes::new(py, &stepped(of_batch(received.lease.as_ref())?));
        let (step, show) =
            (Some(Call::Step), |outputs: Outputs<'_>| Ok(outputs.observations.unbind()));
        let observations = self.collect_or_drop(py, step, received, show)?;
        let posted = callable
            .bind(py)
            .call1((before, actions, observations, stepped))
            .and_then(|rewards| rewards.extract::<Computed<'_>>())
            .and_then(|computed| self.post_rewards(py, &computed));
        let explain = |error| self.callbacks.explain(py, error, Call::Settle, calling);
        self.pool.begin(Call::Settle, 0).map_err(explain)?;
        *received = self.finish_part(py, Call::Settle, calling)?;
        if let Err(raised) = posted {
            self.drop_results(Some(Call::Step), received);
            self.lose(0..self.rows);
            self.discard_messages(py, received)?;
            return Err(raised);
        }
        self.complete_resets(py, Some(Call::Step), received, calling)
    }

    /// Leaves rewards, terminations and truncations of all rows for their shards.
    fn post_rewards(&self, py: Python<'_>, computed: &Computed<'_>) -> PyResult<()> {
        let (numbers, terminations, truncations, infos) = computed;
        let mut rewards = Vec::new();
        copy_numbers(&as_contiguous(numbers, DType::F64)?, &mut rewards);
        let [terminations, truncations] =
            [as_contiguous(terminations, DType::Bool)?, as_contiguous(truncations, DType::Bool)?]
                .map(|flags| copied_flags(&flags));
        let infos = infos.iter().map(|(name, array)| to_info(name, array));
        let infos = infos.collect::<PyResult<_>>()?;
        let all = ExternalRewards { rewards, terminations, truncations, infos };
        let native = self.native.as_ref().expect("only native rows have external rewards");
        native.bind(py).get().post_rewards(&all)
    }
}
