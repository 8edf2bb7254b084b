//! The memory that a pool and its workers share.
//!
//! There are four mappings: control words, actions (pool → workers), infos (workers → pool) and
//! slabs (observations, rewards and flags). They are separate so that a stray write into one cannot
//! reach another. For process workers each is shared memory, a sealed `memfd` on Linux; for threads and for the calling
//! thread it is private anonymous memory. Everything else is the same.
//!
//! # Invariants
//!
//! Every `SAFETY` comment of this module cites these by number.
//!
//! 1. **Life.** A `Mapping` stays mapped until its drop, its length never changes (memfds are sealed
//!    against shrinking and growing; without seals, no process that has the descriptor does that), and every pointer into it is used behind an `Arc` or a borrow of it.
//! 2. **Control words** are only ever accessed as atomics, on both sides.
//! 3. **Phases of a slab.** Free → filling by `SlabPool::acquire`; filling → leased when every
//!    worker has acknowledged the task, or every place of the batch is committed; leased → free when
//!    the last [`Lease`] is dropped. A batch in parts has a lease for each part: its places are leased
//!    when they are committed, while other places of the slab may still be filling, and a reader that has
//!    the lease reads the places of its part only. A batch of a rollout has a lease while other batches of
//!    the mapping are filled; what they share is read under a lock, and only until the next one is begun.
//!    Only the pool changes the phase, and a memory has one pool in its life (invariant 9). A slab that a
//!    late or dead worker may still be filling is not filled again: the pool is then waiting, broken or
//!    closed, and acquires no slab.
//! 4. **Rows.** While a slab is filling, each place is written by one shard alone. A task gives
//!    each shard the places of its own rows, and one worker serves the shard (invariant 9). Tickets,
//!    or where workers are processes the places themselves, are drawn once, and given places are
//!    dealt once. A [`SlabRows`] refuses places outside its range. It lives only between taking a
//!    task and acknowledging it, or between claiming the places and committing them. The
//!    pool reads a place only after that.
//! 5. **Actions** of a row are written by the pool while no task is pending and the row is not in
//!    flight. They are read by the row's worker between taking a task and acknowledging it, or
//!    between taking the row from its queue and committing its place. The same holds of a
//!    row's tags; the tag that was stored last is the pool's own. While steps are in flight, rows
//!    are stored only with tags whose elements are where those of the rows in flight are, or do
//!    not overlap them, and rows that are sent without actions have no tag; an [`ActionRows`] reads
//!    tags, and the elements that they describe, only for rows that are being stepped.
//! 6. **Infos.** The region of shard *k* is written by its worker between taking a task and
//!    acknowledging it. The pool reads it after that and before the next task, and never once the
//!    pool is closed or broken. A row that was sent has a cell of that region, written before its
//!    place is committed and read before the row is sent again; no task begins while rows
//!    are in flight.
//! 7. **Payload.** Every bit pattern of the payload is valid for the type it is read as: numbers
//!    are copied as bytes, flags are read as `u8` and compared with zero, and nothing read from
//!    shared memory is used as an index without a bounds check.
//! 8. **Private copies.** Slabs and rollouts are made private in place, by [`Sharing::make_private`], only where
//!    nothing waits any longer for what a worker writes: in a forked child, and when a pool has
//!    ended its workers. Where another thread might read zeros meanwhile
//!    (`platform::MAKES_PRIVATE_AT_ONCE`), only in a forked child, before it starts a thread.
//! 9. **Tokens.** A memory, with all its clones and attachments, has one pool; each worker has one
//!    server, which is the pool itself where it steps the worker's rows. Both are the holders of
//!    tokens that are made once and cannot be cloned, see `protocol/tokens.rs`. Only
//!    [`WorkerToken::attach`] makes another token of a worker, in another process. The caller of
//!    `attach` promises that no other token of this worker is in use. Every process that attaches the memory deals its rows by the same plan.
//!
//! [`WorkerToken::attach`]: crate::protocol::WorkerToken::attach
//!
//! Code outside this crate cannot reach a control word, and reaches the other areas only through a
//! [`Lease`] or a task. So safe code that embeds this crate cannot break these invariants. The
//! descriptors of shared memory are `unsafe` to get, see
//! [`Memory::descriptors`](crate::protocol::Memory::descriptors): a process that has one can write anywhere.
//!
//! Rust has no settled memory model between processes. The practical rule followed here is that
//! control words are atomics, and that they order plain data between trusting processes. A worker
//! that breaks the protocol can spoil values, but never the pool's own memory.

mod actions;
mod columns;
pub mod forks;
mod free_list;
mod infos;
mod lease;
mod lease_count;
mod mapping;
mod memory_limit;
mod plan;
mod rollout;
mod scratch;
mod sharing;
mod slab;
mod slab_pool;

pub use crate::platform::process_id;
pub(crate) use actions::ActionArea;
pub use actions::ActionRows;
pub(crate) use columns::{ActionColumns, Addresses, LeafColumns};
#[cfg(all(loom, test))]
pub(crate) use free_list::FreeList;
pub(crate) use infos::InfoArea;
pub use infos::InfosAt;
pub use lease::{AddressLease, Lease};
#[cfg(all(loom, test))]
pub(crate) use lease_count::Leases;
pub(crate) use mapping::{Backing, Mapping};
pub use memory_limit::MemoryLimit;
pub(crate) use plan::check;
pub use plan::{MAX_ROWS, Plan};
pub(crate) use rollout::RolloutMemory;
pub use rollout::{MAX_STEPS, RolloutLease};
pub(crate) use scratch::Scratch;
pub use sharing::Sharing;
pub(crate) use slab::SlabMemory;
pub use slab::{Room, SlabRows};
pub use slab_pool::SlabPool;
