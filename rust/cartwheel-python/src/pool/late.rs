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

    /// Waits for a call that was given up, or for everything in flight, and drops the results.
    /// `calling` is the method that the user called.
    pub(super) fn discard_late(
        &mut self,
        py: Python<'_>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<()> {
        if !self.link.late {
            return Ok(());
        }
        while self.pool.pending().is_some() || self.pool.is_flying() {
            let call = self.pool.pending();
            let received = self.finish(py, call, calling, timeout)?;
            if call != Some(Call::Call) {
                self.drop_results(py, call, &received);
                self.lose(received.rows.iter());
            }
            let messages = self.announced.with(&self.pool, &received);
            self.link.discard(py, messages)?;
        }
        Ok(())
    }
}
