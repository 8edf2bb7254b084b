//! Messages between the caller and its workers, in addition to batches.
//!
//! Outgoing: the keywords of resets, control calls, actions without a fixed shape. A worker waits for
//! such a message after it has begun the task that the message belongs to. The pool begins the task
//! first, because a message may be larger than the system's buffer, and sending it then needs a reader.
//! All messages of a task are queued at once, by calls that run no Python code and wait for nothing. So
//! an exception, such as Ctrl-C, finds all of them queued, or the task not begun. What was not sent then
//! goes before any other message, and is sent by every wait.
//!
//! Native shards read their mailboxes and do not wait, so their messages are posted there before a
//! task begins (`native/post.rs`); the next messages replace any that an exception leaves there.
//!
//! Incoming: faults, infos that did not fit, answers to control calls. A worker announces such a message
//! together with its acknowledgement, and numbers it. The receiver counts the announcements, here and
//! before any Python code runs. So when an exception, such as Ctrl-C, prevents the receipt of a message,
//! the count is still right. The message is skipped when a later one is received, so a message is never
//! mistaken for another.

use std::collections::HashMap;
use std::time::Duration;

use cartwheel_engine::memory::InfosAt;
use cartwheel_engine::pool::{Event, Pool, Received};
use cartwheel_engine::{Call, Error};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::channel::PyChannel;
use crate::known::intern;
use crate::pool::State;
use crate::pool::gil::GilPolicy;

/// Time that a call waits for a worker to read; the rest is sent by the next wait, between looks at
/// the workers. A worker that is stepping other rows, or that hangs, does not read.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(50);

/// The receivers of messages.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Recipients {
    /// One message to each worker.
    All,
    /// To the workers of sent rows: worker, message, and the keywords of the resets in it, by row.
    Some,
}

/// The channels to the workers.
#[derive(Debug)]
pub(crate) struct OutgoingMessages {
    /// The caller's ends, which Python replaces with their workers; none to native shards.
    pub(super) channels: Py<PyList>,
    /// The messages of the last task of all rows, for workers that must be asked again.
    pub(super) last: Option<Py<PyAny>>,
    /// Whether a queued message may not have been sent.
    pub(super) has_unsent: bool,
    /// Whether only some messages of a task were queued: a panic or an error came in between.
    pub(super) is_half_queued: bool,
}

impl OutgoingMessages {
    pub(super) fn new(channels: Py<PyList>) -> Self {
        Self { channels, last: None, has_unsent: false, is_half_queued: false }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.channels)?;
        visit.call(&self.last)
    }

    pub(super) fn queue(&mut self, worker: usize, message: &Bound<'_, PyAny>) -> PyResult<()> {
        let channel = self.channels.bind(message.py()).get_item(worker)?;
        self.has_unsent = true;
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
    pub(super) fn hang_up_if_unsent(&self, py: Python<'_>) {
        for channel in self.channels.bind(py).iter() {
            let has_unsent =
                channel.cast::<PyChannel>().is_ok_and(|channel| channel.get().has_unsent(py));
            if (has_unsent || self.is_half_queued)
                && let Err(error) = channel.call_method0(intern!(py, "hang_up"))
            {
                error.write_unraisable(py, Some(&channel));
            }
        }
    }
}

impl State {
    /// Sends messages of a task that has just begun.
    pub(super) fn post(
        &mut self,
        py: Python<'_>,
        to: Recipients,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.queue(py, to, messages)?;
        self.send_queued(py).map(drop)
    }

    /// Queues messages of a task that has just begun.
    pub(super) fn queue(
        &mut self,
        py: Python<'_>,
        to: Recipients,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.outgoing.is_half_queued = true;
        match to {
            Recipients::All => {
                if matches!(self.gil, GilPolicy::Hold) {
                    // Ctrl-C may have kept the worker, on this thread, from taking the last one.
                    let own = self.outgoing.channels.bind(py).get_item(0)?;
                    let queue = own.getattr(intern!(py, "outbox"))?;
                    while !queue.call_method0(intern!(py, "empty"))?.is_truthy()? {
                        queue.call_method0(intern!(py, "get_nowait"))?;
                    }
                }
                self.outgoing.last = Some(messages.clone().unbind());
                for (worker, message) in messages.try_iter()?.enumerate() {
                    self.outgoing.queue(worker, &message?)?;
                }
            }
            Recipients::Some => {
                let row_resets = self.callbacks.bind(py).getattr(intern!(py, "row_resets"))?;
                for message in messages.try_iter()? {
                    let (worker, message, resets): (_, _, Bound<'_, PyDict>) =
                        message?.extract()?;
                    row_resets.cast::<PyDict>()?.update(resets.as_mapping())?;
                    self.outgoing.queue(worker, &message)?;
                }
            }
        }
        self.outgoing.is_half_queued = false;
        Ok(())
    }

    /// Sends what is queued, as far as the workers read it; returns whether nothing is left. A dead
    /// worker is not reported here but by the wait for the call.
    pub(super) fn send_queued(&mut self, py: Python<'_>) -> PyResult<bool> {
        if !self.outgoing.has_unsent {
            return Ok(true);
        }
        let mut whole = true;
        for channel in self.outgoing.processes(py) {
            match channel.get().flush(py, Some(FLUSH_TIMEOUT), || self.closing.has_begun()) {
                Ok(sent) => whole &= sent,
                Err(error) => {
                    // As after an interrupted wait: a reset may drop the result.
                    self.callbacks.has_abandoned = true;
                    let closing = self.closing.has_begun();
                    let closed = || self.callbacks.explain(py, Error::Closed, Call::Call, "send");
                    return Err(if closing { closed() } else { error });
                }
            }
        }
        self.outgoing.has_unsent = !whole;
        Ok(whole)
    }

    /// Receives the messages that were announced with what a call returned, and drops them.
    pub(super) fn discard_messages(&mut self, py: Python<'_>, received: &Received) -> PyResult<()> {
        let IncomingMessages { faults, rests } =
            self.message_counts.announced(&self.pool, received);
        if !faults.is_empty() || !rests.is_empty() {
            let arguments = (faults, rests, self.callbacks.seconds);
            self.callbacks.bind(py).call_method1(intern!(py, "discard"), arguments)?;
        }
        Ok(())
    }
}

/// A message: its worker, its row (`None` for a task's message, which concerns all rows), and its
/// number.
pub(crate) type Message = (usize, Option<usize>, u64);

/// Number of messages that each worker has announced so far.
///
/// A process that replaces a dead worker continues to count, from a number above all that the dead
/// worker can have used. So a number identifies the sender, also for rows that the dead worker
/// stepped and that were not received yet.
#[derive(Debug)]
pub(crate) struct MessageCounts {
    /// The number of the last message of each worker's process.
    counts: Vec<u64>,
    /// The same for processes that died and whose results were not received yet.
    dead: Vec<u64>,
    /// The rows with those results, and the index of their process in `dead`.
    left: HashMap<usize, usize>,
}

/// The messages that the workers announced with one batch.
#[derive(Debug, Default)]
pub(crate) struct IncomingMessages {
    /// The reasons why rows failed.
    pub(crate) faults: Vec<Message>,
    /// Infos that did not fit into shared memory, in the order in which they were announced.
    pub(crate) rests: Vec<Message>,
}

impl MessageCounts {
    pub(crate) fn new(workers: usize) -> Self {
        Self { counts: vec![0; workers], dead: Vec::new(), left: HashMap::new() }
    }

    /// The number of the next message of a worker, about this row or a task that begins with it; the
    /// first number is 1.
    fn next(&mut self, worker: usize, row: usize) -> u64 {
        let dead = self.left.get(&row);
        let count = dead.map_or(&mut self.counts[worker], |&process| &mut self.dead[process]);
        *count += 1;
        *count
    }

    /// The number from which a process that replaces a worker has to continue.
    pub(crate) fn next_process(&self, pool: &Pool, worker: usize) -> u64 {
        // For each row that was not received: a fault and infos.
        self.counts[worker] + 2 * pool.shards()[worker].len() as u64
    }

    /// Another process has replaced a worker, which left the results of these rows.
    pub(crate) fn follow(&mut self, pool: &Pool, worker: usize, left: Vec<usize>) {
        let count = self.next_process(pool, worker);
        let before = std::mem::replace(&mut self.counts[worker], count);
        let process = self.dead.len();
        for row in left {
            self.left.entry(row).or_insert(process); // unless an earlier process left them
        }
        self.dead.push(before);
    }

    pub(super) fn forget(&mut self, received: &[usize]) {
        if !self.left.is_empty() {
            self.left.retain(|row, _| !received.contains(row));
        }
        if self.left.is_empty() {
            self.dead.clear();
        }
    }

    /// The messages that were announced with what a call returned.
    pub(crate) fn announced(&mut self, pool: &Pool, received: &Received) -> IncomingMessages {
        let mut messages = IncomingMessages::default();
        for event in received.events() {
            match event {
                Event::Failed(row) => {
                    let worker = pool.shard_of(row);
                    let of = received.rows.sent().map(|_| row);
                    messages.faults.push((worker, of, self.next(worker, row)));
                }
                Event::Infos(row, InfosAt::Channel) => {
                    let worker = pool.shard_of(row);
                    messages.rests.push((worker, Some(row), self.next(worker, row)));
                }
                Event::Infos(_, InfosAt::Memory(_)) => {}
            }
        }
        self.forget(received.rows.sent().unwrap_or_default());
        messages
    }
}
