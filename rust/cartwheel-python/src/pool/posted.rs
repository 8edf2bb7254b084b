//! Messages to workers besides their batches: the keywords of resets, control calls, actions
//! without a fixed shape.
//!
//! A worker waits for such a message after it has begun the task that the message belongs to. The
//! pool begins the task first, because a message may be larger than the system's buffer, and
//! sending it then needs a reader. All messages of a task are queued at once, by calls that run no
//! Python code and wait for nothing. So an exception, such as Ctrl-C, finds all of them queued, or the
//! task not begun. What was not sent then goes before any other message, and is sent by every wait.
//!
//! Native shards read their mailboxes and do not wait, so their messages are left there before a
//! task begins; the next messages replace any that an exception leaves there.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::channel::PyChannel;
use crate::known::intern;

/// The receivers of messages.
#[derive(Debug, Clone, Copy)]
pub(crate) enum To {
    /// One to each worker.
    All,
    /// To the workers of sent rows: worker, message, and the keywords of the resets in it, by row.
    Some,
}

/// The channels to the workers.
#[derive(Debug)]
pub(crate) struct Posts {
    /// The caller's ends, which Python replaces with their workers; none to native shards.
    pub(super) channels: Py<PyList>,
    /// The messages of the last task of all rows, for workers that must be asked again.
    pub(super) last: Option<Py<PyAny>>,
    /// Whether a queued message may not have been sent.
    pub(super) owing: bool,
    /// Whether only some messages of a task were queued: a panic or an error came in between.
    pub(super) in_between: bool,
}

impl Posts {
    pub(super) fn new(channels: Py<PyList>) -> Self {
        Self { channels, last: None, owing: false, in_between: false }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.channels)?;
        visit.call(&self.last)
    }

    /// Queues a message for a worker.
    pub(super) fn queue(&mut self, worker: usize, message: &Bound<'_, PyAny>) -> PyResult<()> {
        let channel = self.channels.bind(message.py()).get_item(worker)?;
        self.owing = true;
        match channel.cast::<PyChannel>() {
            Ok(channel) => channel.get().queue(message),
            // Within one process, it is a function in C that puts the message into a queue.
            Err(_) => channel.call_method1(intern!(message.py(), "post"), (message,)).map(drop),
        }
    }

    /// Queues the message of the pending task again, for a worker that was restarted.
    pub(super) fn repeat(&mut self, py: Python<'_>, worker: usize) -> PyResult<()> {
        let last = self.last.as_ref().map(|messages| messages.bind(py).get_item(worker));
        last.map_or(Ok(()), |message| self.queue(worker, &message?))
    }

    /// The channels to worker processes.
    pub(super) fn processes<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyChannel>> {
        let channels = self.channels.bind(py).iter();
        channels.filter_map(|channel| channel.cast_into().ok()).collect()
    }

    /// Before the end: no worker may wait for a message that will not be sent.
    pub(super) fn hang_up_if_owing(&self, py: Python<'_>) {
        for channel in self.channels.bind(py).iter() {
            let owes = channel.cast::<PyChannel>().is_ok_and(|channel| channel.get().owes(py));
            if (owes || self.in_between)
                && let Err(error) = channel.call_method0(intern!(py, "hang_up"))
            {
                error.write_unraisable(py, Some(&channel));
            }
        }
    }
}

/// Leaves messages for native shards, before their task begins.
pub(super) fn leave(link: &Bound<'_, PyAny>, to: To, messages: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = link.py();
    let method = match to {
        To::All => intern!(py, "post"),
        To::Some => intern!(py, "post_some"),
    };
    link.call_method1(method, (messages,)).map(drop)
}
