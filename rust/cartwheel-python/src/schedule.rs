//! The division of rows among workers, for Python, and what this process may use.

use cartwheel_core::schedule;
use cartwheel_engine::memory::Headroom;
use pyo3::prelude::*;

/// First and last row, exclusive, of each worker; documented in the stub.
#[pyfunction]
pub(crate) fn shards(num_envs: usize, num_workers: usize) -> Vec<(usize, usize)> {
    let shards = schedule::shards(num_envs, num_workers);
    shards.into_iter().map(|shard| (shard.start, shard.end)).collect()
}

/// First and last row, exclusive, of each shard of native environments; documented in the stub.
#[pyfunction]
pub(crate) fn fine_shards(
    num_envs: usize,
    num_workers: usize,
    block: usize,
) -> Vec<(usize, usize)> {
    let shards = schedule::fine_shards(num_envs, num_workers, block);
    shards.into_iter().map(|shard| (shard.start, shard.end)).collect()
}

/// Processors that this process may use; documented in the stub.
#[pyfunction]
pub(crate) fn usable_cpus() -> usize {
    schedule::read_most_cpus(); // attached: no code of Python changes the environment now
    schedule::usable_cpus()
}

/// Bytes of memory that this process may still take; documented in the stub.
#[pyfunction]
pub(crate) fn memory_left() -> Option<u64> {
    Headroom::now().map(|headroom| headroom.bytes)
}
