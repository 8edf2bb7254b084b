//! A worker's side: Python environments, driven row by row, and the loop around them.

mod observation;
mod rows;
pub(crate) mod serve;
pub(crate) mod shard;
