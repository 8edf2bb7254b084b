//! Tokens: who may make a memory's pool, and who may serve each of its workers.
//!
//! A [`Memory`] is a view that anybody may clone, and that steps nothing. The rights are values that
//! cannot be cloned: [`Memory::new`] makes one for the pool and one for each worker, and whoever uses
//! them gives them away or borrows them mutably. So a memory has one pool, and a worker one server,
//! without a check at run time. Only another process has to get its token in another way:
//! [`WorkerToken::attach`] makes it from nothing, and is unsafe.

use super::Memory;
use crate::error::Error;

/// The right to make the pool of a memory.
#[derive(Debug)]
pub struct PoolToken {
    pub(crate) memory: Memory,
}

/// The right to serve one worker of a memory.
#[derive(Debug)]
pub struct WorkerToken {
    pub(super) memory: Memory,
    pub(super) worker: usize,
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
    /// [`Crew`](crate::worker::Crew) or [`Workers::Inline`](crate::pool::Workers::Inline).
    pub workers: Vec<WorkerToken>,
}

impl Tokens {
    /// The tokens of new memory.
    pub(super) fn new(memory: &Memory) -> Self {
        let token = |worker| WorkerToken { memory: memory.clone(), worker };
        let workers = (0..memory.plan().shards.len()).map(token).collect();
        Self { pool: PoolToken { memory: memory.clone() }, workers }
    }
}

impl WorkerToken {
    /// The memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The worker's index.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Checks that these are the tokens of all workers of a memory, in order.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`].
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
