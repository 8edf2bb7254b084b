//! An end of a channel between the caller and a worker process, as Python sees it.
//!
//! Every method is one native call, so Ctrl-C never comes between two halves of it.
//!
//! A call that waits does so in slices. The channel is locked during a slice alone, while the thread is
//! detached, and never while signals are handled: a handler may close this channel.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cartwheel_engine::memory::process_id;
use cartwheel_engine::worker::{Channel, OwnThread};
use pyo3::exceptions::{PyEOFError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;

use crate::descriptor::PyDescriptor;
use crate::error::took_too_long;
use crate::interpreter::enter;

/// A message and its number.
type Numbered = (u64, Vec<u8>);

#[pyclass(frozen, subclass, name = "Channel", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyChannel {
    /// `None` once it is closed.
    open: Mutex<Option<OpenChannel>>,
    owner: u32,
}

#[derive(Debug)]
struct OpenChannel {
    channel: Channel,
    /// In a worker process, the thread that sends, and the way to it.
    ///
    /// The caller reads the announced messages of a batch once all rows of the batch are done. If a
    /// worker waited for that while it still had a row of the batch to step, both would wait
    /// forever. So a worker only leaves its messages for the thread.
    sender: Option<(Sender<Numbered>, OwnThread)>,
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
            let send = move || send_all(through, &unsent);
            sender = Some((way, OwnThread::start("cartwheel-channel".to_owned(), send)?));
        }
        let open = OpenChannel { channel, sender, replaced: 0, left: HashMap::new() };
        Ok(Self { open: Mutex::new(Some(open)), owner: process_id() })
    }

    #[pyo3(signature = (message, number = 0))]
    pub(crate) fn post(
        &self,
        py: Python<'_>,
        message: &Bound<'_, PyAny>,
        number: u64,
    ) -> PyResult<()> {
        let way = self.lock(py).as_ref().and_then(|open| Some(open.sender.as_ref()?.0.clone()));
        if let Some(way) = way {
            let _ = way.send((number, message.extract()?)); // without a caller, it is not missed
            return Ok(());
        }
        self.queue(message)?;
        self.flush(py, Some(Duration::ZERO), || false).map(drop)
    }

    #[pyo3(name = "flush", signature = (timeout = None))]
    fn flush_within(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.flush(py, as_duration(timeout), || false)
    }

    #[pyo3(signature = (number = 0, timeout = None))]
    fn receive_bytes<'py>(
        &self,
        py: Python<'py>,
        number: u64,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let timeout = as_duration(timeout);
        let message = self.wait(py, timeout, &|| false, |open, slice| {
            if (1..=open.replaced).contains(&number) {
                return open.left.remove(&number).ok_or(ErrorKind::UnexpectedEof.into());
            }
            loop {
                let (found, message) = open.channel.receive(slice)?;
                if found >= number {
                    return Ok(message);
                }
            }
        })?;
        Ok(PyBytes::new(py, &message.map_err(|error| raised(py, error))?))
    }

    fn take_descriptor(&self, py: Python<'_>) -> PyResult<PyDescriptor> {
        let mut open = self.lock(py);
        let descriptor = open.as_mut().and_then(|open| open.channel.take_descriptor());
        descriptor.map(PyDescriptor::from).ok_or_else(closed)
    }

    fn follow(&self, py: Python<'_>, earlier: &Bound<'_, Self>, number: u64) {
        let Some(mut earlier) = earlier.get().lock(py).take() else { return };
        // The process has ended, so all of it is there.
        while let Ok((number, message)) = earlier.channel.receive(&mut || true) {
            earlier.left.insert(number, message);
        }
        if let Some(open) = self.lock(py).as_mut() {
            (open.left, open.replaced) = (earlier.left, number);
        }
    }

    #[getter]
    fn replaced(&self, py: Python<'_>) -> u64 {
        self.lock(py).as_ref().map_or(0, |open| open.replaced)
    }

    fn close(&self, py: Python<'_>) {
        if self.owner != process_id() {
            // Locked for good if another thread waited at the fork: it does not exist here.
            drop(self.open.try_lock().ok().and_then(|mut open| open.take()));
            return;
        }
        let Some(OpenChannel { channel, sender, .. }) = self.lock(py).take() else { return };
        if let Some((way, thread)) = sender {
            drop(way);
            py.detach(|| thread.join());
        }
        channel.shut_down();
    }
}

impl PyChannel {
    fn lock<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, Option<OpenChannel>> {
        self.open.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
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
            Some(open) => open
                .channel
                .post(0, bytes.as_bytes(), copies)
                .map_err(|error| raised(message.py(), error)),
            None => Ok(()),
        }
    }

    /// Sends what is queued, within `timeout` and until `ends`; returns whether nothing is left to
    /// be sent. If the other end is gone, the wait for an answer notices it.
    pub(crate) fn flush(
        &self,
        py: Python<'_>,
        timeout: Option<Duration>,
        ends: impl Fn() -> bool + Sync,
    ) -> PyResult<bool> {
        if !self.has_unsent(py) {
            return Ok(true);
        }
        match self.wait(py, timeout, &ends, |open, slice| open.channel.flush(slice))? {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::TimedOut => Ok(false),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(true),
            Err(error) => Err(raised(py, error)),
        }
    }

    /// Calls `run` until it is not interrupted, a slice has passed after `timeout`, or `ends` says so; the
    /// outer error is that of a signal handler.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        timeout: Option<Duration>,
        ends: &dyn Fn() -> bool,
        run: impl Fn(&mut OpenChannel, &mut dyn FnMut() -> bool) -> io::Result<T> + Sync,
    ) -> PyResult<io::Result<T>> {
        enter();
        let began = Instant::now();
        loop {
            let outcome = py.detach(|| {
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                let open = open.as_mut().ok_or(ErrorKind::UnexpectedEof)?;
                run(open, &mut || true)
            });
            match outcome {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => return Ok(outcome),
            }
            py.check_signals()?;
            if ends() {
                return Ok(Err(ErrorKind::Interrupted.into()));
            }
            if timeout.is_some_and(|timeout| began.elapsed() >= timeout) {
                return Ok(Err(ErrorKind::TimedOut.into()));
            }
        }
    }

    /// Whether a queued message was not sent completely.
    pub(crate) fn has_unsent(&self, py: Python<'_>) -> bool {
        self.lock(py).as_ref().is_some_and(|open| open.channel.has_unsent())
    }
}

/// Sends messages until there are no more, or the caller is gone.
fn send_all(mut channel: Channel, unsent: &Receiver<Numbered>) {
    for (number, message) in unsent {
        let queued = channel.post(number, &message, Vec::new());
        match queued.and_then(|()| channel.flush(&mut || false)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return,
            Err(error) => {
                // The caller would wait for messages forever. So the process ends, and the caller
                // finds it dead.
                Python::try_attach(|py| raised(py, error).write_unraisable(py, None));
                std::process::abort();
            }
        }
    }
}

/// The exception for an error of a channel.
fn raised(py: Python<'_>, error: io::Error) -> PyErr {
    match error.kind() {
        ErrorKind::InvalidInput => PyValueError::new_err(error.to_string()),
        ErrorKind::UnexpectedEof => closed(),
        ErrorKind::TimedOut => took_too_long(py),
        _ => error.into(),
    }
}

/// The exception for the end of a channel.
fn closed() -> PyErr {
    PyEOFError::new_err("the other end of the channel is gone")
}

/// A time limit from seconds in Python: negative ones count as 0, and too many mean no limit.
pub(crate) fn as_duration(seconds: Option<f64>) -> Option<Duration> {
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok())
}
