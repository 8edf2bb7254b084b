//! The counters, as the arrays that `cartwheel.Stats` shows.

use std::time::Duration;

use cartwheel_engine::pool::{RowStats, ShardStats, Stats};
use cartwheel_engine::protocol::BUCKETS;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{Number, from_numbers};

/// The fields of `cartwheel.Stats` by name, except for those that Python already knows.
pub(crate) fn to_dict<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let Stats { rows, shards, .. } = stats;
    let fields = PyDict::new(py);
    let counts =
        |count: fn(&RowStats) -> u64| array(py, rows.iter().map(move |row| signed(count(row))));
    fields.set_item("steps", counts(|row| row.steps)?)?;
    fields.set_item("resets", counts(|row| row.resets)?)?;
    fields.set_item("replacements", counts(|row| row.replacements)?)?;
    let seconds = |time: fn(&RowStats) -> Duration| {
        array(py, rows.iter().map(move |row| time(row).as_secs_f64()))
    };
    fields.set_item("step_seconds", seconds(|row| row.stepping)?)?;
    fields.set_item("slowest_step", seconds(|row| row.slowest)?)?;

    let bounds = shards.iter().flat_map(|shard| [shard.rows.start as u64, shard.rows.end as u64]);
    let bounds: Vec<_> = bounds.map(signed).collect();
    fields.set_item("worker_rows", from_numbers(py, shards.len(), &[2], &bounds)?)?;
    let counts = shards.iter().flat_map(|shard| shard.step_times);
    let counts: Vec<_> = counts.map(signed).collect();
    fields.set_item("step_times", from_numbers(py, shards.len(), &[BUCKETS], &counts)?)?;
    let timed = shards.iter().map(|shard| shard.timed.as_secs_f64());
    fields.set_item("timed_seconds", array(py, timed)?)?;
    let working = shards.iter().map(|shard| shard.working.as_secs_f64());
    fields.set_item("working", array(py, working)?)?;
    let restarts = shards.iter().map(|shard: &ShardStats| signed(shard.restarts));
    fields.set_item("restarts", array(py, restarts)?)?;

    fields.set_item("elapsed", stats.elapsed.as_secs_f64())?;
    fields.set_item("waited", stats.waited.as_secs_f64())?;
    fields.set_item("batches", stats.batches)?;
    fields.set_item("observation_bytes", stats.observation_bytes)?;
    fields.set_item("copies", stats.copies)?;
    fields.set_item("batches_reserved", stats.slabs_reserved)?;
    fields.set_item("batches_kept", stats.slabs_leased)?;
    Ok(fields)
}

fn array<T: Number>(
    py: Python<'_>,
    numbers: impl Iterator<Item = T>,
) -> PyResult<Bound<'_, PyAny>> {
    let numbers: Vec<_> = numbers.collect();
    from_numbers(py, numbers.len(), &[], &numbers)
}

/// Counts are `int64` in Python, as usual in NumPy.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
