//! Communication of pool and workers in shared memory.
//!
//! | noun | what it is |
//! |---|---|
//! | [`Memory`] | all memory of a pool: control words, actions, infos, slabs |
//! | `Control` | the control words: a line for the pool, one for each worker |
//! | `RowQueue`, [`QueuedRows`] | rows that were sent and wait for their worker |
//! | `Delivery` | how a worker delivers them, step by step |
//! | `BatchRing`, `Places` | the batches in which they arrive, and the tickets for their places |
//! | `RowIds` | which rows a batch has |
//! | `PlaceState` | who has a place of these batches, which the pool reads when a worker process died |
//! | [`PoolToken`], [`WorkerToken`] | the rights to make the pool of a memory, and to serve its workers |
//! | [`Counters`] | the workers' counters |

mod batch_ring;
mod control;
mod counters;
#[cfg(all(loom, test))]
mod deaths;
mod delivery;
#[cfg(all(loom, test))]
pub(crate) mod interleavings;
mod memory;
mod place_state;
mod queue;
mod row_ids;
mod tokens;

pub(crate) use batch_ring::Places;
pub(crate) use control::Control;
pub(crate) use counters::nanoseconds;
pub use counters::{BUCKETS, Counters, RowStats};
pub(crate) use delivery::{Delivery, Filling};
pub use memory::Memory;
pub use queue::QueuedRows;
pub(crate) use row_ids::RowIds;
pub use tokens::{PoolToken, Tokens, WorkerToken};
