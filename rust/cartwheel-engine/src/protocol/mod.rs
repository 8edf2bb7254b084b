//! How pool and workers communicate in shared memory.
//!
//! | noun | what it is |
//! |---|---|
//! | [`Memory`] | all memory of a pool: control words, actions, infos, slabs |
//! | `Control` | the control words: a line for the pool, one for each worker |
//! | `RowQueue`, [`QueuedRows`] | rows that were sent and wait for their worker |
//! | `Delivery` | how a worker delivers them, step by step |
//! | `OpenBatches`, `Places` | the batches in which they arrive, and the tickets for their places |
//! | `Receipts` | which rows a batch has |
//! | `Owner` | who has a place of these batches, which the pool reads when a worker process died |
//! | [`PoolToken`], [`WorkerToken`] | the rights to make the pool of a memory, and to serve its workers |
//! | [`Tally`] | the workers' counters |

mod arrivals;
mod control;
#[cfg(all(loom, test))]
mod deaths;
mod delivery;
#[cfg(all(loom, test))]
pub(crate) mod interleavings;
mod memory;
mod owners;
mod queue;
mod receipts;
mod tally;
mod tokens;

pub(crate) use arrivals::Places;
pub(crate) use control::Control;
pub(crate) use delivery::{Delivery, Filling};
pub use memory::Memory;
pub use queue::QueuedRows;
pub(crate) use receipts::Receipts;
pub use tally::{BUCKETS, Tally};
pub use tokens::{PoolToken, Tokens, WorkerToken};
