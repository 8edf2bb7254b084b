//! What pool and workers say to each other in shared memory.
//!
//! | noun | what it is |
//! |---|---|
//! | [`Memory`] | all memory of a pool: control words, actions, infos, slabs |
//! | `Control` | the control words: a line for the pool, one a worker |
//! | `WorkQueue`, [`Work`] | rows that were sent, on their way to a worker |
//! | `Delivery` | what a worker does with them, step by step |
//! | `OpenBatches`, `Places` | the batches that they arrive in, and the tickets for their places |
//! | `Receipts` | which rows a batch has |
//! | `Notes` | how far a worker is with the rows that were sent, for the pool to read when it died |
//! | `Claim` | who is the pool of a memory, and who serves a worker |
//! | [`Tally`] | what workers count |

mod arrivals;
mod claim;
mod control;
#[cfg(all(loom, test))]
mod deaths;
mod delivery;
#[cfg(all(loom, test))]
mod interleavings;
mod memory;
mod progress;
mod queue;
mod receipts;
mod tally;

pub(crate) use arrivals::Places;
pub(crate) use control::Control;
pub(crate) use delivery::{Delivery, Filling};
pub use memory::Memory;
pub use queue::Work;
pub(crate) use receipts::Receipts;
pub use tally::{BUCKETS, Tally};
