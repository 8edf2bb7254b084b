//! Small conversions: the division of rows among workers, what this process may use, autoreset modes,
//! and rules of episodes.

use std::num::NonZero;

use cartwheel_core::schedule;
use cartwheel_engine::autoreset::{AutoresetMode, OnDone, Rules};
use cartwheel_engine::memory::MemoryLimit;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[pyfunction]
pub(crate) fn shards(num_envs: usize, num_workers: usize) -> Vec<(usize, usize)> {
    let shards = schedule::shards(num_envs, num_workers);
    shards.into_iter().map(|shard| (shard.start, shard.end)).collect()
}

#[pyfunction]
pub(crate) fn fine_shards(
    num_envs: usize,
    num_workers: usize,
    block: usize,
) -> Vec<(usize, usize)> {
    let shards = schedule::fine_shards(num_envs, num_workers, block);
    shards.into_iter().map(|shard| (shard.start, shard.end)).collect()
}

#[pyfunction]
pub(crate) fn usable_cpus() -> PyResult<usize> {
    // Attached: no code of Python changes the environment now.
    schedule::read_most_cpus().map_err(|text| {
        let wanted = "CARTWHEEL_CPUS must be a number of processors";
        PyValueError::new_err(format!("{wanted}, got '{text}'"))
    })?;
    Ok(schedule::usable_cpus())
}

#[pyfunction]
pub(crate) fn memory_left() -> Option<u64> {
    MemoryLimit::now().map(|memory_limit| memory_limit.bytes)
}

/// The mode with this name, the value of Gymnasium's enum member.
pub(crate) fn to_autoreset_mode(value: &str) -> PyResult<AutoresetMode> {
    Ok(match value {
        "NextStep" => AutoresetMode::NextStep,
        "SameStep" => AutoresetMode::SameStep,
        "Disabled" => AutoresetMode::Disabled,
        other => {
            return Err(PyValueError::new_err(format!("{other:?} is not an autoreset mode")));
        }
    })
}

/// The effect of stepping an over row, as the keyword `freeze` says.
pub(crate) fn to_on_done(freeze: bool) -> OnDone {
    if freeze { OnDone::Freeze } else { OnDone::Raise }
}

/// The dictionary `rules` of `Shard` and `NativeEnvs`, documented in the stub.
#[derive(Debug, Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenRules {
    max_episode_steps: Option<NonZero<u32>>,
    ignore_terminations: bool,
    action_repeat: NonZero<u32>,
    staggered_reset: bool,
}

/// The rules that were given; without any, those of an environment that has none.
pub(crate) fn to_rules(given: Option<GivenRules>) -> Rules {
    let Some(given) = given else { return Rules::default() };
    let GivenRules { max_episode_steps, ignore_terminations, action_repeat, staggered_reset } =
        given;
    Rules { max_episode_steps, ignore_terminations, action_repeat, staggered_reset }
}
