//! Episodes that have ended, as arrays by name.

use cartwheel_kernels::wrappers::{Finished, Flags};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::state::{entries, entry, flags, put, put_flags};

/// Names of the flags.
pub(super) const FLAGS: [&str; 4] = ["success_once", "success_at_end", "fail_once", "fail_at_end"];

/// A column for each value of episodes that ended one after the other, the last of them just before the
/// episode with the number `next_id`.
pub(super) fn columns<'py>(
    py: Python<'py>,
    episodes: &[Finished],
    next_id: i64,
) -> PyResult<Bound<'py, PyDict>> {
    fn each<T>(episodes: &[Finished], value: impl Fn(&Finished) -> T) -> Vec<T> {
        episodes.iter().map(value).collect()
    }
    let into = PyDict::new(py);
    let put_flag =
        |name, number| put_flags(&into, name, &each(episodes, |episode| episode.flags.get(number)));
    put(&into, "return", &each(episodes, |episode| episode.total))?;
    put(&into, "episode_len", &each(episodes, |episode| episode.length))?;
    put(&into, "reward", &each(episodes, Finished::reward))?;
    for (number, name) in FLAGS.into_iter().enumerate() {
        put_flag(name, number)?;
    }
    put(&into, "env_index", &each(episodes, |episode| i64::from(episode.env_index)))?;
    let first_id = next_id - i64::try_from(episodes.len())?;
    put(&into, "episode_id", &(first_id..next_id).collect::<Vec<_>>())?;
    put(&into, "seed", &each(episodes, |episode| episode.seed))?;
    put_flag("terminated", Flags::REPORTS)?;
    put_flag("truncated", Flags::REPORTS + 1)?;
    Ok(into)
}

/// Reads what [`columns`] wrote, without the numbers of the episodes.
pub(super) fn episodes(columns: &Bound<'_, PyDict>) -> PyResult<Vec<Finished>> {
    let totals = entries::<f64>(columns, "return")?;
    let count = totals.len();
    let lengths = entry::<i64>(columns, "episode_len", count)?;
    let mut reports = Vec::with_capacity(FLAGS.len() + 2);
    for name in FLAGS.into_iter().chain(["terminated", "truncated"]) {
        reports.push(flags(columns, name, count)?);
    }
    let env_indices = entry::<i64>(columns, "env_index", count)?;
    let env_indices = env_indices.into_iter().map(u32::try_from).collect::<Result<Vec<_>, _>>();
    let env_indices =
        env_indices.map_err(|_| PyValueError::new_err("`env_index` must have numbers of rows"))?;
    let seeds = entry::<i64>(columns, "seed", count)?;
    let episode = |at: usize| Finished {
        total: totals[at],
        length: lengths[at],
        seed: seeds[at],
        env_index: env_indices[at],
        flags: Flags::new(std::array::from_fn(|number| reports[number][at] != 0)),
    };
    Ok((0..count).map(episode).collect())
}
