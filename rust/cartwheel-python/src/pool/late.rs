//! Calls that were given up, after a timeout or an interrupt: their results are received and
//! dropped.

use cartwheel_engine::Call;
use pyo3::prelude::*;

use crate::pool::state::State;

impl State {
    /// The pending call and the rows in flight will not be waited for: a reset may drop their
    /// results.
    pub(super) fn give_up(&mut self) {
        self.link.late |= self.pool.pending().is_some() || self.pool.is_flying();
    }

    /// Waits for a call that was given up, and drops its result.
    /// `calling` is the method that the user called.
    pub(super) fn discard_late(
        &mut self,
        py: Python<'_>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<()> {
        if self.link.late && self.pool.pending().is_none() {
            return self.discard_received(py, timeout, calling);
        }
        let Some(call) = self.pool.pending().filter(|_| self.link.late) else {
            return Ok(());
        };
        self.finish(py, call, calling, timeout)?;
        if call == Call::Step {
            self.lose(0..self.rows);
        }
        let messages = self.announced.with_task(&self.pool);
        self.link.discard(py, messages)
    }

    /// Receives everything that is in flight and drops it.
    fn discard_received(
        &mut self,
        py: Python<'_>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<()> {
        while self.pool.is_flying() {
            let received = self.wait_for_rows(py, calling, timeout)?;
            self.lose(received.rows.iter().copied());
            let messages = self.announced.with_rows(&self.pool, &received);
            self.link.discard(py, messages)?;
        }
        Ok(())
    }
}
