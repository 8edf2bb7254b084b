//! Native environments for Python: made here, stepped by the pool, with mailboxes for other calls.

pub(crate) mod cache;
pub(crate) mod catalogue;
mod frame;
pub(crate) mod mujoco;
pub(crate) mod plain_loop;
pub(crate) mod plugin;
mod space;
pub(crate) mod stream;
mod value;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cartwheel_engine::Error;
use cartwheel_engine::autoreset::{OnDone, Rules};
use cartwheel_engine::native::{
    Answer, Draw, ExternalRewards, Mailbox, NativeShard, Request, ResetCache, RowOptions, RowReset,
    RowState, Seed, ShardSettings, TerminalState,
};
use cartwheel_engine::plugin::{EnvKind, find};
use cartwheel_engine::space::{ActionTag, DType};
use cartwheel_engine::worker::Shard;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyBytesMethods};

use crate::convert::GivenRules;
use crate::convert::to_autoreset_mode;
use crate::error::to_py_err;
use crate::native::frame::from_frame;
use crate::native::space::describe;
use crate::native::stream::{from_stream, to_seed, to_stream};
use crate::native::value::{from_value, to_value};

/// The variable that makes the host check what plugins write.
const CHECK: &str = "CARTWHEEL_CHECK_PLUGINS";

/// Documented in the stub.
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
    /// States that resets load, see `post_cache`.
    cache: Mutex<Option<Arc<ResetCache>>>,
}

#[pymethods]
impl PyNativeEnvs {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords, each documented in the stub")]
    #[pyo3(signature = (
        env_id, options, shards, *, autoreset_mode, freeze, rules = None, replacements = 0,
        dense_finals = false, external_rewards = false
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
    ) -> PyResult<Self> {
        let kind = find(env_id).and_then(|table| EnvKind::new(&table, options));
        let kind = kind.map_err(to_py_err)?;
        let settings = ShardSettings {
            autoreset: to_autoreset_mode(autoreset_mode)?,
            on_done: if freeze { OnDone::Freeze } else { OnDone::Raise },
            rules: rules.map_or_else(Rules::default, Rules::from),
            replacements,
            dense_finals,
            is_checked: std::env::var_os(CHECK).is_some_and(|value| value == "1"),
            has_external_rewards: external_rewards,
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

    /// Makes the environments, shard by shard; a signal handler that raises ends it.
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

    /// The two single spaces, as nested tuples.
    fn spaces<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let spaces = self.kind.spaces();
        Ok((describe(py, &spaces.observation)?, describe(py, &spaces.action)?))
    }

    /// The names of the parameters.
    fn parameters(&self) -> Vec<String> {
        self.kind.parameters().to_vec()
    }

    /// The render modes.
    fn render_modes(&self) -> Vec<String> {
        self.kind.render_modes().to_vec()
    }

    /// Raises unless these options, a JSON object, are valid for a reset.
    fn check_reset_options(&self, options: &str) -> PyResult<()> {
        self.kind.reset_options(options).map(drop).map_err(to_py_err)
    }

    /// Raises unless this is the state of a row of such an environment.
    fn check_state(&self, state: &[u8]) -> PyResult<()> {
        RowState::read(&self.kind, state).map(drop).map_err(to_py_err)
    }

    /// Leaves the state with one shard from which a row continues in a reset that is going to be
    /// sent.
    fn post_row_state(&self, shard: usize, row: usize, state: &[u8]) -> PyResult<()> {
        self.mailbox(shard)?.post_row_reset(row, self.restored(state)?, None);
        Ok(())
    }

    /// Leaves the details of the next reset with all shards. Rows with equal options share them.
    fn post_reset(
        &self,
        mask: Option<&[u8]>,
        seeds: Option<Vec<Option<Bound<'_, PyAny>>>>,
        options: Option<GivenOptions>,
    ) -> PyResult<()> {
        let all = self.num_rows();
        let options = options.map_or(Ok(RowOptions::None), |given| self.parsed(&given))?;
        let lengths = [
            mask.map(<[u8]>::len),
            seeds.as_ref().map(Vec::len),
            if let RowOptions::OfEach(each) = &options { Some(each.len()) } else { None },
        ];
        if let Some(got) = lengths.into_iter().flatten().find(|length| *length != all) {
            return Err(PyValueError::new_err(format!("{got} entries for {all} rows")));
        }
        let how = |row: usize| match seeds.as_ref().and_then(|seeds| seeds[row].as_ref()) {
            _ if mask.is_some_and(|mask| mask[row] == 0) => Ok(RowReset::Leave),
            None => Ok(RowReset::Continue),
            Some(seed) => seeded(seed),
        };
        let each = self.rows.iter().map(|rows| rows.clone().map(how).collect());
        let each = each.collect::<PyResult<Vec<Vec<RowReset>>>>()?;
        for ((mailbox, rows), how) in self.mailboxes().iter().zip(&self.rows).zip(each) {
            let options = match &options {
                RowOptions::None => RowOptions::None,
                RowOptions::OfAll(options) => RowOptions::OfAll(options.clone()),
                RowOptions::OfEach(each) => RowOptions::OfEach(each[rows.clone()].to_vec()),
            };
            mailbox.post_reset(how, options);
        }
        Ok(())
    }

    /// Leaves the details of the reset of one row that is going to be sent, or of its next automatic
    /// reset.
    #[pyo3(signature = (shard, row, seed, options, *, automatic = false))]
    fn post_row_reset(
        &self,
        shard: usize,
        row: usize,
        seed: Option<Bound<'_, PyAny>>,
        options: Option<&str>,
        automatic: bool,
    ) -> PyResult<()> {
        let options = options.map(|options| self.kind.reset_options(options));
        let options = options.transpose().map_err(to_py_err)?;
        let how = seed.map_or(Ok(RowReset::Continue), |seed| seeded(&seed))?;
        let post = if automatic { Mailbox::post_next_reset } else { Mailbox::post_row_reset };
        post(self.mailbox(shard)?, row, how, options);
        Ok(())
    }

    /// Leaves a request with one shard to reset some of its rows with seeds, for states to cache.
    fn post_sample(
        &self,
        shard: usize,
        rows: Vec<usize>,
        seeds: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let first = self.rows[shard].start;
        let seeds =
            rows.into_iter().zip(seeds).map(|(row, seed)| Ok((row - first, to_seed(&seed)?)));
        let seeds = seeds.collect::<PyResult<_>>()?;
        self.mailbox(shard)?.post_request(Request::Sample(seeds));
        Ok(())
    }

    /// Keeps the states that resets load once `post_cache` has told the shards.
    fn set_cache(&self, states: Vec<Bound<'_, PyBytes>>, key: u64) -> PyResult<()> {
        let states = states.iter().map(PyBytesMethods::as_bytes);
        let cache = ResetCache::new(&self.kind, key, states).map_err(to_py_err)?;
        *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(cache));
        Ok(())
    }

    /// Leaves a request with one shard to load states in its resets, with a draw for each row.
    fn post_cache(&self, shard: usize, draws: Vec<(u64, u64)>) -> PyResult<()> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let cache = cache.ok_or_else(|| PyRuntimeError::new_err("there is no cache"))?;
        let draws = draws.into_iter().map(|(key, count)| Draw { key, count }).collect();
        self.mailbox(shard)?.post_request(Request::Cache(cache, draws));
        Ok(())
    }

    /// Leaves a request with one shard for the draws of its rows.
    fn post_draws(&self, shard: usize) -> PyResult<()> {
        self.mailbox(shard)?.post_request(Request::Draws);
        Ok(())
    }

    /// Leaves a request with one shard to read a parameter of some of its rows, or to set it to one
    /// value for each of them.
    fn post_request(
        &self,
        shard: usize,
        name: String,
        rows: Vec<usize>,
        values: Option<Vec<Bound<'_, PyAny>>>,
    ) -> PyResult<()> {
        let rows = self.own_rows(shard, rows);
        let request = match values {
            None => Request::Get(name, rows),
            Some(values) => {
                let values = values.iter().map(|value| to_value(&name, value));
                let values = rows.into_iter().zip(values).map(|(row, value)| Ok((row, value?)));
                let values = values.collect::<PyResult<_>>()?;
                Request::Set(name, values)
            }
        };
        self.mailbox(shard)?.post_request(request);
        Ok(())
    }

    /// Leaves a request with one shard for the states of some of its rows.
    fn post_save(&self, shard: usize, rows: Vec<usize>) -> PyResult<()> {
        let rows = self.own_rows(shard, rows);
        self.mailbox(shard)?.post_request(Request::Save(rows));
        Ok(())
    }

    /// Leaves a request with one shard to draw some of its rows, in the render mode of this number.
    fn post_render(&self, shard: usize, rows: Vec<usize>, mode: usize) -> PyResult<()> {
        let rows = self.own_rows(shard, rows);
        self.mailbox(shard)?.post_request(Request::Render { rows, mode });
        Ok(())
    }

    /// Leaves a request with one shard to keep the terminal states of some of its rows from now on:
    /// drawings in the render mode of this number, or parameters.
    fn post_keep(&self, shard: usize, rows: Vec<usize>, mode: Option<usize>) -> PyResult<()> {
        let what = mode.map_or(TerminalState::Parameters, TerminalState::Drawing);
        let request = Request::Keep(self.own_rows(shard, rows), what);
        self.mailbox(shard)?.post_request(request);
        Ok(())
    }

    /// Leaves a request with one shard to read the random streams, or to set one for each row.
    fn post_streams(&self, shard: usize, streams: Option<Vec<Bound<'_, PyAny>>>) -> PyResult<()> {
        let request = match streams {
            None => Request::Streams,
            Some(streams) => {
                Request::SetStreams(streams.iter().map(to_stream).collect::<PyResult<_>>()?)
            }
        };
        self.mailbox(shard)?.post_request(request);
        Ok(())
    }

    /// Takes one shard's answer: one value, stream, state or drawing for each row, or `None` when
    /// something was set. When values were refused: the rows, counted from the first row of the
    /// pool, and the reason.
    fn take_answer<'py>(
        &self,
        py: Python<'py>,
        shard: usize,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let answer = self.mailbox(shard)?.take_answer();
        let answer = answer.ok_or_else(|| PyRuntimeError::new_err("nothing was asked"))?;
        if let Err(Error::BadValues { rows, reason }) = answer {
            let first = self.rows[shard].start;
            let refused = rows.into_iter().map(|row| (first + row, reason.as_str()));
            return refused.map(|row| row.into_bound_py_any(py)).collect::<PyResult<_>>().map(Some);
        }
        let answer = answer.map_err(|error| match error {
            Error::Failed { row, message } => {
                to_py_err(Error::Failed { row: self.rows[shard].start + row, message })
            }
            other => to_py_err(other),
        });
        match answer? {
            Answer::Values(values) => values
                .into_iter()
                .map(|value| from_value(py, &value))
                .collect::<PyResult<_>>()
                .map(Some),
            Answer::Streams(streams) => streams
                .into_iter()
                .map(|stream| from_stream(py, stream))
                .collect::<PyResult<_>>()
                .map(Some),
            Answer::States(states) => {
                Ok(Some(states.iter().map(|state| PyBytes::new(py, state).into_any()).collect()))
            }
            Answer::Frames(frames) => {
                frames.iter().map(|frame| from_frame(py, frame)).collect::<PyResult<_>>().map(Some)
            }
            Answer::Draws(draws) => {
                let draw = |draw: Draw| (draw.key, draw.count).into_bound_py_any(py);
                draws.into_iter().map(draw).collect::<PyResult<_>>().map(Some)
            }
            Answer::Done => Ok(None),
        }
    }

    /// Takes one shard's faults: rows and exceptions.
    fn take_faults(&self, py: Python<'_>, shard: usize) -> PyResult<Vec<(usize, Py<PyAny>)>> {
        let faults = self.mailbox(shard)?.take_faults().into_iter();
        Ok(faults
            .map(|fault| (fault.row, to_py_err(fault.error).into_value(py).into_any()))
            .collect())
    }

    /// Takes the fault of one row that was sent and received.
    fn take_fault(
        &self,
        py: Python<'_>,
        shard: usize,
        row: usize,
    ) -> PyResult<Option<(usize, Py<PyAny>)>> {
        let fault = self.mailbox(shard)?.take_fault(row);
        Ok(fault.map(|fault| (fault.row, to_py_err(fault.error).into_value(py).into_any())))
    }

    /// Takes one shard's infos that begin with row `row` and did not fit into shared memory.
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

    /// Whether over rows are refused.
    pub(crate) fn refuses_over(&self) -> bool {
        use cartwheel_engine::autoreset::AutoresetMode;

        self.settings.autoreset == AutoresetMode::Disabled && self.settings.on_done == OnDone::Raise
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

    /// Leaves with each shard what became of its rows. Shards have the rows `shards`.
    ///
    /// # Errors
    ///
    /// `ValueError` unless there is one entry for each row.
    pub(crate) fn post_rewards(&self, all: &ExternalRewards) -> PyResult<()> {
        let ExternalRewards { rewards, terminations, truncations } = all;
        let rows = self.num_rows();
        for len in [rewards.len(), terminations.len(), truncations.len()] {
            if len != rows {
                return Err(PyValueError::new_err(format!("{len} outcomes for {rows} rows")));
            }
        }
        for (mailbox, rows) in self.mailboxes().iter().zip(&self.rows) {
            mailbox.post_rewards(ExternalRewards {
                rewards: rewards[rows.clone()].to_vec(),
                terminations: terminations[rows.clone()].to_vec(),
                truncations: truncations[rows.clone()].to_vec(),
            });
        }
        Ok(())
    }

    /// Of which leaves of the action space the environments take floats of either dtype; leaves
    /// behind its end are none of them.
    pub(crate) fn action_floats(&self) -> &[bool] {
        self.kind.action_floats()
    }

    /// Rows of all shards.
    fn num_rows(&self) -> usize {
        self.rows.last().map_or(0, |last| last.end)
    }

    /// Rows of a shard, counted from its first row.
    fn own_rows(&self, shard: usize, rows: Vec<usize>) -> Vec<usize> {
        let first = self.rows[shard].start;
        rows.into_iter().map(|row| row - first).collect()
    }

    /// Options of a reset, each text parsed once.
    fn parsed(&self, options: &GivenOptions) -> PyResult<RowOptions> {
        let parse = |text: &str| self.kind.reset_options(text).map_err(to_py_err);
        let texts = match options {
            GivenOptions::OfAll(text) => return Ok(RowOptions::OfAll(parse(text)?)),
            GivenOptions::OfEach(texts) => texts,
        };
        let mut parsed = BTreeMap::new();
        for text in texts.iter().flatten() {
            if let Entry::Vacant(entry) = parsed.entry(&**text) {
                entry.insert(parse(text)?);
            }
        }
        let of = |text: &PyBackedStr| parsed[&**text].clone();
        Ok(RowOptions::OfEach(texts.iter().map(|text| text.as_ref().map(of)).collect()))
    }

    fn restored(&self, state: &[u8]) -> PyResult<RowReset> {
        let state = RowState::read(&self.kind, state).map_err(to_py_err)?;
        Ok(RowReset::Restore(Box::new(state)))
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

/// Options of a reset, JSON objects.
#[derive(Debug, FromPyObject)]
enum GivenOptions {
    OfAll(PyBackedStr),
    OfEach(Vec<Option<PyBackedStr>>),
}

/// A reset with a seed, a Python integer of any length that must not be negative.
fn seeded(seed: &Bound<'_, PyAny>) -> PyResult<RowReset> {
    match to_seed(seed)? {
        Seed::Number(seed) => Ok(RowReset::Seed(seed)),
        Seed::Words(words) => Ok(RowReset::WideSeed(words)),
        Seed::Unknown => Err(PyValueError::new_err(format!("seed {seed} is negative"))),
    }
}
