//! Messages to workers besides their batches: the keywords of resets, control calls, actions
//! without a fixed shape.
//!
//! A worker waits for such a message after it has begun the task that the message belongs to. The
//! pool begins the task first, because a message may be larger than the system's buffer, and
//! sending it then needs a reader. So from the beginning of the task the messages are owed. An
//! exception, such as Ctrl-C, may occur at any moment while they are being sent; owed messages are
//! then sent before any other message, and before any wait. Each list of messages has a number, by
//! which the link knows which part of it has been sent.
//!
//! Native shards read their mailboxes and do not wait, so their messages are left there before a
//! task begins; the next messages replace any that an exception leaves there.

use std::collections::VecDeque;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The receivers of messages.
#[derive(Debug, Clone, Copy)]
pub(crate) enum To {
    /// One to each worker.
    All,
    /// To the workers of sent rows: pairs of worker and message.
    Some,
}

impl To {
    /// The link's method.
    fn method(self, py: Python<'_>) -> &Bound<'_, PyString> {
        match self {
            Self::All => intern!(py, "post"),
            Self::Some => intern!(py, "post_some"),
        }
    }
}

/// The messages that are owed, and the number of lists so far.
#[derive(Debug, Default)]
pub(crate) struct Posts {
    count: u64,
    owed: VecDeque<(u64, To, Py<PyAny>)>,
}

impl Posts {
    /// The messages of a task that has just begun are owed.
    pub(super) fn owe(&mut self, to: To, messages: &Bound<'_, PyAny>) {
        self.count += 1;
        self.owed.push_back((self.count, to, messages.clone().unbind()));
    }

    /// Sends the owed messages, the oldest first.
    pub(super) fn send(&mut self, link: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = link.py();
        while let Some((number, to, messages)) = self.owed.front() {
            link.call_method1(to.method(py), (number, messages))?;
            self.owed.pop_front();
        }
        Ok(())
    }

    /// Before the end: no worker may wait for an owed message that will not be sent.
    pub(super) fn hang_up_if_owing(&self, link: &Bound<'_, PyAny>) {
        if self.owed.is_empty() {
            return;
        }
        let py = link.py();
        if let Err(error) = link.call_method0(intern!(py, "hang_up")) {
            error.write_unraisable(py, Some(link));
        }
    }
}

/// Leaves messages for native shards, before their task begins.
pub(super) fn leave(link: &Bound<'_, PyAny>, to: To, messages: &Bound<'_, PyAny>) -> PyResult<()> {
    link.call_method1(to.method(link.py()), (0, messages)).map(drop)
}
