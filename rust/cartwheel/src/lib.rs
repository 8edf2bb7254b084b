//! Steps many environments at once:
//! `actions[rows] → pool → workers → autoreset → environment → slab → lease`.
//!
//! A [`pool::Pool`] publishes a task; every worker takes it, drives its rows through the one
//! [`autoreset`] machine, writes them straight into a slab of shared [`memory`] and acknowledges;
//! the caller gets a [`memory::Lease`] on the slab, which nobody writes again before it is
//! dropped. Workers are the calling thread, threads or processes, and differ in nothing but where
//! they run. What a rollout of such steps was worth is computed by [`returns`].
//!
//! This crate knows nothing of Python; the bindings are `cartwheel-python`.

pub mod autoreset;
pub mod env;
pub mod error;
mod failpoint;
pub mod info;
pub mod memory;
pub mod native;
pub mod pool;
pub mod returns;
pub mod rng;
pub mod schedule;
pub mod space;
mod sync;
pub mod wake;
pub mod worker;

pub use error::{Call, Error};
