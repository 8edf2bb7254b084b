//! The tests of the engine that need no loom, in one program: it is compiled and linked once.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod autoreset;
mod channel;
mod corrupt_workers;
mod failpoints;
mod infos;
mod layout;
mod memory_limit;
mod native_shard;
mod pool;
mod rollouts;
mod support;
mod thread_pools;
mod tokens;
mod waits;
mod worker_process;
