//! Facts about native environments that Python reads without making one.

use std::num::NonZero;
use std::sync::Arc;

use cartwheel_engine::plugin::{BUILT_IN, EnvTable, ListedOption, all, find};
use pyo3::prelude::*;

use crate::error::to_py_err;

fn table(env_id: &str) -> PyResult<Arc<EnvTable>> {
    find(env_id).map_err(to_py_err)
}

#[pyfunction]
pub(crate) fn native_envs() -> Vec<(String, Option<u32>, Option<f64>, String)> {
    let entry = |table: Arc<EnvTable>| {
        let limit = table.max_episode_steps().map(NonZero::get);
        let defaults = table.default_options().to_owned();
        (table.id().to_owned(), limit, table.reward_threshold(), defaults)
    };
    // The environment of `cartwheel.mujoco` is not: it is made of a model, not by its id.
    let is_listed =
        |table: &Arc<EnvTable>| table.source() != BUILT_IN || !table.id().starts_with('_');
    all().into_iter().filter(is_listed).map(entry).collect()
}

#[pyfunction]
pub(crate) fn env_keywords(env_id: &str) -> PyResult<Option<Vec<String>>> {
    Ok(table(env_id)?.options().map(names))
}

#[pyfunction]
pub(crate) fn reset_option_names(env_id: &str) -> PyResult<Option<Vec<String>>> {
    Ok(table(env_id)?.reset_options().map(names))
}

fn names(options: Vec<ListedOption>) -> Vec<String> {
    options.into_iter().map(|option| option.name).collect()
}

/// The name of an option, its default as JSON, and its text.
type DescribedOption = (String, Option<String>, String);

#[pyfunction]
pub(crate) fn described_options(
    env_id: &str,
    of_reset: bool,
) -> PyResult<Option<Vec<DescribedOption>>> {
    let table = table(env_id)?;
    let options = if of_reset { table.reset_options() } else { table.options() };
    let entry = |ListedOption { name, default, text }| (name, default, text);
    Ok(options.map(|options| options.into_iter().map(entry).collect()))
}

#[pyfunction]
pub(crate) fn block_rows(env_id: &str) -> PyResult<usize> {
    Ok(table(env_id)?.block())
}
