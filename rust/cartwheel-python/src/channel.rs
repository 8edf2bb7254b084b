//! An end of a channel between the caller and a worker process, as Python sees it.
//!
//! Every method is one native call, so Ctrl-C never comes between two halves of it.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use cartwheel_engine::worker::Channel;
use pyo3::exceptions::{PyEOFError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;

use crate::descriptor::PyDescriptor;
use crate::error::took_too_long;

/// A message and its number.
type Numbered = (u64, Vec<u8>);

/// Documented in the stub; `None` once it is closed.
#[pyclass(frozen, subclass, name = "Channel", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyChannel(Mutex<Option<Inside>>);

#[derive(Debug)]
struct Inside {
    channel: Channel,
    /// In a worker process, the thread that sends, and the way to it.
    ///
    /// The caller reads the announced messages of a batch once all rows of the batch are done. If a
    /// worker waited for that while it still had a row of the batch to step, both would wait for
    /// ever. So a worker only leaves its messages for the thread.
    sender: Option<(Sender<Numbered>, JoinHandle<()>)>,
    /// Messages with numbers up to this one came from processes that were replaced.
    replaced: u64,
    /// Those that were not received, by number.
    left: HashMap<u64, Vec<u8>>,
}

#[pymethods]
impl PyChannel {
    #[new]
    #[pyo3(signature = (end, pid = None))]
    fn new(end: &Bound<'_, PyDescriptor>, pid: Option<u32>) -> PyResult<Self> {
        let channel = Channel::new(end.get().try_clone()?, pid)?;
        let mut sender = None;
        if pid.is_none() {
            let (through, (way, unsent)) = (channel.sender()?, mpsc::channel());
            let thread = std::thread::Builder::new().name("cartwheel-channel".to_owned());
            sender = Some((way, thread.spawn(move || send_all(through, &unsent))?));
        }
        let inside = Inside { channel, sender, replaced: 0, left: HashMap::new() };
        Ok(Self(Mutex::new(Some(inside))))
    }

    /// Sends a message: bytes, or a tuple of bytes and the descriptors that travel with them.
    #[pyo3(signature = (message, number = 0))]
    fn post(&self, py: Python<'_>, message: &Bound<'_, PyAny>, number: u64) -> PyResult<()> {
        if let Some(Inside { sender: Some((way, _)), .. }) = self.lock(py).as_ref() {
            let _ = way.send((number, message.extract()?)); // without a caller, nobody misses it
            return Ok(());
        }
        self.queue(message)?;
        self.flush(py, None, || false).map(drop)
    }

    /// The next message with at least this number; others are dropped.
    #[pyo3(signature = (number = 0, timeout = None))]
    fn receive_bytes<'py>(
        &self,
        py: Python<'py>,
        number: u64,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let timeout = as_duration(timeout);
        let mut inside = self.lock(py);
        let Some(inside) = inside.as_mut() else { return Err(closed()) };
        if (1..=inside.replaced).contains(&number) {
            let message = inside.left.remove(&number).ok_or_else(closed)?;
            return Ok(PyBytes::new(py, &message));
        }
        loop {
            let (found, message) =
                signalled(py, |interrupted| inside.channel.receive(timeout, interrupted))?;
            if found >= number {
                return Ok(PyBytes::new(py, &message));
            }
        }
    }

    /// The first of the descriptors that came with messages.
    fn take_descriptor(&self, py: Python<'_>) -> PyResult<PyDescriptor> {
        let mut inside = self.lock(py);
        let descriptor = inside.as_mut().and_then(|inside| inside.channel.take_descriptor());
        descriptor.map(PyDescriptor::from).ok_or_else(closed)
    }

    /// Takes over what earlier processes sent and nobody received, up to this number.
    fn follow(&self, py: Python<'_>, earlier: &Bound<'_, Self>, number: u64) {
        let Some(mut earlier) = earlier.get().lock(py).take() else { return };
        // The process has ended, so all of it is there.
        while let Ok((number, message)) =
            earlier.channel.receive(Some(Duration::ZERO), &mut || false)
        {
            earlier.left.insert(number, message);
        }
        if let Some(inside) = self.lock(py).as_mut() {
            (inside.left, inside.replaced) = (earlier.left, number);
        }
    }

    /// Messages with numbers up to this one came from processes that were replaced.
    #[getter]
    fn replaced(&self, py: Python<'_>) -> u64 {
        self.lock(py).as_ref().map_or(0, |inside| inside.replaced)
    }

    /// Closes this end. A worker's end sends everything first, unless the caller is gone.
    fn close(&self, py: Python<'_>) {
        let inside = self.lock(py).take();
        if let Some(Inside { sender: Some((way, thread)), .. }) = inside {
            drop(way);
            drop(py.detach(|| thread.join()));
        }
    }
}

impl PyChannel {
    fn lock<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, Option<Inside>> {
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message, see `post`.
    pub(crate) fn queue(&self, message: &Bound<'_, PyAny>) -> PyResult<()> {
        let (bytes, descriptors) = match message.cast::<PyBytes>() {
            Ok(bytes) => (bytes.clone(), Vec::new()),
            Err(_) => message.extract::<(Bound<'_, PyBytes>, Vec<Bound<'_, PyDescriptor>>)>()?,
        };
        let copies = descriptors.iter().map(|descriptor| descriptor.get().try_clone());
        let copies = copies.collect::<PyResult<Vec<_>>>()?;
        match self.lock(message.py()).as_mut() {
            Some(inside) => inside.channel.post(0, bytes.as_bytes(), copies).map_err(raised),
            None => Ok(()),
        }
    }

    /// Sends what is queued, within `timeout` and until `ends`; returns whether nothing is left to
    /// be sent. If the other end is gone, whoever waits for an answer notices it.
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
                Err(error) if error.kind() == ErrorKind::TimedOut => Ok(false),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(true),
                sent => sent.map(|()| true),
            }
        })
    }

    /// Whether a queued message was not sent completely.
    pub(crate) fn owes(&self, py: Python<'_>) -> bool {
        self.lock(py).as_ref().is_some_and(|inside| inside.channel.owes())
    }
}

/// Sends messages until there are no more, or the caller is gone.
fn send_all(mut channel: Channel, unsent: &Receiver<Numbered>) {
    for (number, message) in unsent {
        let queued = channel.post(number, &message, Vec::new());
        match queued.and_then(|()| channel.flush(None, &mut || false)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return,
            Err(error) => {
                // The caller would wait for messages for ever. So the process ends, and the caller
                // finds it dead.
                Python::try_attach(|py| raised(error).write_unraisable(py, None));
                std::process::abort();
            }
        }
    }
}

/// Runs a call of a channel while other threads may run Python; a signal handler that raises ends it.
fn signalled<T: Send>(
    py: Python<'_>,
    run: impl FnOnce(&mut dyn FnMut() -> bool) -> io::Result<T> + Send,
) -> PyResult<T> {
    let mut by_handler = None;
    let outcome = py.detach(|| {
        run(&mut || {
            by_handler = Python::attach(|py| py.check_signals().err());
            by_handler.is_some()
        })
    });
    outcome.map_err(|error| by_handler.unwrap_or_else(|| raised(error)))
}

/// The exception for an error of a channel.
fn raised(error: io::Error) -> PyErr {
    match error.kind() {
        ErrorKind::InvalidInput => PyValueError::new_err(error.to_string()),
        ErrorKind::UnexpectedEof => closed(),
        ErrorKind::TimedOut => Python::attach(took_too_long),
        _ => error.into(),
    }
}

/// The exception for the end of a channel.
fn closed() -> PyErr {
    PyEOFError::new_err("the other end of the channel is gone")
}

/// A time limit from seconds in Python: negative ones count as 0, and too many are no limit.
pub(crate) fn as_duration(seconds: Option<f64>) -> Option<Duration> {
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok())
}
