//! The two ends of a channel between the caller and a worker process, as Python sees them.
//!
//! Every method is one native call, so Ctrl-C never comes between two halves of it.

use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use cartwheel_engine::worker::{Channel, ChannelError};
use pyo3::exceptions::{PyEOFError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;

use crate::descriptor::PyDescriptor;
use crate::error::took_too_long;

/// The caller's end; documented in the stub.
#[pyclass(frozen, subclass, name = "Channel", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyChannel(Mutex<Option<Inside>>);

/// An end that is open.
#[derive(Debug)]
struct Inside {
    channel: Channel,
    /// Messages with numbers up to this one came from processes that were replaced.
    replaced: u64,
    /// Those that were not received, by number.
    left: HashMap<u64, Vec<u8>>,
}

#[pymethods]
impl PyChannel {
    #[new]
    fn new(end: &Bound<'_, PyDescriptor>, pid: u32) -> PyResult<Self> {
        let channel = Channel::new(end.get().try_clone()?, Some(pid))?;
        Ok(Self(Mutex::new(Some(Inside { channel, replaced: 0, left: HashMap::new() }))))
    }

    /// Sends a message, or queues the rest of it if a signal handler raises.
    fn post(&self, py: Python<'_>, message: &Bound<'_, PyAny>) -> PyResult<()> {
        self.queue(message)?;
        self.flush(py, None, || false).map(drop)
    }

    /// The next message; those with lower numbers are dropped.
    #[pyo3(signature = (number = 0, timeout = None))]
    fn receive_bytes<'py>(
        &self,
        py: Python<'py>,
        number: u64,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let timeout = timeout.map(|seconds| Duration::from_secs_f64(seconds.max(0.0)));
        let mut inside = self.lock(py);
        let Some(inside) = inside.as_mut() else { return Err(gone()) };
        if number != 0 && number <= inside.replaced {
            let message = inside.left.remove(&number).ok_or_else(gone)?;
            return Ok(PyBytes::new(py, &message));
        }
        loop {
            let received =
                signalled(py, |interrupted| inside.channel.receive(timeout, interrupted))?;
            if received.number >= number {
                return Ok(PyBytes::new(py, &received.bytes));
            }
        }
    }

    /// Takes over what an earlier process sent and nobody received, up to this number.
    fn follow(&self, py: Python<'_>, earlier: &Bound<'_, Self>, number: u64) -> PyResult<()> {
        let earlier = earlier.get().lock(py).take();
        let Some(Inside { mut channel, mut left, .. }) = earlier else { return Err(gone()) };
        // Its process has ended, so all of it is there.
        while let Ok(message) = channel.receive(Some(Duration::ZERO), &mut || false) {
            left.insert(message.number, message.bytes);
        }
        let mut inside = self.lock(py);
        let Some(inside) = inside.as_mut() else { return Err(gone()) };
        (inside.left, inside.replaced) = (left, number);
        Ok(())
    }

    /// Messages with numbers up to this one came from processes that were replaced.
    #[getter]
    fn replaced(&self, py: Python<'_>) -> u64 {
        let inside = self.lock(py);
        inside.as_ref().map_or(0, |inside| inside.replaced)
    }

    /// Closes this end.
    pub(crate) fn close(&self, py: Python<'_>) {
        self.lock(py).take();
    }
}

impl PyChannel {
    fn lock<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, Option<Inside>> {
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message: bytes, or a tuple of bytes and the descriptors that travel with them.
    pub(crate) fn queue(&self, message: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = message.py();
        let (bytes, descriptors) = match message.cast::<PyBytes>() {
            Ok(bytes) => (bytes.clone(), Vec::new()),
            Err(_) => message.extract::<(Bound<'_, PyBytes>, Vec<Bound<'_, PyDescriptor>>)>()?,
        };
        let copies = descriptors.iter().map(|descriptor| descriptor.get().try_clone());
        let copies = copies.collect::<PyResult<Vec<_>>>()?;
        let mut inside = self.lock(py);
        let Some(inside) = inside.as_mut() else { return Ok(()) };
        inside.channel.post(0, bytes.as_bytes(), copies).map_err(|error| raised(py, error))
    }

    /// Sends what is queued, within `timeout` and until `ends`; returns whether nothing is left.
    pub(crate) fn flush(
        &self,
        py: Python<'_>,
        timeout: Option<Duration>,
        ends: impl Fn() -> bool + Sync,
    ) -> PyResult<bool> {
        let mut inside = self.lock(py);
        let Some(inside) = inside.as_mut() else { return Ok(true) };
        if !inside.channel.owes() {
            return Ok(true);
        }
        signalled(py, |interrupted| {
            match inside.channel.flush(timeout, &mut || ends() || interrupted()) {
                Err(ChannelError::TimedOut) => Ok(false),
                Err(ChannelError::HungUp) => Ok(true), // whoever waits for the answer notices it
                sent => sent.map(|()| true),
            }
        })
    }

    /// Whether a queued message was not sent completely.
    pub(crate) fn owes(&self, py: Python<'_>) -> bool {
        let inside = self.lock(py);
        inside.as_ref().is_some_and(|inside| inside.channel.owes())
    }
}

/// The worker's end; documented in the stub.
///
/// It never waits for the caller to read. The caller reads the announced messages of a batch once all
/// rows of the batch are done. If a worker waited for that while it still had a row of the batch to
/// step, both ends would wait for ever. So a thread of its own sends the messages.
#[pyclass(frozen, subclass, name = "WorkerChannel", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyWorkerChannel(Mutex<Worker>);

#[derive(Debug)]
struct Worker {
    channel: Channel,
    /// The number of the last message that was announced.
    announced: u64,
    /// Takes messages to the thread, until nothing more is to be sent.
    unsent: Option<Sender<(u64, Vec<u8>)>>,
    thread: Option<JoinHandle<()>>,
}

#[pymethods]
impl PyWorkerChannel {
    #[new]
    fn new(end: &Bound<'_, PyDescriptor>) -> PyResult<Self> {
        let channel = Channel::new(end.get().try_clone()?, None)?;
        let sender = channel.sender()?;
        let (unsent, messages) = mpsc::channel();
        let thread = std::thread::Builder::new().name("cartwheel-channel".to_owned());
        let thread = Some(thread.spawn(move || send_all(sender, &messages))?);
        Ok(Self(Mutex::new(Worker { channel, announced: 0, unsent: Some(unsent), thread })))
    }

    /// Sends a message that the caller waits for.
    fn post(&self, py: Python<'_>, message: &Bound<'_, PyBytes>) {
        self.lock(py).send(0, message.as_bytes());
    }

    /// Sends a message that the pool announces to the caller.
    fn announce(&self, py: Python<'_>, message: &Bound<'_, PyBytes>) {
        let mut worker = self.lock(py);
        worker.announced += 1;
        let number = worker.announced;
        worker.send(number, message.as_bytes());
    }

    /// Sets the last number that is used up, for a worker that replaces a dead one.
    fn count_on(&self, py: Python<'_>, announced: u64) {
        self.lock(py).announced = announced;
    }

    /// The next message from the caller.
    fn receive_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut worker = self.lock(py);
        let channel = &mut worker.channel;
        let received = signalled(py, |interrupted| channel.receive(None, interrupted))?;
        Ok(PyBytes::new(py, &received.bytes))
    }

    /// The first of the descriptors that came with messages.
    fn take_descriptor(&self, py: Python<'_>) -> PyResult<PyDescriptor> {
        self.lock(py).channel.take_descriptor().map(PyDescriptor::from).ok_or_else(gone)
    }

    /// Waits until everything is sent, or the caller is gone. Nothing can be sent afterwards.
    fn finish(&self, py: Python<'_>) {
        let mut worker = self.lock(py);
        worker.unsent = None;
        if let Some(thread) = worker.thread.take() {
            drop(py.detach(|| thread.join()));
        }
    }
}

impl PyWorkerChannel {
    fn lock<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, Worker> {
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    fn send(&self, number: u64, message: &[u8]) {
        if let Some(unsent) = &self.unsent {
            let _ = unsent.send((number, message.to_vec())); // without a caller, nobody waits for it
        }
    }
}

/// Sends messages until there are no more, or the caller is gone.
fn send_all(mut channel: Channel, messages: &Receiver<(u64, Vec<u8>)>) {
    while let Ok((number, message)) = messages.recv() {
        let queued = channel.post(number, &message, Vec::new());
        match queued.and_then(|()| channel.flush(None, &mut || false)) {
            Ok(()) => {}
            Err(ChannelError::HungUp) => return,
            Err(error) => {
                // The caller would wait for messages for ever. So the process ends, and the caller
                // finds it dead.
                eprintln!("cartwheel: {error}");
                std::process::abort();
            }
        }
    }
}

/// Runs a call of a channel while other threads may run Python; a signal handler that raises ends it.
fn signalled<T: Send>(
    py: Python<'_>,
    run: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, ChannelError> + Send,
) -> PyResult<T> {
    let mut raised_by_handler = None;
    let outcome = py.detach(|| {
        run(&mut || {
            raised_by_handler = Python::attach(|py| py.check_signals().err());
            raised_by_handler.is_some()
        })
    });
    outcome.map_err(|error| raised_by_handler.unwrap_or_else(|| raised(py, error)))
}

/// The exception for an error of a channel.
fn raised(py: Python<'_>, error: ChannelError) -> PyErr {
    let text = error.to_string();
    match error {
        ChannelError::TooLarge { .. } => PyValueError::new_err(text),
        ChannelError::HungUp => gone(),
        ChannelError::TimedOut => took_too_long(py, text),
        ChannelError::Os(error) => error.into(),
        _ => PyRuntimeError::new_err(text),
    }
}

/// The exception for the end of a channel.
fn gone() -> PyErr {
    PyEOFError::new_err("the other end of the channel is gone")
}
