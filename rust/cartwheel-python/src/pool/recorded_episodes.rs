//! Returns and lengths of episodes in the infos of the steps that end them.

use std::time::Instant;

use cartwheel_engine::memory::Lease;
use cartwheel_kernels::wrappers::{At, Places, RESET, Running, StepResults};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat};

use crate::known::intern;

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
            report.set_item(intern!(py, "l"), running.lengths()[row])?;
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
