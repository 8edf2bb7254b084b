//! Waits: detached, bounded, interruptible; and calls that were abandoned after a timeout or an
//! interrupt, whose results are received and dropped.

use std::time::{Duration, Instant};

use cartwheel_engine::pool::{Pool, Received};
use cartwheel_engine::{Call, Error};
use pyo3::prelude::*;

use crate::channel::as_duration;
use crate::interpreter::attach;
use crate::pool::State;

impl State {
    /// Waits for the pending call; `None`: for the next batch of rows that were sent. `calling` is the
    /// method that the user called.
    pub(super) fn finish(
        &mut self,
        py: Python<'_>,
        call: Option<Call>,
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<Received> {
        let (mut received, size) = (Received::default(), self.pool.batch_size());
        self.finish_some(py, &mut received, call, (size, size), calling, timeout)?;
        Ok(received)
    }

    /// The same wait, with the smallest and largest number of rows of the batch, and the result in
    /// `received`, as of [`Pool::finish_into`].
    pub(super) fn finish_some(
        &mut self,
        py: Python<'_>,
        received: &mut Received,
        call: Option<Call>,
        rows: (usize, usize),
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        self.await_results(py, call, rows, calling, timeout)?;
        // Signals that came during the wait: Python would call their handlers as the call returns, and the
        // results would be lost with what a handler raises. Here they can still be waited for once more.
        py.check_signals().inspect_err(|_| self.callbacks.has_abandoned = true)?;
        self.take_results(py, received, call, calling)
    }

    /// Waits for a call that is a part of the one that the user called. The results of the other parts would
    /// be lost with what a handler of a signal raises: that may come later.
    pub(super) fn finish_part(
        &mut self,
        py: Python<'_>,
        call: Call,
        calling: &str,
    ) -> PyResult<Received> {
        let (mut received, size) = (Received::default(), self.pool.batch_size());
        self.await_results(py, Some(call), (size, size), calling, None)?;
        self.take_results(py, &mut received, Some(call), calling)?;
        Ok(received)
    }

    fn await_results(
        &mut self,
        py: Python<'_>,
        call: Option<Call>,
        (min_rows, max_rows): (usize, usize),
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let waited = call.unwrap_or(Call::Step);
        self.wait(py, waited, calling, timeout, |pool, timeout, interrupted| match call {
            Some(call) => pool.await_call(call, timeout, interrupted),
            None => pool.await_rows(min_rows, max_rows, timeout, interrupted),
        })
    }

    /// Takes the results of the last wait.
    fn take_results(
        &mut self,
        py: Python<'_>,
        received: &mut Received,
        call: Option<Call>,
        calling: &str,
    ) -> PyResult<()> {
        let taken = self.pool.take(received);
        taken.map_err(|error| {
            self.callbacks.explain(py, error, call.unwrap_or(Call::Step), calling)
        })?;
        let Some(lease) = &received.lease else { return Ok(()) };
        if let Some(function) = self.reward_function.as_mut().filter(|_| call != Some(Call::Step)) {
            function.remember(lease, received.rows.iter());
        }
        self.note_episodes(call, received);
        Ok(())
    }

    /// Counts the steps of a batch: of rows that were sent, or of the last half of a step of all rows.
    pub(super) fn note_episodes(&mut self, call: Option<Call>, received: &Received) {
        let Some(episodes) = &mut self.episodes else { return };
        let last = if self.reward_function.is_some() { Call::Settle } else { Call::Step };
        match (received.rows.sent(), &received.lease) {
            (Some(rows), Some(lease)) => episodes.received(lease, rows),
            (None, Some(lease)) if call == Some(last) => episodes.stepped(lease),
            _ => {}
        }
    }

    /// Waits with `wait`. A worker that died in the meantime is replaced, if that is the policy.
    fn wait(
        &mut self,
        py: Python<'_>,
        call: Call,
        calling: &str,
        timeout: Option<f64>,
        mut wait: impl FnMut(&mut Pool, Option<Duration>, &mut dyn FnMut() -> bool) -> Result<(), Error>
        + Send,
    ) -> PyResult<()> {
        self.callbacks.seconds = timeout;
        // A thread that steps all rows waits for nothing, unless its time is limited. An error is found
        // again below.
        if timeout.is_none() && self.gil.is_alone() {
            let Self { pool, gil, .. } = self;
            if gil.during(py, || wait(pool, None, &mut || true)).is_ok() {
                self.callbacks.has_abandoned = false;
                return Ok(());
            }
        }
        self.wait_for_workers(py, call, calling, timeout, wait)
    }

    /// The same, where other threads or processes step rows.
    fn wait_for_workers(
        &mut self,
        py: Python<'_>,
        call: Call,
        calling: &str,
        timeout: Option<f64>,
        mut wait: impl FnMut(&mut Pool, Option<Duration>, &mut dyn FnMut() -> bool) -> Result<(), Error>
        + Send,
    ) -> PyResult<()> {
        let timeout = as_duration(timeout);
        let mut raised = None;
        let mut before = Duration::ZERO; // time of earlier waits
        let outcome = loop {
            let began = self.outgoing.has_unsent.then(Instant::now);
            let whole = self.send_queued(py)?;
            before += began.map_or(Duration::ZERO, |began| began.elapsed());
            let Self { pool, closing, gil, .. } = self;
            let left = timeout.map(|all| all.saturating_sub(before));
            let left = if whole { left } else { Some(Duration::ZERO) };
            let mut interrupted = || {
                if closing.has_begun() {
                    return true;
                }
                raised = attach(|py| py.check_signals().err());
                raised.is_some()
            };
            let outcome = gil.during(py, || wait(pool, left, &mut interrupted));
            match (outcome, timeout) {
                (Err(Error::WorkerDied { worker, pid, .. }), _) if self.pool.can_resume() => {
                    self.restart(py, worker, pid, call)?;
                }
                (Err(Error::StillWaiting { waited, rows }), _) => {
                    before += waited;
                    if let Err(error) = self.callbacks.remind(py, calling, before, rows) {
                        raised = Some(error);
                        break Err(Error::Interrupted);
                    }
                }
                // While a worker does not read, the others are only looked at.
                (Err(Error::Timeout { .. }), all)
                    if !whole && all.is_none_or(|all| before < all) => {}
                (Err(Error::Timeout { rows, .. }), Some(timeout)) => {
                    break Err(Error::Timeout { timeout, rows });
                }
                (outcome, _) => break outcome,
            }
        };
        match &outcome {
            Ok(()) => self.callbacks.has_abandoned = false,
            Err(Error::Timeout { .. } | Error::Interrupted) => self.callbacks.has_abandoned = true,
            Err(_) => {} // a wait for something that is not pending does not affect what is
        }
        outcome.map_err(|error| match (error, raised) {
            (Error::Interrupted, Some(raised)) => raised,
            (Error::Interrupted, None) => self.callbacks.explain(py, Error::Closed, call, calling),
            (error, _) => self.callbacks.explain(py, error, call, calling),
        })
    }

    /// The pending call and the rows in flight will not be waited for: a reset may drop their
    /// results.
    pub(super) fn give_up(&mut self) {
        self.callbacks.has_abandoned |= self.pool.pending().is_some() || self.pool.is_flying();
    }

    /// Waits for an abandoned call, or for everything in flight, and drops the results.
    /// `calling` is the method that the user called.
    pub(super) fn discard_abandoned(
        &mut self,
        py: Python<'_>,
        timeout: Option<f64>,
        calling: &str,
    ) -> PyResult<()> {
        let discards = self.callbacks.has_abandoned; // a wait below sets it back
        let began = Instant::now();
        while discards && (self.pool.pending().is_some() || self.pool.is_flying()) {
            let call = self.pool.pending();
            let left = timeout.map(|all| (all - began.elapsed().as_secs_f64()).max(0.0));
            let received = self.finish(py, call, calling, left)?;
            if call != Some(Call::Call) {
                self.drop_results(call, &received);
                self.lose(received.rows.iter());
            }
            self.discard_messages(py, &received)?;
        }
        self.report_failed(py, calling)
    }
}
