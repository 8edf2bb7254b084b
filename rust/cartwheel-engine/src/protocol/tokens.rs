//! Tokens: who may make a memory's pool, and who may serve each of its workers.
//!
//! A [`Memory`] is a view that anybody may clone, and that steps nothing. The rights are values that
//! cannot be cloned: [`Memory::new`] makes one for the pool and one for each worker, and code that uses
//! them gives them away or borrows them mutably. So a memory has one pool, and a worker one server,
//! without a check at run time. Only another process has to get its token in another way:
//! [`WorkerToken::attach`] makes it from nothing, and is unsafe.
//!
//! # Invariants
//!
//! 1. **One of each.** [`Memory::new`] makes the tokens of new memory, one of each, and no token can be
//!    cloned. Others are made by [`WorkerToken::attach`] only, whose caller promises that no token of
//!    the worker is left (memory 9).
//! 2. **Descriptors** are what that caller promises (`memory.rs` 1).
#![expect(unsafe_code, reason = "attaches memory of another process, see the invariants")]

use std::os::fd::OwnedFd;

use super::memory::Memory;
use crate::error::Error;
use crate::memory::Plan;
use crate::wake::Scope;

/// The right to make the pool of a memory.
#[derive(Debug)]
pub struct PoolToken {
    pub(crate) memory: Memory,
}

/// The right to serve one worker of a memory.
#[derive(Debug)]
pub struct WorkerToken {
    memory: Memory,
    worker: usize,
}

/// The tokens of a memory.
///
/// Each is used once:
///
/// ```compile_fail,E0382
/// # use cartwheel_engine::pool::{Policy, Pool, Workers};
/// # use cartwheel_engine::protocol::Tokens;
/// fn two_pools(tokens: Tokens, policy: Policy) {
///     let first = Pool::new(tokens.pool, Workers::Threads, policy);
///     let second = Pool::new(tokens.pool, Workers::Threads, policy);
/// }
/// ```
///
/// ```compile_fail,E0382
/// # use cartwheel_engine::protocol::WorkerToken;
/// # use cartwheel_engine::worker::{Shard, serve};
/// fn serve_twice(token: WorkerToken, shard: &mut dyn Shard) {
///     serve(token, shard, false);
///     serve(token, shard, false);
/// }
/// ```
#[derive(Debug)]
pub struct Tokens {
    /// For [`Pool::new`](crate::pool::Pool::new).
    pub pool: PoolToken,
    /// One for each worker, in order: for [`serve`](crate::worker::serve), a
    /// [`ThreadPool`](crate::worker::ThreadPool) or [`Workers::Inline`](crate::pool::Workers::Inline).
    pub workers: Vec<WorkerToken>,
}

impl Memory {
    /// Makes the memory for `plan`, private to this process or shared with workers, and the tokens
    /// for its pool and its workers.
    ///
    /// Shared memory is reserved here, so that a machine without enough memory gives an error now
    /// and not a signal later; slabs beyond the first few are reserved when needed.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`], [`Error::OutOfMemory`] or [`Error::Os`].
    pub fn new(plan: Plan, scope: Scope) -> Result<(Self, Tokens), Error> {
        let memory = Self::make(plan, scope)?;
        let token = |worker| WorkerToken { memory: memory.clone(), worker };
        let workers = (0..memory.plan().shards.len()).map(token).collect();
        let tokens = Tokens { pool: PoolToken { memory: memory.clone() }, workers };
        Ok((memory, tokens))
    }
}

impl WorkerToken {
    /// Maps, in a worker process, the memory that [`Memory::new`] made from the same plan, and makes
    /// the token for worker `worker`. `descriptors` are those of [`Memory::descriptors`], in the same
    /// order.
    ///
    /// # Safety
    ///
    /// The descriptors come from [`Memory::descriptors`], so that nothing but a pool and its workers
    /// accesses the memory (invariant 2). This is the worker's only token in use (invariant 1): none
    /// that [`Memory::new`] made is, and every process that had one has ended. If there was one, it had
    /// ended before [`Pool::lost`](crate::pool::Pool::lost) was called for the last time.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when the memory was made by another version or from another plan, or the
    /// descriptors are not those of one memory in the right order; [`Error::BadPlan`] when there is
    /// no such worker; or [`Error::Os`].
    pub unsafe fn attach(
        plan: Plan,
        descriptors: [OwnedFd; 4],
        worker: usize,
    ) -> Result<Self, Error> {
        let workers = plan.shards.len();
        if worker >= workers {
            return Err(Error::BadPlan(format!("there is no worker {worker} of {workers}")));
        }
        // SAFETY: the caller promises it (invariant 2).
        let memory = unsafe { Memory::attach(plan, descriptors) }?;
        Ok(Self { memory, worker })
    }

    /// The memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The worker's index.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Checks that these are the tokens of all workers of a memory, in order.
    pub(crate) fn check_all(memory: &Memory, tokens: &[Self]) -> Result<(), Error> {
        let shards = memory.plan().shards.len();
        let is_own = |(worker, token): (usize, &Self)| {
            token.worker == worker && token.memory.is_same(memory)
        };
        if tokens.len() == shards && tokens.iter().enumerate().all(is_own) {
            return Ok(());
        }
        let got: Vec<_> = tokens.iter().map(|token| token.worker).collect();
        let expected = format!("the tokens of all {shards} workers of one memory, in order");
        Err(Error::BadPlan(format!("expected {expected}, got those of workers {got:?}")))
    }
}
