//! Sending the messages of a task that has just begun, see `posted`.

use std::time::Duration;

use cartwheel_engine::{Call, Error};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::known::intern;
use crate::pool::attachment::Attachment;
use crate::pool::posted::To;
use crate::pool::state::State;

/// How long a call waits for a worker to read; the rest is sent by the next wait, between looks at
/// the workers. A worker that is stepping other rows, or that hangs, does not read.
const PATIENCE: Duration = Duration::from_millis(50);

impl State {
    /// Sends messages of a task that has just begun.
    pub(super) fn post(
        &mut self,
        py: Python<'_>,
        to: To,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.queue(py, to, messages)?;
        self.send_queued(py).map(drop)
    }

    /// Queues messages of a task that has just begun.
    pub(super) fn queue(
        &mut self,
        py: Python<'_>,
        to: To,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.posts.in_between = true;
        match to {
            To::All => {
                if matches!(self.attachment, Attachment::Always) {
                    // Ctrl-C may have kept the worker, on this thread, from taking the last one.
                    let own = self.posts.channels.bind(py).get_item(0)?;
                    let queue = own.getattr(intern!(py, "outbox"))?;
                    while !queue.call_method0(intern!(py, "empty"))?.is_truthy()? {
                        queue.call_method0(intern!(py, "get_nowait"))?;
                    }
                }
                self.posts.last = Some(messages.clone().unbind());
                for (worker, message) in messages.try_iter()?.enumerate() {
                    self.posts.queue(worker, &message?)?;
                }
            }
            To::Some => {
                let row_resets = self.link.bind(py).getattr(intern!(py, "row_resets"))?;
                for message in messages.try_iter()? {
                    let (worker, message, resets): (_, _, Bound<'_, PyDict>) =
                        message?.extract()?;
                    row_resets.cast::<PyDict>()?.update(resets.as_mapping())?;
                    self.posts.queue(worker, &message)?;
                }
            }
        }
        self.posts.in_between = false;
        Ok(())
    }

    /// Sends what is queued, as far as the workers read it; returns whether nothing is left. A dead
    /// worker is not reported here but by the wait for the call.
    pub(super) fn send_queued(&mut self, py: Python<'_>) -> PyResult<bool> {
        if !self.posts.owing {
            return Ok(true);
        }
        let mut whole = true;
        for channel in self.posts.processes(py) {
            match channel.get().flush(py, Some(PATIENCE), || self.closing.has_begun()) {
                Ok(sent) => whole &= sent,
                Err(error) => {
                    self.link.late = true; // as after an interrupted wait: a reset may drop the result
                    let closing = self.closing.has_begun();
                    let closed = || self.link.explain(py, Error::Closed, Call::Call, "send");
                    return Err(if closing { closed() } else { error });
                }
            }
        }
        self.posts.owing = !whole;
        Ok(whole)
    }
}
