//! Episodes that have ended, as arrays by name.

use cartwheel_kernels::wrappers::Finished;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::state::{entries, entry, flags, put, put_flags};

/// Names of the flags.
pub(super) const FLAGS: [&str; 4] = ["success_once", "success_at_end", "fail_once", "fail_at_end"];

/// A column for each value.
pub(super) fn columns<'py>(py: Python<'py>, episodes: &[Finished]) -> PyResult<Bound<'py, PyDict>> {
    fn each<T>(episodes: &[Finished], value: impl Fn(&Finished) -> T) -> Vec<T> {
        episodes.iter().map(value).collect()
    }
    let into = PyDict::new(py);
    put(&into, "return", &each(episodes, |episode| episode.total))?;
    put(&into, "episode_len", &each(episodes, |episode| episode.length))?;
    put(&into, "reward", &each(episodes, Finished::reward))?;
    for (at, name) in FLAGS.into_iter().enumerate() {
        put_flags(&into, name, &each(episodes, |episode| episode.flags[at].into()))?;
    }
    put(&into, "env_index", &each(episodes, |episode| episode.env_index))?;
    put(&into, "episode_id", &each(episodes, |episode| episode.episode_id))?;
    put(&into, "seed", &each(episodes, |episode| episode.seed))?;
    put_flags(&into, "terminated", &each(episodes, |episode| episode.terminated.into()))?;
    put_flags(&into, "truncated", &each(episodes, |episode| episode.truncated.into()))?;
    Ok(into)
}

/// Reads what [`columns`] wrote.
pub(super) fn episodes(columns: &Bound<'_, PyDict>) -> PyResult<Vec<Finished>> {
    let totals = entries::<f64>(columns, "return")?;
    let count = totals.len();
    let lengths = entry::<i64>(columns, "episode_len", count)?;
    let mut reports = Vec::with_capacity(FLAGS.len());
    for name in FLAGS {
        reports.push(flags(columns, name, count)?);
    }
    let env_indices = entry::<i64>(columns, "env_index", count)?;
    let ids = entry::<i64>(columns, "episode_id", count)?;
    let seeds = entry::<i64>(columns, "seed", count)?;
    let terminated = flags(columns, "terminated", count)?;
    let truncated = flags(columns, "truncated", count)?;
    let episode = |at: usize| Finished {
        total: totals[at],
        length: lengths[at],
        flags: std::array::from_fn(|report| reports[report][at] != 0),
        env_index: env_indices[at],
        episode_id: ids[at],
        seed: seeds[at],
        terminated: terminated[at] != 0,
        truncated: truncated[at] != 0,
    };
    Ok((0..count).map(episode).collect())
}
