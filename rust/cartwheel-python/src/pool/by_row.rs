//! Batches with a dictionary of infos for each row, as Stable-Baselines3 wants them.
//!
//! The dictionaries are made from the streams of the workers, without the columns of
//! [`infos`](crate::pool::infos). Most rows of most steps have nothing to say but that their episode
//! goes on; only rows whose episode ended have more: the observation that ended it, the infos of the
//! last step, and those of the reset after it.

use std::time::Instant;

use cartwheel_core::Error as InfoError;
use cartwheel_engine::info::{InfoReader, ObjectAt, RecordKind};
use cartwheel_engine::memory::Lease;
use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::{At, FAILED, Places, RESET, Running, StepResults, TRANSITION};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString};

use crate::array::Block;
use crate::error::{to_py_err, unreadable};
use crate::known::intern;
use crate::pool::infos::{Infos, OpaqueAt, info_of};

/// The infos of which one says that the environment of a row was replaced.
const FAILURES: [&str; 3] = ["env_error", "worker_restarted", "infos_lost"];

/// Makes the dictionaries of successive steps; keeps its buffers.
#[derive(Debug)]
pub(super) struct ByRow {
    terminations: Vec<u8>,
    truncations: Vec<u8>,
    /// The kind of each row: stepped or failed.
    kinds: Vec<u8>,
    /// The episodes that infos report, on request.
    pub(super) episodes: Option<RecordedEpisodes>,
}

/// The dictionaries of a batch.
struct Dicts<'py> {
    /// For each row the infos of its step or reset; `None` if there are none.
    rows: Vec<Option<Bound<'py, PyDict>>>,
    /// The rows whose episode ended.
    ended: Vec<Ended<'py>>,
}

/// The end of an episode, after its last step.
struct Ended<'py> {
    row: usize,
    /// The observation of that step.
    observation: Bound<'py, PyAny>,
    reset: Bound<'py, PyDict>,
}

impl<'py> Dicts<'py> {
    fn add(&mut self, row: usize, info: Bound<'py, PyDict>) -> PyResult<()> {
        if let Some(infos) = &self.rows[row] {
            return infos.update(info.as_mapping());
        }
        self.rows[row] = Some(info);
        Ok(())
    }

    /// Adds a record of a row whose episode ended: first those of failures, then the one that has
    /// the observation and the infos of the last step, then those of the reset.
    fn add_of_ended(&mut self, row: usize, info: Bound<'py, PyDict>) -> PyResult<()> {
        let py = info.py();
        if let Some(ended) = self.ended.last().filter(|last| last.row == row) {
            return ended.reset.update(info.as_mapping());
        }
        let Some(observation) = info.get_item(intern!(py, "final_obs"))? else {
            return self.add(row, info);
        };
        if let Some(last) = info.get_item(intern!(py, "final_info"))? {
            self.add(row, last.cast_into()?)?;
        }
        self.ended.push(Ended { row, observation, reset: PyDict::new(py) });
        Ok(())
    }
}

impl ByRow {
    pub(super) fn new(rows: usize) -> Self {
        let [terminations, truncations, kinds] = [(); 3].map(|()| vec![0; rows]);
        Self { terminations, truncations, kinds, episodes: None }
    }

    /// Whether episodes are over, an array in `block`, and the infos of a step; those of resets replace
    /// entries of `reset_infos`.
    pub(super) fn step<'py>(
        &mut self,
        py: Python<'py>,
        infos: &mut Infos,
        lease: &Lease,
        reset_infos: &Bound<'py, PyList>,
        block: &Block,
    ) -> PyResult<[Bound<'py, PyAny>; 2]> {
        let Self { terminations, truncations, kinds, episodes } = self;
        lease.read(lease.layout().terminations_offset(), terminations);
        lease.read(lease.layout().truncations_offset(), truncations);
        let is_over = |row: usize| terminations[row] | truncations[row] != 0;
        let found = infos.by_row(py, is_over, |_, error| Err(error))?;
        let key = intern!(py, "TimeLimit.truncated");
        let mut dicts = Vec::with_capacity(found.rows.len());
        for (row, dict) in found.rows.into_iter().enumerate() {
            let dict = dict.unwrap_or_else(|| PyDict::new(py));
            let truncated = truncations[row] != 0 && terminations[row] == 0;
            dict.set_item(key, PyBool::new(py, truncated))?;
            dicts.push(dict);
        }
        for Ended { row, observation, reset } in found.ended {
            dicts[row].set_item(intern!(py, "terminal_observation"), observation)?;
            reset_infos.set_item(row, reset)?;
        }
        if let Some(episodes) = episodes {
            kinds.fill(TRANSITION);
            for row in (0..dicts.len()).filter(|&row| is_over(row)) {
                if has_failed(&dicts[row])? {
                    kinds[row] = FAILED;
                }
            }
            episodes.step(lease, [kinds, terminations, truncations], &dicts)?;
        }
        let dones = block.filled(py, DType::Bool, dicts.len(), &[], |buffer| {
            for (row, done) in buffer.iter_mut().enumerate() {
                *done = u8::from(is_over(row));
            }
        })?;
        Ok([dones, PyList::new(py, dicts)?.into_any()])
    }

    pub(super) fn reset<'py>(
        &mut self,
        py: Python<'py>,
        infos: &mut Infos,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(episodes) = &mut self.episodes {
            episodes.begin();
        }
        Ok(PyList::new(py, infos.of_rows(py, |_, error| Err(error))?)?.into_any())
    }
}

impl Infos {
    /// A dictionary for each row of a batch whose streams were loaded, in the order of their places.
    /// `unread` gets the rows whose infos raise an exception when they are read.
    pub(super) fn of_rows<'py>(
        &mut self,
        py: Python<'py>,
        unread: impl FnMut(usize, PyErr) -> PyResult<()>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let found = self.by_row(py, |_| false, unread)?.rows.into_iter();
        Ok(found.map(|dict| dict.unwrap_or_else(|| PyDict::new(py))).collect())
    }

    /// The infos of a batch whose streams were loaded, by place; `is_over` says whether a step ended
    /// the episode of a place. `unread` as of [`Infos::of_rows`].
    fn by_row<'py>(
        &mut self,
        py: Python<'py>,
        is_over: impl Fn(usize) -> bool,
        mut unread: impl FnMut(usize, PyErr) -> PyResult<()>,
    ) -> PyResult<Dicts<'py>> {
        self.opaque.clear();
        let refused = if self.is_native { unreadable } else { to_py_err };
        let mut dicts = Dicts { rows: vec![None; self.rows], ended: Vec::new() };
        for stream in 0..self.num_streams {
            let mut at = 0;
            loop {
                let mut reader = InfoReader::new(&self.streams[stream], at);
                let Some(record) = reader.record().map_err(refused)? else { break };
                at = record.end;
                let row = record.row;
                let place = self.place_of(row).filter(|&place| place < self.rows);
                let place = place.ok_or_else(|| refused(InfoError::MalformedInfo { at }))?;
                if record.kind == RecordKind::Opaque {
                    let value = ObjectAt { row, place, stream, value_at: reader.at() };
                    self.opaque.push(OpaqueAt { part: record.leaf, at: value });
                    continue;
                }
                let info = info_of(py, record, &self.decoder(py, row).copying(), &mut reader);
                let info = match info {
                    Ok(info) => info.cast_into()?,
                    Err(error) => {
                        unread(row, error)?;
                        continue;
                    }
                };
                if is_over(place) {
                    dicts.add_of_ended(place, info)?;
                } else {
                    dicts.add(place, info)?;
                }
            }
        }
        Ok(dicts)
    }
}

/// Whether the environment of a row was replaced, which ended its episode. One may have infos of its
/// own with these names, see `cartwheel.vector.infos.failed_rows`.
fn has_failed(info: &Bound<'_, PyDict>) -> PyResult<bool> {
    for failure in FAILURES {
        let Some(told) = info.get_item(failure)? else { continue };
        if told.is_instance_of::<PyString>() || (failure != FAILURES[0] && told.is_truthy()?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Decimals of what is reported, as in the wrapper `Monitor` of Stable-Baselines3.
const DECIMALS: i32 = 6;

/// The episodes of a pool in the mode `SAME_STEP`; keeps its buffers.
#[derive(Debug)]
pub(super) struct RecordedEpisodes {
    running: Running,
    /// Time zero.
    made: Instant,
    bytes: Vec<u8>,
    rewards: Vec<f64>,
}

impl RecordedEpisodes {
    pub(super) fn new(rows: usize) -> Self {
        Self {
            running: Running::new(rows, true),
            made: Instant::now(),
            bytes: vec![0; rows * size_of::<f64>()],
            rewards: vec![0.0; rows],
        }
    }

    /// All rows were reset.
    pub(super) fn begin(&mut self) {
        let num_envs = self.rewards.len();
        self.running.begin(Places::new(None, &vec![RESET; num_envs], num_envs));
    }

    /// Adds a step, of which `columns` are the kinds of the rows, terminations and truncations.
    /// Episodes that it completed are added to the infos of their rows as `episode`: the return
    /// `r`, the length `l`, and the seconds `t` since these episodes were first counted.
    pub(super) fn step(
        &mut self,
        lease: &Lease,
        [kinds, terminations, truncations]: [&[u8]; 3],
        infos: &[Bound<'_, PyDict>],
    ) -> PyResult<()> {
        let Self { running, made, bytes, rewards } = self;
        lease.read(lease.layout().rewards_offset(), bytes);
        for (reward, bytes) in rewards.iter_mut().zip(bytes.as_chunks().0) {
            *reward = f64::from_ne_bytes(*bytes);
        }
        let places = Places::new(None, kinds, rewards.len());
        running.step(&StepResults { places, rewards, terminations, truncations });
        for &At { row, .. } in running.ended() {
            let info = &infos[row];
            let py = info.py();
            let report = PyDict::new(py);
            report.set_item(intern!(py, "r"), rounded(py, running.returns()[row])?)?;
            report.set_item(intern!(py, "l"), running.length(row))?;
            report.set_item(intern!(py, "t"), rounded(py, made.elapsed().as_secs_f64())?)?;
            info.set_item(intern!(py, "episode"), report)?;
        }
        Ok(())
    }
}

/// A number, rounded by Python, whose rule decides the last bits.
fn rounded(py: Python<'_>, number: f64) -> PyResult<Bound<'_, PyAny>> {
    PyFloat::new(py, number).call_method1(intern!(py, "__round__"), (DECIMALS,))
}
