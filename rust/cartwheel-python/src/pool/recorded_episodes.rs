//! Returns and lengths of episodes in the infos of the steps that end them.

use std::time::Instant;

use cartwheel_engine::memory::Lease;
use cartwheel_engine::wrappers::{Places, RESET, Timed, TimedEpisodes};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat};

/// Decimals of what is reported, as in the wrapper `Monitor` of Stable-Baselines3.
const DECIMALS: i32 = 6;

/// The episodes of a pool in the mode `SAME_STEP`; keeps its buffers.
#[derive(Debug)]
pub(super) struct RecordedEpisodes {
    episodes: TimedEpisodes,
    /// Time zero.
    made: Instant,
    bytes: Vec<u8>,
    rewards: Vec<f64>,
    ended: Vec<(usize, Timed)>,
}

impl RecordedEpisodes {
    pub(super) fn new(rows: usize) -> Self {
        Self {
            episodes: TimedEpisodes::new(rows, true, 0, 0.0),
            made: Instant::now(),
            bytes: vec![0; rows * size_of::<f64>()],
            rewards: vec![0.0; rows],
            ended: Vec::new(),
        }
    }

    /// All rows were reset.
    pub(super) fn begin(&mut self) {
        let kinds = vec![RESET; self.rewards.len()];
        self.episodes.begin(None, &kinds, 0.0);
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
        let Self { episodes, made, bytes, rewards, ended } = self;
        lease.read(lease.layout().rewards_offset(), bytes);
        for (reward, bytes) in rewards.iter_mut().zip(bytes.as_chunks().0) {
            *reward = f64::from_ne_bytes(*bytes);
        }
        let places = Places { rows: None, kinds, rewards, terminations, truncations };
        ended.clear();
        episodes.step(&places, 0.0, |row, episode| ended.push((row, episode)));
        for (row, episode) in &*ended {
            let info = &infos[*row];
            let py = info.py();
            let report = PyDict::new(py);
            report.set_item(intern!(py, "r"), rounded(py, episode.total)?)?;
            report.set_item(intern!(py, "l"), episode.length)?;
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
