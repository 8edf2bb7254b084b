//! A worker: takes a task, carries it out on its rows, acknowledges it.
//!
//! The loop is the same for a thread and for a process; only the scope of the memory differs. The
//! [`Shard`] decides what its rows are.
//!
//! Rows arrive in two ways. A task is for all rows of every shard, whose places in the batch are
//! their own numbers; it is acknowledged as a whole. Sent rows are taken from a queue, a few at a
//! time, get places when they are done, and are counted as filled one by one. Both lead to
//! [`Shard::run`].
//!
//! # Invariants
//!
//! These rest on the invariants of [`memory`](crate::memory), cited as "memory 4" and so on.
//!
//! 1. **A task** is carried out once for each worker, by the thread that holds the worker's token (memory 9):
//!    after it took the task word and before it acknowledges it. For this time the worker's rows of
//!    the slab that the task word announces are its own alone (memory 3 and 4), and the actions of
//!    these rows are at rest (memory 5). In a thread pool, the token lies with its shard behind a lock, and a
//!    thread takes the shard from a share.
//! 2. **Rows that were sent** are taken from the worker's queue by the thread that holds its token. Places are
//!    claimed once each, and belong to the worker until it commits them; until then the actions of the rows are at rest
//!    (memory 4 and 5). `protocol/delivery.rs` has the order of the steps.
//! 3. **Infos** of a task, or of rows that were sent, are stored through the [`Task`], which is
//!    dropped before the acknowledgement or the commit (memory 6).

mod channel;
mod guard;
mod handover;
mod limit;
mod own_thread;
mod perform;
mod process;
mod sent;
mod serve;
mod shard;
mod share;
mod task;
mod thread_pool;
mod threads;

pub use channel::{Channel, LARGEST_MESSAGE};
pub(crate) use guard::{close, flush};
pub(crate) use limit::Limit;
pub use own_thread::OwnThread;
pub(crate) use perform::perform;
pub use process::{ProcessHandle, exit_with_parent};
pub(crate) use sent::perform_sent;
pub use serve::serve;
pub use shard::{Report, Shard};
pub use task::Task;
pub use thread_pool::{ThreadPool, ThreadPoolSettings};
