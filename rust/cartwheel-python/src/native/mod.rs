//! Native environments for Python: made here, stepped by the pool, with mailboxes for other calls.

pub(crate) mod begun;
pub(crate) mod descriptions;
pub(crate) mod mujoco;
pub(crate) mod plain_loop;
pub(crate) mod plugin;
mod post;
mod space;
pub(crate) mod stream;
mod value;

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cartwheel_engine::Error;
use cartwheel_engine::native::{
    Answer, Draw, Mailbox, NativeShard, ResetCache, RowState, ShardSettings,
};
use cartwheel_engine::plugin::{EnvKind, find};
use cartwheel_engine::space::{ActionTag, DType};
use cartwheel_engine::worker::Shard;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyBytesMethods};

use crate::convert::{GivenRules, to_autoreset_mode, to_on_done, to_rules};
use crate::error::{to_py_err, to_text};
use crate::native::space::describe;
use crate::native::stream::from_stream;
use crate::native::value::{from_frame, from_value};

/// The variable that makes the host check what plugins write.
const CHECK: &str = "CARTWHEEL_CHECK_PLUGINS";

#[pyclass(frozen, name = "NativeEnvs", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyNativeEnvs {
    kind: Arc<EnvKind>,
    /// The shards, from `make` on, until a pool takes them.
    shards: Mutex<Vec<Box<dyn Shard>>>,
    /// The rows of each shard.
    rows: Vec<Range<usize>>,
    /// One for each shard, from `make` on.
    mailboxes: OnceLock<Vec<Arc<Mailbox>>>,
    settings: ShardSettings,
    /// States that resets load once a message tells the shards.
    cache: Mutex<Option<Arc<ResetCache>>>,
}

#[pymethods]
impl PyNativeEnvs {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords, each documented in the stub")]
    #[pyo3(signature = (
        env_id, options, shards, *, autoreset_mode, freeze, rules = None, replacements = 0,
        dense_finals = false, external_rewards = false, external_resets = None
    ))]
    fn new(
        env_id: &str,
        options: &str,
        shards: Vec<(usize, usize)>,
        autoreset_mode: &str,
        freeze: bool,
        rules: Option<GivenRules>,
        replacements: u32,
        dense_finals: bool,
        external_rewards: bool,
        external_resets: Option<&str>,
    ) -> PyResult<Self> {
        let kind = find(env_id).and_then(|table| EnvKind::new(&table, options));
        let kind = kind.map_err(to_py_err)?;
        let number = |name: &str| {
            let found = kind.parameters().iter().position(|known| known == name);
            found.ok_or_else(|| PyValueError::new_err(format!("there is no parameter {name:?}")))
        };
        let settings = ShardSettings {
            autoreset: to_autoreset_mode(autoreset_mode)?,
            on_done: to_on_done(freeze),
            rules: to_rules(rules),
            replacements,
            dense_finals,
            is_checked: std::env::var_os(CHECK).is_some_and(|value| value == "1"),
            has_external_rewards: external_rewards,
            external_resets: external_resets.map(number).transpose()?,
        };
        Ok(Self {
            kind,
            shards: Mutex::default(),
            rows: shards.into_iter().map(|(first, last)| first..last).collect(),
            mailboxes: OnceLock::new(),
            settings,
            cache: Mutex::default(),
        })
    }

    fn make(&self, py: Python<'_>) -> PyResult<()> {
        let (mut made, mut mailboxes) = (Vec::new(), Vec::new());
        for rows in &self.rows {
            let shard = py.detach(|| NativeShard::new(&self.kind, rows.len(), self.settings));
            let (shard, mailbox) = shard.map_err(to_py_err)?;
            made.push(Box::new(shard) as Box<dyn Shard>);
            mailboxes.push(mailbox);
            py.check_signals()?;
        }
        self.mailboxes
            .set(mailboxes)
            .map_err(|_| PyRuntimeError::new_err("the environments are made already"))?;
        *self.shards.lock().unwrap_or_else(PoisonError::into_inner) = made;
        Ok(())
    }

    fn spaces<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let spaces = self.kind.spaces();
        Ok((describe(py, &spaces.observation)?, describe(py, &spaces.action)?))
    }

    fn parameters(&self) -> Vec<String> {
        self.kind.parameters().to_vec()
    }

    fn render_modes(&self) -> Vec<String> {
        self.kind.render_modes().to_vec()
    }

    fn render_fps(&self) -> usize {
        self.kind.render_fps()
    }

    fn agents(&self) -> Vec<String> {
        self.kind.agents().to_vec()
    }

    fn check_reset_options(&self, options: &str) -> PyResult<()> {
        self.kind.reset_options(options).map(drop).map_err(to_py_err)
    }

    fn check_state(&self, state: &[u8]) -> PyResult<()> {
        let state = RowState::read(&self.kind, state).map_err(to_py_err)?;
        if state.has_failed() {
            return Err(PyValueError::new_err("the state is of an environment that failed"));
        }
        Ok(())
    }

    fn first_failed(&self, states: Vec<PyBackedBytes>) -> PyResult<Option<usize>> {
        for (place, state) in states.iter().enumerate() {
            if RowState::read(&self.kind, state).map_err(to_py_err)?.has_failed() {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn post_next_reset(
        &self,
        shard: usize,
        row: usize,
        seed: Option<Bound<'_, PyAny>>,
        options: Option<&str>,
    ) -> PyResult<()> {
        let (how, options) = self.row_reset(seed, options)?;
        self.mailbox(shard)?.post_next_reset(row, how, options);
        Ok(())
    }

    fn next_reset_rows(&self) -> PyResult<Vec<usize>> {
        let mut rows = Vec::new();
        for shard in 0..self.rows.len() {
            rows.extend(self.mailbox(shard)?.next_reset_rows());
        }
        Ok(rows)
    }

    fn set_cache(&self, states: Vec<Bound<'_, PyBytes>>, key: u64) -> PyResult<()> {
        let states = states.iter().map(PyBytesMethods::as_bytes);
        let cache = ResetCache::new(&self.kind, key, states).map_err(to_py_err)?;
        *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(cache));
        Ok(())
    }

    fn take_answer<'py>(
        &self,
        py: Python<'py>,
        shard: usize,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let answer = self.mailbox(shard)?.take_answer();
        let answer = answer.ok_or_else(|| PyRuntimeError::new_err("nothing was asked"))?;
        let answer = answer.map_err(|error| error.of_shard(self.rows[shard].start));
        if let Err(Error::BadValues { rows, reason, .. }) = answer {
            let refused = rows.into_iter().map(|row| (row, reason.as_str()));
            return refused.map(|row| row.into_bound_py_any(py)).collect::<PyResult<_>>().map(Some);
        }
        let parts: PyResult<Vec<_>> = match answer.map_err(to_py_err)? {
            Answer::Values(values) => values.iter().map(|value| from_value(py, value)).collect(),
            Answer::Streams(streams) => {
                streams.into_iter().map(|stream| from_stream(py, stream)).collect()
            }
            Answer::States(states) => {
                states.iter().map(|state| Ok(PyBytes::new(py, state).into_any())).collect()
            }
            Answer::Frames(frames) => frames.iter().map(|frame| from_frame(py, frame)).collect(),
            Answer::Draws(draws) => {
                let draw = |draw: Draw| (draw.key, draw.count).into_bound_py_any(py);
                draws.into_iter().map(draw).collect()
            }
            Answer::Done | Answer::Begun(_) => return Ok(None),
        };
        parts.map(Some)
    }

    fn take_faults(&self, py: Python<'_>, shard: usize) -> PyResult<Vec<(usize, Py<PyAny>)>> {
        let faults = self.mailbox(shard)?.take_faults().into_iter();
        Ok(faults
            .map(|fault| (fault.row, to_py_err(fault.error).into_value(py).into_any()))
            .collect())
    }

    fn take_fault(
        &self,
        py: Python<'_>,
        shard: usize,
        row: usize,
    ) -> PyResult<Option<(usize, Py<PyAny>)>> {
        let fault = self.mailbox(shard)?.take_fault(row);
        Ok(fault.map(|fault| (fault.row, to_py_err(fault.error).into_value(py).into_any())))
    }

    fn take_rest<'py>(
        &self,
        py: Python<'py>,
        shard: usize,
        row: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.mailbox(shard)?.take_spilled(row).unwrap_or_default()))
    }
}

impl PyNativeEnvs {
    /// Moves the environments to the pool that steps them.
    pub(crate) fn take_shards(&self) -> PyResult<Vec<Box<dyn Shard>>> {
        let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *shards) {
            taken if !taken.is_empty() => Ok(taken),
            _ => Err(PyRuntimeError::new_err(
                "these environments are not made, or belong to a pool already",
            )),
        }
    }

    pub(crate) fn refuses_over(&self) -> bool {
        self.settings.autoreset.refuses_over(self.settings.on_done)
    }

    /// Refuses actions that are invalid for the environments.
    pub(crate) fn check_actions(
        &self,
        leaf: usize,
        tag: ActionTag,
        elements: &[u8],
    ) -> Result<(), Error> {
        let dtype = match tag {
            ActionTag::Array(dtype) => dtype,
            ActionTag::Integers => DType::I64,
        };
        Ok(self.kind.spaces().action.check_actions_of(leaf, dtype, elements)?)
    }

    /// Of which leaves of the action space the environments take floats of either dtype; leaves
    /// behind its end are none of them.
    pub(crate) fn action_floats(&self) -> &[bool] {
        self.kind.action_floats()
    }

    /// The lowest row that failed in a shard's task, or the named row that was sent, with the reason; the
    /// others are dropped.
    pub(crate) fn first_fault(&self, shard: usize, row: Option<usize>) -> Option<(usize, String)> {
        let mailbox = self.mailboxes().get(shard)?;
        let faults = match row {
            None => mailbox.take_faults(),
            Some(row) => mailbox.take_fault(row).into_iter().collect(),
        };
        let first = faults.into_iter().min_by_key(|fault| fault.row)?;
        Some((first.row, to_text(&first.error)))
    }

    /// Drops a shard's infos that begin with row `row` and did not fit into shared memory.
    pub(crate) fn drop_rest(&self, shard: usize, row: usize) {
        if let Some(mailbox) = self.mailboxes().get(shard) {
            mailbox.take_spilled(row);
        }
    }

    /// Rows of all shards.
    fn num_rows(&self) -> usize {
        self.rows.last().map_or(0, |last| last.end)
    }

    /// The mailboxes of the shards; none before they are made.
    fn mailboxes(&self) -> &[Arc<Mailbox>] {
        self.mailboxes.get().map_or(&[], Vec::as_slice)
    }

    fn mailbox(&self, shard: usize) -> PyResult<&Mailbox> {
        let mailbox = self.mailboxes().get(shard).map(Arc::as_ref);
        mailbox.ok_or_else(|| PyRuntimeError::new_err(format!("there is no shard {shard}")))
    }
}
