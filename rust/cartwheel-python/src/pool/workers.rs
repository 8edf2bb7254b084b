//! The workers that step the rows: built from Python's description, and replaced when they die.

use cartwheel_engine::pool::{Lost, Pool, Workers};
use cartwheel_engine::worker::{ProcessHandle, ThreadPool, ThreadPoolSettings};
use cartwheel_engine::{Call, Error};
use pyo3::exceptions::{PyException, PyProcessLookupError};
use pyo3::prelude::*;

use crate::error::to_py_err;
use crate::known::intern;
use crate::memory::PyMemory;
use crate::native::PyNativeEnvs;
use crate::pool::State;
use crate::worker::serve::PyShardParts;

/// Workers, and what the pool needs to know about them.
#[derive(Debug)]
pub(crate) struct BuiltWorkers {
    pub(crate) workers: Workers,
    /// Native environments, which check their actions.
    pub(crate) native: Option<Py<PyNativeEnvs>>,
    /// Whether over rows are refused.
    pub(crate) refuse_over: bool,
}

impl BuiltWorkers {
    /// A thread pool with these settings steps native environments, or the caller, where they are one
    /// shard. Python environments are stepped by the caller (`inline`), by the processes with these ids,
    /// or, if there are none, by threads.
    pub(crate) fn new(
        memory: &PyMemory,
        shard: &Bound<'_, PyAny>,
        pids: &[u32],
        inline: bool,
        settings: ThreadPoolSettings,
    ) -> PyResult<Self> {
        if let Ok(envs) = shard.cast::<PyNativeEnvs>() {
            let refuse_over = envs.get().refuses_over();
            let (mut tokens, mut shards) = (memory.worker_tokens(), envs.get().take_shards()?);
            let workers = if let ([_], [_]) = (&tokens[..], &shards[..]) {
                Workers::Inline(tokens.remove(0), shards.remove(0)) // no other thread has work
            } else {
                let thread_pool = ThreadPool::new(tokens, shards, settings);
                Workers::ThreadPool(thread_pool.map_err(to_py_err)?)
            };
            return Ok(Self { workers, native: Some(envs.clone().unbind()), refuse_over });
        }
        let parts = shard.cast::<PyShardParts>()?.get();
        let workers = if inline {
            Workers::Inline(memory.worker_token(0)?, Box::new(parts.build(shard.py())?))
        } else if pids.is_empty() {
            Workers::Threads
        } else {
            let handles = pids.iter().map(|&pid| match pid {
                0 => Ok(ProcessHandle::absent()),
                pid => ProcessHandle::new(pid),
            });
            Workers::Processes(handles.collect::<Result<_, _>>().map_err(to_py_err)?)
        };
        Ok(Self { workers, native: None, refuse_over: parts.refuses_over() })
    }
}

impl State {
    /// Replaces the process `pid` of a worker, which died.
    pub(super) fn restart(
        &mut self,
        py: Python<'_>,
        worker: usize,
        pid: u32,
        call: Call,
    ) -> PyResult<()> {
        let (callbacks, pool) = (self.callbacks.bind(py), &mut self.pool);
        let announced = self.message_counts.next_process(pool, worker);
        let hung = pool.is_hung(worker);
        let mut attempt = 0;
        let started = loop {
            let dead = (worker, pid);
            let started = Self::start(callbacks, pool, dead, call, hung, announced, attempt);
            attempt += 1;
            match started {
                Ok(None) => {} // the new process died too
                Ok(Some(started)) => break Ok(started),
                Err(error) => break Err(error),
            }
        };
        let (handle, filled) = match started {
            Ok(started) => started,
            // Ctrl-C ends the wait, as elsewhere, but not the pool: the next call tries again.
            Err(error) if !error.is_instance_of::<PyException>(py) => {
                self.callbacks.has_abandoned = true;
                return Err(error);
            }
            Err(_) if self.closing.has_begun() => {
                return Err(self.callbacks.explain(py, Error::Closed, call, "restart"));
            }
            Err(error) => {
                pool.give_up(worker);
                return Err(error);
            }
        };
        self.message_counts.follow(pool, worker, filled);
        pool.resume(worker, handle);
        if matches!(pool.pending(), Some(Call::Reset | Call::Call)) {
            self.outgoing.repeat(py, worker)?;
        }
        Ok(())
    }

    /// Starts a process in the place of one that died. Returns it, and the rows whose results the
    /// dead one left; `None` when the new process died too.
    fn start(
        callbacks: &Bound<'_, PyAny>,
        pool: &mut Pool,
        (worker, pid): (usize, u32),
        call: Call,
        hung: bool,
        announced: u64,
        attempt: usize,
    ) -> PyResult<Option<(ProcessHandle, Vec<usize>)>> {
        let py = callbacks.py();
        callbacks.call_method1(intern!(py, "reap"), (worker,))?;
        // Before every attempt: a new process that died may already have begun to serve.
        let Lost { over, resetting, filled } = pool.lost(worker);
        let arguments = (worker, pid, call.to_string(), hung, over, resetting, announced, attempt);
        let pid = callbacks.call_method1(intern!(py, "restart"), arguments)?;
        let Some(pid) = pid.extract()? else { return Ok(None) };
        match ProcessHandle::new(pid).map_err(to_py_err) {
            Ok(handle) => Ok(Some((handle, filled))),
            // It said that it serves, and its exit code was read since. (The type of the error is OSError.)
            Err(error) if error.value(py).is_instance_of::<PyProcessLookupError>() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
