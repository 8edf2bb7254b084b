//! A worker process in the place of one that died, as far as Python starts it.

use cartwheel::Call;
use cartwheel::worker::ProcessHandle;
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;

use crate::error::to_py_err;
use crate::pool::{PyPool, State};

impl PyPool {
    /// Puts a new worker process in the place of one that died.
    pub(crate) fn restart(
        &self,
        py: Python<'_>,
        state: &mut State,
        worker: usize,
        call: Call,
    ) -> PyResult<()> {
        let (link, pool) = (self.link.bind(py), &mut state.pool);
        let lost = pool.lost(worker);
        let told = (worker, call.to_string(), lost.over, lost.resetting);
        let started = link
            .call_method1(intern!(py, "restart"), told)
            .and_then(|pid| ProcessHandle::new(pid.extract()?).map_err(to_py_err));
        let handle = match started {
            Ok(handle) => handle,
            // Ctrl-C ends the wait, as elsewhere, and not the pool: the next call tries again.
            Err(error) if !error.is_instance_of::<PyException>(py) => {
                state.late = true;
                return Err(error);
            }
            Err(error) => {
                pool.give_up(worker);
                return Err(error);
            }
        };
        pool.resume(worker, handle);
        if matches!(pool.pending(), Some(Call::Reset | Call::Call)) {
            link.call_method1(intern!(py, "post_again"), (worker,))?;
        }
        Ok(())
    }
}
