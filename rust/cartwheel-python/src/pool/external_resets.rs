//! Resets that a callable of Python completes: it writes the first states of the rows that began an
//! episode, after the resets and before the caller gets their observations.

use cartwheel_engine::Call;
use cartwheel_engine::pool::Received;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::native::begun::{BegunRows, PyRowStreams};
use crate::pool::State;

/// The callable, and the parameter whose setting tells environments that their states were written.
#[derive(Debug)]
pub(super) struct ResetFunction {
    callable: Py<PyAny>,
    parameter: String,
    /// Rows that need a reset and whose shards do not know it yet, because a wait for them was interrupted.
    unreported: Vec<usize>,
}

impl ResetFunction {
    pub(super) fn new((callable, parameter): (Py<PyAny>, String)) -> Self {
        Self { callable, parameter, unreported: Vec::new() }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.callable)
    }
}

impl State {
    /// Lets the callable write the first states of the rows that began an episode in a call, and shows
    /// them in its batch. If that raises, no caller sees the results of the call, whose rows need a reset.
    pub(super) fn complete_resets(
        &mut self,
        py: Python<'_>,
        call: Option<Call>,
        received: &mut Received,
        calling: &str,
    ) -> PyResult<()> {
        let Some(native) = self.native.as_ref().filter(|_| self.reset_function.is_some()) else {
            return Ok(());
        };
        let begun = native.get().take_begun();
        if begun.is_empty() {
            return Ok(());
        }
        let begun = BegunRows::new(py, begun)?;
        let rows = begun.rows.clone();
        let completed = self.write_first_states(py, begun, received, calling);
        if completed.is_err() {
            let all = call == Some(Call::Step);
            self.drop_results(call, received);
            self.lose(received.rows.iter());
            self.discard_messages(py, received)?;
            self.fail_rows(py, if all { (0..self.rows).collect() } else { rows }, calling)?;
        }
        completed
    }

    /// These rows need a reset. While a call is pending, their shards are told when it is discarded.
    fn fail_rows(&mut self, py: Python<'_>, rows: Vec<usize>, calling: &str) -> PyResult<()> {
        if self.pool.pending().is_some()
            && let Some(function) = &mut self.reset_function
        {
            function.unreported.clone_from(&rows);
        } else if let Some(native) =
            self.native.as_ref().filter(|_| self.pool.check(Call::Call).is_ok())
        {
            native.get().post_failed(&rows);
            let explain = |error| self.callbacks.explain(py, error, Call::Call, calling);
            self.pool.begin(Call::Call, 0).map_err(explain)?;
            self.finish_part(py, Call::Call, calling)?;
        }
        self.pool.fail_rows(&rows);
        Ok(())
    }

    /// Tells shards which rows need a reset, now that no call is pending.
    pub(super) fn report_failed(&mut self, py: Python<'_>, calling: &str) -> PyResult<()> {
        match &mut self.reset_function {
            Some(function) if !function.unreported.is_empty() => {
                let rows = std::mem::take(&mut function.unreported);
                self.fail_rows(py, rows, calling)
            }
            _ => Ok(()),
        }
    }

    fn write_first_states(
        &mut self,
        py: Python<'_>,
        begun: BegunRows<'_>,
        received: &mut Received,
        calling: &str,
    ) -> PyResult<()> {
        let (Some(function), Some(native)) = (&self.reset_function, &self.native) else {
            return Ok(());
        };
        let native = native.clone_ref(py);
        let native = native.get();
        let BegunRows { rows, known_as, streams } = begun;
        let streams = Bound::new(py, PyRowStreams::new(streams))?;
        let value = function.callable.bind(py).call1((&rows, known_as, &streams))?;
        if value.is_none() {
            return Ok(());
        }
        let value = value.cast_into::<PyInt>()?;
        native.post_begun(&function.parameter, &value, &rows, streams.get().take())?;
        let explain = |error| self.callbacks.explain(py, error, Call::Call, calling);
        self.pool.begin(Call::Call, 0).map_err(explain)?;
        let answered = self.finish_part(py, Call::Call, calling)?;
        self.discard_messages(py, &answered)?;
        let shown = native.take_shown(&rows)?;
        let Some(lease) = &mut received.lease else { return Ok(()) };
        for (leaf, elements) in shown.iter().enumerate() {
            let (offset, bytes) = {
                let layout = lease.layout();
                (layout.leaf_offset(leaf), layout.row_bytes(leaf))
            };
            for (row, element) in rows.iter().zip(elements.chunks(bytes.max(1))) {
                let sent = received.rows.sent();
                let place = sent.map_or(Some(*row), |sent| sent.iter().position(|of| of == row));
                if let Some(place) = place {
                    lease.write(offset + (lease.first() + place) * bytes, element);
                }
            }
        }
        if let Some(function) = &mut self.reward_function {
            function.remember(lease, received.rows.iter());
        }
        Ok(())
    }
}
