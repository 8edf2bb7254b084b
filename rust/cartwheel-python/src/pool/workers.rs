//! The workers that step the rows: the core's workers, from Python's description.

use cartwheel_engine::pool::Workers;
use cartwheel_engine::worker::{Crew, CrewSettings, ProcessHandle};
use pyo3::prelude::*;

use crate::error::to_py_err;
use crate::memory::PyMemory;
use crate::native::PyNativeEnvs;
use crate::worker::serve::PyShardParts;

/// Workers, and what the pool needs to know about them.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) workers: Workers,
    /// Native environments, which check their actions.
    pub(crate) native: Option<Py<PyNativeEnvs>>,
    /// Whether over rows are refused.
    pub(crate) refuse_over: bool,
}

impl Made {
    /// A crew steps native environments. Python environments are stepped by the caller (`inline`),
    /// by the processes with these ids, or, if there are none, by threads.
    pub(crate) fn new(
        memory: &PyMemory,
        shard: &Bound<'_, PyAny>,
        pids: &[u32],
        inline: bool,
        crew: CrewSettings,
    ) -> PyResult<Self> {
        if let Ok(envs) = shard.cast::<PyNativeEnvs>() {
            let refuse_over = envs.get().refuses_over();
            let crew = Crew::new(memory.worker_tokens(), envs.get().take_shards()?, crew);
            let workers = Workers::Crew(crew.map_err(to_py_err)?);
            return Ok(Self { workers, native: Some(envs.clone().unbind()), refuse_over });
        }
        let parts = shard.cast::<PyShardParts>()?.get();
        let workers = if inline {
            let token = memory.worker_token(0)?;
            Workers::Inline(token, Box::new(parts.build(shard.py())?))
        } else if pids.is_empty() {
            Workers::Threads
        } else {
            let handles = pids.iter().map(|&pid| ProcessHandle::new(pid));
            Workers::Processes(handles.collect::<Result<_, _>>().map_err(to_py_err)?)
        };
        Ok(Self { workers, native: None, refuse_over: parts.refuses_over() })
    }
}
