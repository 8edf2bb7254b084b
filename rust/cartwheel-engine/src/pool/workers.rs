//! The workers that step the rows of a pool, and their number.

use crate::error::Error;
use crate::protocol::{Memory, WorkerToken};
use crate::worker::{ProcessHandle, Shard, ThreadPool};

/// The workers that step the rows of a pool.
#[derive(Debug)]
#[non_exhaustive]
pub enum Workers {
    /// The calling thread.
    Inline(WorkerToken, Box<dyn Shard>),
    /// One thread for each shard, running [`crate::worker::serve`].
    Threads,
    /// One process for each shard, running [`crate::worker::serve`].
    Processes(Vec<ProcessHandle>),
    /// Threads and the calling thread, which share the shards.
    ThreadPool(ThreadPool),
}

impl Workers {
    /// Checks that these are workers of a memory.
    pub(super) fn check(&self, memory: &Memory) -> Result<(), Error> {
        let shards = memory.plan().shards.len();
        if u32::try_from(shards).is_err() {
            return Err(Error::BadPlan(format!("{shards} workers are too many")));
        }
        match self {
            Self::Inline(token, _) => WorkerToken::check_all(memory, std::slice::from_ref(token)),
            Self::Processes(handles) if handles.len() != shards => {
                Err(Error::BadPlan(format!("{} workers for {shards} shards", handles.len())))
            }
            Self::ThreadPool(thread_pool) if !thread_pool.is_for(memory) => Err(Error::BadPlan(
                "a thread pool steps the memory that it was made for".to_owned(),
            )),
            Self::Threads | Self::Processes(_) | Self::ThreadPool(_) => Ok(()),
        }
    }

    /// Number of threads that want a processor while a task of `shards` shards runs, including the
    /// calling thread.
    pub(super) fn threads(&self, shards: usize) -> usize {
        match self {
            Self::Inline(..) => 1,
            Self::Threads | Self::Processes(_) => shards + 1,
            Self::ThreadPool(thread_pool) => thread_pool.threads(),
        }
    }
}

#[cfg(all(test, not(loom)))] // a real thread pool: loom's locks work only inside a model
mod tests {
    use super::*;
    use crate::memory::Plan;
    use crate::wake::Scope;
    use crate::worker::{Report, Shard, Task, ThreadPoolSettings};
    use cartwheel_core::schedule::fine_shards;

    #[derive(Debug)]
    struct Idle;

    impl Shard for Idle {
        fn run(&mut self, _: &mut Task<'_>) -> Report {
            Report::default()
        }
    }

    #[test]
    fn a_thread_pool_wants_a_processor_for_each_thread_and_not_for_each_shard() {
        let plan = Plan::new(fine_shards(32, 2, 1));
        let (memory, tokens) = Memory::new(plan, Scope::Private).expect("a little memory");
        let shards = memory.plan().shards.len();
        assert!(shards > 2);
        let own = (0..shards).map(|_| Box::new(Idle) as Box<dyn Shard>).collect();
        let settings = ThreadPoolSettings { threads: 2, spin: false, affinity_offset: None };
        let mut thread_pool = ThreadPool::new(tokens.workers, own, settings).expect("a thread");
        assert_eq!(thread_pool.threads(), 2);
        thread_pool.close(1, std::time::Duration::from_secs(5));
        assert_eq!(Workers::ThreadPool(thread_pool).threads(shards), 2);
        assert_eq!(Workers::Threads.threads(shards), shards + 1);
    }
}
