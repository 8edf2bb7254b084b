//! A worker's side: Python environments, driven row by row, and the loop around them.

mod actions;
mod announced;
mod called;
mod observation;
mod retirement;
mod returned;
mod row_timer;
mod rows;
pub(crate) mod serve;
pub(crate) mod shard;
mod stable_abi;
