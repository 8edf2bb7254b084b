//! Plain loops over native environments, for benchmarks.

use std::time::Duration;

use cartwheel_engine::plugin::{EnvKind, find};
use cartwheel_envs::PlainLoops;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::to_py_err;

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
    let table = find(env_id).map_err(to_py_err)?;
    let kind = EnvKind::new(&table, options).map_err(to_py_err)?; // names what it refuses
    let loops = PlainLoops {
        rows: num_envs,
        threads,
        duration,
        max_episode_steps: table.max_episode_steps(),
        blocks,
    };
    py.detach(|| cartwheel_envs::plain_loop(table.id(), kind.options(), &loops)).map_err(to_py_err)
}
