//! Plain loops over native environments, for benchmarks.

use std::time::Duration;

use cartwheel_engine::plain_loop::PlainLoops;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::to_py_err;

/// Documented in the stub.
#[pyfunction]
#[pyo3(signature = (env_id, num_envs, *, seconds, threads, options = "", blocks = true))]
pub(crate) fn plain_loop(
    py: Python<'_>,
    env_id: &str,
    num_envs: usize,
    seconds: f64,
    threads: usize,
    options: &str,
    blocks: bool,
) -> PyResult<f64> {
    let duration = Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("seconds is {seconds}: {error}")))?;
    let entry = cartwheel_envs::find(env_id).map_err(to_py_err)?;
    let loops = PlainLoops {
        rows: num_envs,
        threads,
        duration,
        max_episode_steps: entry.max_episode_steps,
        blocks,
    };
    py.detach(|| entry.run_plain_loops(options, &loops)).map_err(to_py_err)
}
