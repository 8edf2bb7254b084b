//! What workers are sent beside their batches: the keywords of resets, control calls, actions without a
//! fixed shape.
//!
//! A worker waits for such a message when it has begun what the message is about, and the pool begins that
//! first: a message may be larger than what the system keeps until somebody reads. So from then on the messages
//! are owed. An exception, such as Ctrl-C, may come at any moment while they are being sent; what is owed is then
//! sent before anything else is, and before anything is waited for. A list of messages has a number, by which
//! the link knows what of it has been sent already.
//!
//! Native shards look into their mailboxes and wait for nothing, so what is for them is left there before a
//! task begins; whatever an exception leaves there is replaced by the next.

use std::collections::VecDeque;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// To whom messages go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum To {
    /// One to each worker.
    All,
    /// To the workers of rows that were sent: pairs of worker and message.
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

/// The messages that are owed, and how many lists of them there have been.
#[derive(Debug, Default)]
pub(crate) struct Posts {
    count: u64,
    owed: VecDeque<(u64, To, Py<PyAny>)>,
}

impl Posts {
    /// Messages about what was begun just now are owed.
    pub(super) fn owe(&mut self, to: To, messages: &Bound<'_, PyAny>) {
        self.count += 1;
        self.owed.push_back((self.count, to, messages.clone().unbind()));
    }

    /// Sends what is owed, the oldest first.
    pub(super) fn send(&mut self, link: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = link.py();
        while let Some((number, to, messages)) = self.owed.front() {
            link.call_method1(to.method(py), (number, messages))?;
            self.owed.pop_front();
        }
        Ok(())
    }

    /// Before the end: lets nobody wait for what is owed and will not come.
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

/// Leaves messages for native shards, before what they are about begins.
pub(super) fn leave(link: &Bound<'_, PyAny>, to: To, messages: &Bound<'_, PyAny>) -> PyResult<()> {
    link.call_method1(to.method(link.py()), (0, messages)).map(drop)
}
