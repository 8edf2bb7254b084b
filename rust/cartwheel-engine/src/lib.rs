//! Steps many environments at once:
//! `actions[rows] → pool → workers → autoreset → environment → slab → lease`.
//!
//! A [`pool::Pool`] publishes a task. Every worker takes it, drives its rows through the
//! [`autoreset`] machine, writes them directly into a slab of shared [`memory`] and acknowledges.
//! The caller gets a [`memory::Lease`] on the slab, which is not written again before the lease is
//! dropped. Workers are the calling thread, threads or processes, and differ only in where they
//! run.
//!
//! # Modules
//!
//! In this order; each module imports only modules before it:
//!
//! | module | what it has |
//! |---|---|
//! | [`platform`] | the operating system |
//! | `failpoint` | faults for tests |
//! | `sync` | atomics that loom can take over |
//! | [`space`] | spaces as memory sees them: dtypes, leaves, layouts, tags of actions |
//! | [`Call`], [`Transition`], [`PhaseTag`], [`autoreset`] | the terms of a step, and the machine that restarts rows |
//! | [`Error`] | the errors of a pool |
//! | [`mod@info`] | infos as a stream of bytes, and gathered in columns |
//! | [`wake`] | when a worker or the pool sleeps, and what wakes it; commands |
//! | [`memory`] | mappings, slabs and leases, actions, infos, rollouts |
//! | [`protocol`] | control words, queues, tickets and counts: the memory of a pool as a whole |
//! | [`worker`] | a worker's loop, and the trait that its environments implement |
//! | [`pool`] | the caller's side |
//! | [`episodes`] | how many steps each episode has, counted from what a pool returns |
//! | [`plugin`] | environments of other libraries, behind tables of functions |
//! | [`native`] | these environments as the shards of a pool |
//!
//! This crate does not depend on Python; the bindings are `cartwheel-python`.

#[cfg(not(unix))]
compile_error!(
    "cartwheel-engine needs Linux or macOS: see its module `platform`. Environments alone build anywhere, \
     with `cartwheel = { default-features = false }`"
);

pub mod autoreset;
mod call;
pub mod episodes;
mod error;
mod failpoint;
pub mod info;
pub mod memory;
pub mod native;
pub mod platform;
pub mod plugin;
pub mod pool;
pub mod protocol;
pub mod space;
mod sync;
mod transition;
pub mod wake;
pub mod worker;

pub use call::{Call, FULL_RESET};
pub use cartwheel_core::{Transition, rng};
pub use error::{Error, Shortage, named_rows};
pub use transition::PhaseTag;
