//! Replacing a worker process that died, with the part that Python does.

use cartwheel_engine::pool::{Lost, Pool};
use cartwheel_engine::worker::ProcessHandle;
use cartwheel_engine::{Call, Error};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::error::to_py_err;
use crate::known::intern;
use crate::pool::state::State;

impl State {
    /// Replaces a worker process that died.
    pub(super) fn restart(&mut self, py: Python<'_>, worker: usize, call: Call) -> PyResult<()> {
        let (link, pool) = (self.link.bind(py), &mut self.pool);
        let announced = self.announced.next_process(pool, worker);
        let hung = pool.is_hung(worker);
        let mut attempt = 0;
        let started = loop {
            let started = Self::start(link, pool, worker, call, hung, announced, attempt);
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
                self.link.late = true;
                return Err(error);
            }
            Err(_) if self.closing.has_begun() => {
                return Err(self.link.explain(py, Error::Closed, call, "restart"));
            }
            Err(error) => {
                pool.give_up(worker);
                return Err(error);
            }
        };
        self.announced.follow(pool, worker, filled);
        pool.resume(worker, handle);
        if matches!(pool.pending(), Some(Call::Reset | Call::Call)) {
            self.posts.repeat(py, worker)?;
        }
        Ok(())
    }

    /// Starts a process in the place of one that died. Returns it, and the rows whose results the
    /// dead one left; `None` when the new process died too.
    fn start(
        link: &Bound<'_, PyAny>,
        pool: &mut Pool,
        worker: usize,
        call: Call,
        hung: bool,
        announced: u64,
        attempt: usize,
    ) -> PyResult<Option<(ProcessHandle, Vec<usize>)>> {
        let py = link.py();
        link.call_method1(intern!(py, "bury"), (worker,))?;
        // Before every attempt: a new process that died may already have begun to serve.
        let Lost { over, resetting, filled } = pool.lost(worker);
        let arguments = (worker, call.to_string(), hung, over, resetting, announced, attempt);
        let pid = link.call_method1(intern!(py, "restart"), arguments)?;
        let Some(pid) = pid.extract()? else { return Ok(None) };
        Ok(Some((ProcessHandle::new(pid).map_err(to_py_err)?, filled)))
    }
}
