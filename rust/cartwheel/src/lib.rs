//! Steps many environments at once:
//! `actions[rows] → pool → workers → autoreset → environment → slab → lease`.
//!
//! A [`pool::Pool`] publishes a task; every worker takes it, drives its rows through the one
//! [`autoreset`] machine, writes them straight into a slab of shared [`memory`] and acknowledges;
//! the caller gets a [`memory::Lease`] on the slab, which nobody writes again before it is
//! dropped. Workers are the calling thread, threads or processes, and differ in nothing but where
//! they run. What a rollout of such steps was worth is computed by [`returns`].
//!
//! # Modules
//!
//! In this order, and each imports only those before it:
//!
//! | module | what it has |
//! |---|---|
//! | `failpoint`, [`schedule`] | faults for tests; which rows go together |
//! | `sync` | atomics that loom can take over |
//! | [`space`] | spaces as memory sees them: dtypes, leaves, layouts, tags of actions |
//! | [`Call`], [`Transition`], [`PhaseTag`], [`autoreset`] | the words for a step, and the machine that restarts rows |
//! | [`Error`] | everything that can go wrong in a pool |
//! | [`rng`], [`returns`] | NumPy's random numbers; return estimators: apart from everything else |
//! | [`mod@info`] | infos as a stream of bytes, and gathered in columns |
//! | [`wake`] | who sleeps and who wakes it; commands |
//! | [`memory`] | mappings, slabs and leases, actions, infos, rollouts |
//! | [`protocol`] | control words, queues, tickets and counts: the memory of a pool as a whole |
//! | [`worker`] | a worker's loop, and what it asks of its environments |
//! | [`pool`] | the caller's side |
//! | [`mod@env`] | what an author of a native environment writes |
//! | [`native`] | native environments as the shards of a pool |
//! | [`plain_loop`] | native environments with nothing around them, to measure what a pool adds |
//!
//! This crate knows nothing of Python; the bindings are `cartwheel-python`.

pub mod autoreset;
mod call;
pub mod env;
mod error;
mod failpoint;
pub mod info;
pub mod memory;
pub mod native;
pub mod plain_loop;
pub mod pool;
pub mod protocol;
pub mod returns;
pub mod rng;
pub mod schedule;
pub mod space;
mod sync;
mod transition;
pub mod wake;
pub mod worker;

pub use call::Call;
pub use error::{Error, Shortage};
pub use transition::{PhaseTag, Transition};
