//! The messages that a worker announces: exceptions of a task, infos that do not fit into shared
//! memory, answers to control calls.

use cartwheel_engine::worker::Report;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::channel::PyChannel;
use crate::known::intern;
use crate::worker::shard::PyShard;

impl PyShard {
    /// Keeps a message until the task is acknowledged. The caller waits for one in any case, so
    /// `otherwise` takes the place of what could not be packed.
    fn announce(
        &mut self,
        py: Python<'_>,
        packed: PyResult<Bound<'_, PyAny>>,
        otherwise: impl FnOnce(&Self) -> &Py<PyAny>,
    ) {
        let message = match packed {
            Ok(message) => message.unbind(),
            Err(error) => {
                error.write_unraisable(py, Some(self.worker.bind(py)));
                otherwise(self).clone_ref(py)
            }
        };
        self.unsent.push(message);
    }

    /// Announces the exceptions of a task, if there are some; whether there are.
    pub(super) fn announce_faults(&mut self, py: Python<'_>) -> bool {
        if self.faults.is_empty() {
            return false;
        }
        let worker = self.worker.bind(py).clone();
        let faults = self.faults.drain(..).map(|(row, fault)| (row, fault.into_value(py)));
        let faults: Vec<_> = faults.collect();
        let packed = worker.call_method1(intern!(py, "pack_faults"), (faults,));
        let packed = packed.or_else(|error| {
            let first_row = worker.getattr(intern!(py, "first_row"))?;
            worker.call_method1(intern!(py, "pack_faults"), ([(first_row, error.value(py))],))
        });
        self.announce(py, packed, |shard| &shard.instead_of_answer);
        true
    }

    /// Announces infos that do not fit into shared memory.
    ///
    /// Within one process they are the message. Inline, a function of Python that packs them could be ended by
    /// the exception of a signal handler, which no one would raise.
    pub(super) fn announce_rest(&mut self, py: Python<'_>) {
        let stream = PyBytes::new(py, self.writer.stream());
        if self.channel.bind(py).cast::<PyChannel>().is_err() {
            return self.unsent.push(stream.into_any().unbind());
        }
        let (worker, name) = (self.worker.bind(py).clone(), intern!(py, "pack_rest"));
        let packed = worker.call_method1(name, (stream,));
        let packed = packed.or_else(|error| {
            error.write_unraisable(py, Some(&worker));
            worker.call_method1(name, (py.None(),)) // they are lost
        });
        self.announce(py, packed, |shard| &shard.instead_of_infos);
    }

    /// Announces the answer to a control call.
    pub(super) fn announce_answer(
        &mut self,
        py: Python<'_>,
        packed: PyResult<Bound<'_, PyAny>>,
    ) -> Report {
        self.announce(py, packed, |shard| &shard.instead_of_answer);
        Report { spilled: true, ..Report::default() }
    }

    /// Carries out a control call; returns the answer, packed.
    pub(super) fn answer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let worker = self.worker.bind(py);
        let saving: Option<Vec<usize>> = worker.call_method0(intern!(py, "answer"))?.extract()?;
        for row in saving.into_iter().flatten() {
            let saved = PyBytes::new(py, &self.autoreset.save(row).to_bytes());
            let shown = self.held[row].shown.as_slice();
            let arguments = (row, saved, PyList::new(py, shown)?, self.lost[row]);
            if !worker.call_method1(intern!(py, "save"), arguments)?.is_truthy()? {
                break; // Ctrl-C, which must not wait for the other environments
            }
        }
        worker.call_method0(intern!(py, "pack_answer"))
    }

    /// The answer to a control call that failed with an error that belongs to no environment.
    pub(super) fn answer_failed<'py>(
        &self,
        py: Python<'py>,
        error: PyErr,
    ) -> PyResult<Bound<'py, PyAny>> {
        let worker = self.worker.bind(py);
        worker.call_method1(intern!(py, "answer_failed"), (error.into_value(py),))
    }

    /// Sends what was announced.
    pub(super) fn send_announced(&mut self, py: Python<'_>) {
        let channel = self.channel.bind(py);
        for message in self.unsent.drain(..) {
            self.announced += 1;
            // If that fails, the channel is closed, and the pool is closed or soon will be.
            drop(post(channel, message.bind(py), self.announced));
        }
    }
}

/// Sends a message. No Python code runs, so no exception of a signal handler can lose it.
fn post(channel: &Bound<'_, PyAny>, message: &Bound<'_, PyAny>, number: u64) -> PyResult<()> {
    let py = channel.py();
    if let Ok(channel) = channel.cast::<PyChannel>() {
        return channel.get().post(py, message, number);
    }
    let outbox = channel.getattr(intern!(py, "outbox"))?;
    outbox.call_method1(intern!(py, "put"), ((number, message),)).map(drop)
}
