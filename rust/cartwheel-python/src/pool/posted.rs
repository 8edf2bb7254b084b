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

use crate::pool::{PyPool, State};

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

impl PyPool {
    /// Leaves messages for native shards, before what they are about begins.
    pub(crate) fn leave(
        &self,
        py: Python<'_>,
        to: To,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.link.bind(py).call_method1(to.method(py), (0, messages)).map(drop)
    }

    /// Sends messages about what was begun just now.
    pub(crate) fn post(
        &self,
        py: Python<'_>,
        state: &mut State,
        to: To,
        messages: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let posts = &mut state.posts;
        posts.count += 1;
        posts.owed.push_back((posts.count, to, messages.clone().unbind()));
        self.post_owed(py, state)
    }

    /// Sends what is owed, the oldest first.
    pub(crate) fn post_owed(&self, py: Python<'_>, state: &mut State) -> PyResult<()> {
        while let Some((number, to, messages)) = state.posts.owed.front() {
            let posted = self.link.bind(py).call_method1(to.method(py), (number, messages));
            if let Err(error) = posted {
                state.late = true; // as after a wait that was interrupted: a reset may drop it
                return Err(error);
            }
            state.posts.owed.pop_front();
        }
        Ok(())
    }

    /// Before the end: lets nobody wait for what is owed and will not come.
    pub(crate) fn hang_up_if_owing(&self, py: Python<'_>, state: &State) {
        if state.posts.owed.is_empty() {
            return;
        }
        let link = self.link.bind(py);
        if let Err(error) = link.call_method0(intern!(py, "hang_up")) {
            error.write_unraisable(py, Some(link));
        }
    }
}
