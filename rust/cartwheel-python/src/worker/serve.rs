//! A worker's shard of Python environments, and the loop around it.

use cartwheel_engine::autoreset::{Autoreset, AutoresetMode, OnDone, Rules};
use cartwheel_engine::worker::serve as serve_shard;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::convert::{GivenRules, to_autoreset_mode, to_on_done, to_rules};
use crate::interpreter::enter;
use crate::known::intern;
use crate::memory::PyMemory;
use crate::space::Tree;
use crate::value::Foreign;
use crate::worker::shard::PyShard;

#[pyclass(frozen, name = "Shard", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyShardParts {
    worker: Py<PyAny>,
    observations: Py<PyAny>,
    actions: Py<PyAny>,
    mode: AutoresetMode,
    on_done: OnDone,
    rules: Rules,
    dense_finals: bool,
    reward_width: Option<usize>,
    /// Objects that are passed by reference, a list for each row; `None` to pickle them.
    objects: Option<Vec<Py<PyList>>>,
    /// For a replacement of a worker that died: which rows were over.
    over: Option<Vec<bool>>,
}

#[pymethods]
impl PyShardParts {
    #[new]
    #[pyo3(signature = (
        worker, observations, actions, *, autoreset_mode, freeze, rules = None,
        dense_finals = false, reward_width = None, objects = None, over = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each documented in the stub")]
    fn new(
        worker: Py<PyAny>,
        observations: Py<PyAny>,
        actions: Py<PyAny>,
        autoreset_mode: &str,
        freeze: bool,
        rules: Option<GivenRules>,
        dense_finals: bool,
        reward_width: Option<usize>,
        objects: Option<Vec<Py<PyList>>>,
        over: Option<Vec<bool>>,
    ) -> PyResult<Self> {
        let mode = to_autoreset_mode(autoreset_mode)?;
        Ok(Self {
            worker,
            observations,
            actions,
            mode,
            on_done: to_on_done(freeze),
            rules: to_rules(rules),
            dense_finals,
            reward_width,
            objects,
            over,
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.worker)?;
        visit.call(&self.observations)?;
        visit.call(&self.actions)?;
        self.objects.iter().flatten().try_for_each(|objects| visit.call(objects))
    }
}

impl PyShardParts {
    /// The shard for `rows` rows.
    pub(crate) fn build(&self, py: Python<'_>) -> PyResult<PyShard> {
        let worker = self.worker.bind(py);
        let rows = worker.getattr("envs")?.len()?;
        let foreign = match &self.objects {
            Some(objects) => {
                Foreign::Kept(objects.iter().map(|objects| objects.clone_ref(py)).collect())
            }
            None => Foreign::Pickled(
                worker.getattr("pickle")?.unbind(),
                worker.getattr("largest_infos")?.extract()?,
            ),
        };
        let autoreset = match &self.over {
            None => Autoreset::new(self.mode, self.on_done, rows),
            Some(over) if over.len() == rows => Autoreset::resumed(self.mode, self.on_done, over),
            Some(over) => {
                let got = over.len();
                return Err(PyValueError::new_err(format!("over has {got} of {rows} rows")));
            }
        };
        let autoreset = autoreset.with_rules(self.rules);
        let (observations, actions) = (self.observations.bind(py), self.actions.bind(py));
        let (observations, actions) = (Tree::new(observations)?, Tree::new(actions)?);
        let lost = self.over.is_some();
        let form = (self.dense_finals, self.reward_width);
        PyShard::new(worker, observations, actions, autoreset, foreign, form, lost)
    }

    pub(crate) fn refuses_over(&self) -> bool {
        self.mode.refuses_over(self.on_done)
    }
}

#[pyfunction]
#[pyo3(signature = (memory, index, shard, *, spin))]
pub(crate) fn serve(
    py: Python<'_>,
    memory: &Bound<'_, PyMemory>,
    index: usize,
    shard: &Bound<'_, PyShardParts>,
    spin: bool,
) -> PyResult<()> {
    enter();
    let token = memory.get().worker_token(index)?;
    let parts = shard.get();
    let mut shard = parts.build(py)?.served();
    parts.worker.call_method0(py, intern!(py, "ready"))?;
    py.detach(|| serve_shard(token, &mut shard, spin));
    Ok(())
}
