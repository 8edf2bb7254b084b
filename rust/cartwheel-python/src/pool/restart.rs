//! Replacing a worker process that died, with the part that Python does.

use cartwheel::Call;
use cartwheel::pool::Lost;
use cartwheel::worker::ProcessHandle;
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;

use crate::error::to_py_err;
use crate::pool::state::State;

impl State {
    /// Replaces a worker process that died.
    pub(super) fn restart(&mut self, py: Python<'_>, worker: usize, call: Call) -> PyResult<()> {
        let (link, pool) = (self.link.bind(py), &mut self.pool);
        let announced = self.announced.next_process(pool, worker);
        let hung = pool.is_hung(worker);
        let started = link
            .call_method1(intern!(py, "bury"), (worker,))
            .and_then(|_| pool.lost(worker).map_err(to_py_err))
            .and_then(|Lost { over, resetting, filled }| {
                let arguments = (worker, call.to_string(), hung, over, resetting, announced);
                let pid = link.call_method1(intern!(py, "restart"), arguments)?;
                Ok((ProcessHandle::new(pid.extract()?).map_err(to_py_err)?, filled))
            });
        let (handle, filled) = match started {
            Ok(started) => started,
            // Ctrl-C ends the wait, as elsewhere, but not the pool: the next call tries again.
            Err(error) if !error.is_instance_of::<PyException>(py) => {
                self.link.late = true;
                return Err(error);
            }
            Err(error) => {
                pool.give_up(worker);
                return Err(error);
            }
        };
        self.announced.follow(pool, worker, filled);
        pool.resume(worker, handle);
        if matches!(pool.pending(), Some(Call::Reset | Call::Call)) {
            let posted = link.call_method1(intern!(py, "post_again"), (worker,));
            if let Err(error) = posted {
                // It would wait forever for messages that may never have been sent; so another
                // process replaces it.
                pool.kill(worker);
                self.link.late = !error.is_instance_of::<PyException>(py);
                return Err(error);
            }
        }
        Ok(())
    }
}
