//! Exclusive access: one call at a time uses the state of a pool.
//!
//! No thread waits for a call. A second thread, or an environment that calls back, is refused
//! while a call is running, since that call may need the interpreter to continue. Only a thread that closes
//! waits for the call of another thread. A call of its own, in which a signal handler or an environment
//! closes, cannot go on before the close returns: that call closes the pool when it returns.
//!
//! A look at the state is not a call: it runs no Python code and ends by itself, so every thread waits
//! for it. Without a GIL, looks and calls of several threads meet at any time.
//!
//! A panic leaves the state half changed, and poisons its lock. From then on every call raises the
//! error of the call that panicked, and the state can only be closed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, TryLockResult};
use std::time::{Duration, Instant};

use cartwheel_core::panic_message;
use cartwheel_engine::Call;
use cartwheel_engine::memory::process_id;
use pyo3::exceptions::PyEOFError;
use pyo3::prelude::*;

use crate::error::{
    already_pending, broken, broken_text, closed, closed_text, forked, forked_text, noted,
    pending_text,
};
use crate::interpreter::{attach_again, enter, this_thread};
use crate::pool::{Refused, State};
use crate::xla::ErrorCode;

/// The note on the exception for a call within another one.
const RUNNING: &str = "that call has not returned: another thread is in it, or an environment or a \
                       signal handler within it makes this one. Make one call at a time";
/// The pool is not being closed.
const OPEN: u8 = 0;
/// A thread waits to close it, as soon as no other thread is in a call.
const CLOSING: u8 = 1;
/// The wait has timed out, or was for the thread itself: the thread that is in a call closes the pool when
/// it returns.
const LEFT: u8 = 2;
/// The number of no thread.
const NO_THREAD: usize = 0;
/// Time that workers have to end when that thread closes the pool.
const LAST_GRACE: Duration = Duration::from_secs(1);

/// The progress of a close: [`OPEN`], [`CLOSING`] or [`LEFT`].
#[derive(Debug)]
pub(super) struct Closing(AtomicU8);

impl Closing {
    pub(super) const fn new() -> Self {
        Self(AtomicU8::new(OPEN))
    }

    /// Whether a running call should return.
    pub(super) fn has_begun(&self) -> bool {
        // No order is needed: nothing is read because of it that a lock, or the fence of `is_left`,
        // does not order.
        self.0.load(Ordering::Relaxed) != OPEN
    }

    /// Whether the thread that was in a call, and has released the state, is to close it.
    fn is_left(&self) -> bool {
        // The lock's release comes before the load. Without the fence, a processor may carry out
        // the load first, and the thread that closes may find the state still locked.
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) == LEFT
    }
}

/// Says which call holds the lock, until it is dropped, before the lock is released. No order is
/// needed: a thread finds its own number only while it is in the call itself; and a call that asks
/// whether this one began attached asks again, until this is so or it gets the lock.
struct Running<'a>(&'a Exclusive);

impl<'a> Running<'a> {
    fn new(exclusive: &'a Exclusive, call: Call, is_attached: bool) -> Self {
        exclusive.running.store(call as u8, Ordering::Relaxed);
        exclusive.thread.store(this_thread(), Ordering::Relaxed);
        exclusive.is_attached.store(is_attached, Ordering::Relaxed);
        Self(exclusive)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.thread.store(NO_THREAD, Ordering::Relaxed);
        self.0.is_attached.store(false, Ordering::Relaxed);
    }
}

/// Lets one call at a time use the state of a pool, until it is closed.
#[derive(Debug)]
pub(crate) struct Exclusive {
    /// `None` once closed; poisoned once a call has panicked.
    state: Mutex<Option<State>>,
    /// The call that panicked first, and the message of the panic.
    panic: OnceLock<(String, String)>,
    closing: Arc<Closing>,
    /// The call that holds the lock, for the error of a second thread.
    running: AtomicU8,
    /// The thread of this call, [`NO_THREAD`] where none is running.
    thread: AtomicUsize,
    /// Whether the call that holds the lock began attached, and so ends attached.
    is_attached: AtomicBool,
    /// A callable for after the close, where the thread in a call closes for its own signal handler.
    after: Mutex<Option<Py<PyAny>>>,
    /// The class of the vector environment, for errors.
    class_name: String,
    /// The process that may use the pool.
    owner: u32,
    /// The number by which compiled functions know the pool.
    number: OnceLock<i64>,
}

impl Exclusive {
    /// Access that ends when `closing` says so.
    pub(super) fn new(state: State, closing: Arc<Closing>, class_name: String) -> Self {
        Self {
            state: Mutex::new(Some(state)),
            panic: OnceLock::new(),
            closing,
            running: AtomicU8::new(Call::Step as u8),
            thread: AtomicUsize::new(NO_THREAD),
            is_attached: AtomicBool::new(false),
            after: Mutex::new(None),
            class_name,
            owner: process_id(),
            number: OnceLock::new(),
        }
    }

    /// The number by which compiled functions know the pool; `new` gives one at the first call.
    pub(crate) fn number(&self, new: impl FnOnce() -> i64) -> i64 {
        *self.number.get_or_init(new)
    }

    /// Calls `run` with the state; raises where the caller may not use it.
    pub(super) fn with_pool<R>(
        &self,
        py: Python<'_>,
        call: Call,
        calling: &str,
        run: impl FnOnce(&mut State) -> PyResult<R>,
    ) -> PyResult<R> {
        self.check(py)?;
        enter();
        // State that a panic leaves half changed is behind the lock, which is poisoned before the
        // panic is caught.
        let returned = catch_unwind(AssertUnwindSafe(|| self.with_lock(py, call, calling, run)));
        let outcome = match returned {
            // At once: a move of what an error takes waits for the stores before it.
            Ok(Ok(result)) if !self.closing.has_begun() => return Ok(result),
            Ok(outcome) => outcome,
            Err(panic) => {
                self.panic.get_or_init(|| (calling.to_owned(), message_of(&*panic)));
                Err(self.broken(py))
            }
        };
        if self.closing.has_begun() && self.closing.is_left() {
            self.end_left(py);
            // Its channels were closed before it.
            return outcome.map_err(|error| {
                if error.is_instance_of::<PyEOFError>(py) { self.closed(py) } else { error }
            });
        }
        outcome
    }

    /// Calls `run` with the state, for a thread that need not be attached; refuses where the caller may
    /// not use it.
    pub(crate) fn with_pool_detached<R>(
        &self,
        call: Call,
        calling: &str,
        run: impl FnOnce(&mut State) -> Result<R, Refused>,
    ) -> Result<R, Refused> {
        let refused = |text: String| Refused::new(ErrorCode::FailedPrecondition, text);
        if self.owner != process_id() {
            return Err(refused(forked_text(self.owner)));
        }
        if self.closing.has_begun() {
            return Err(refused(closed_text(&self.class_name)));
        }
        let broken = || {
            let panic = self.panic.get();
            refused(broken_text(panic.map(|(calling, message)| (&**calling, &**message))))
        };
        // As in `with_pool`.
        let returned = catch_unwind(AssertUnwindSafe(|| {
            // Another such call needs nothing of this thread to end.
            let mut state = match self.lock(|| self.is_attached.load(Ordering::Relaxed)) {
                Ok(state) => state,
                Err(TryLockError::Poisoned(_)) => return Err(broken()),
                Err(TryLockError::WouldBlock) => {
                    return Err(refused(pending_text(calling, &self.running_call())));
                }
            };
            let _running = Running::new(self, call, false);
            state.as_mut().map_or_else(|| Err(refused(closed_text(&self.class_name))), run)
        }));
        let outcome = returned.unwrap_or_else(|panic| {
            self.panic.get_or_init(|| (calling.to_owned(), message_of(&*panic)));
            Err(broken())
        });
        if self.closing.has_begun() && self.closing.is_left() {
            attach_again(|py| self.end_left(py));
        }
        outcome
    }

    fn with_lock<R>(
        &self,
        py: Python<'_>,
        call: Call,
        calling: &str,
        run: impl FnOnce(&mut State) -> PyResult<R>,
    ) -> PyResult<R> {
        let mut state = match self.lock(|| self.is_in_call()) {
            Ok(state) => state,
            Err(TryLockError::Poisoned(_)) => return Err(self.broken(py)),
            Err(TryLockError::WouldBlock) => {
                let error = already_pending(py, calling, &self.running_call());
                return Err(noted(py, error, RUNNING));
            }
        };
        let _running = Running::new(self, call, true);
        match state.as_mut() {
            Some(state) => run(state),
            None => Err(self.closed(py)),
        }
    }

    /// Calls `visit` with the state, for a garbage collector, which runs attached. Not while a call uses it,
    /// which no collection sees begin or end: then the state's objects count as used.
    ///
    /// A call of a compiled function begins and ends at any time, and a collection must not wait for it: an
    /// environment may call Python, and waits for the interpreter then. So the objects of a pool that such
    /// functions know count as used. They are those of native rows, which refer to no vector environment.
    pub(super) fn visit<R>(&self, visit: impl FnOnce(&State) -> R) -> Option<R> {
        if self.number.get().is_some() {
            return None;
        }
        self.state.try_lock().ok()?.as_ref().map(visit)
    }

    /// Looks at the state, unless it is closed or broken, or a call uses it. `look` runs no Python code.
    pub(super) fn look<R>(&self, look: impl FnOnce(&mut State) -> R) -> Option<R> {
        self.lock(|| self.is_in_call()).ok()?.as_mut().map(look)
    }

    /// The state, as soon as nothing else uses it. `WouldBlock` while a use `refuses` this one, or
    /// where its thread does not exist: in a forked child.
    fn lock(&self, refuses: impl Fn() -> bool) -> TryLockResult<MutexGuard<'_, Option<State>>> {
        loop {
            match self.state.try_lock() {
                Err(TryLockError::WouldBlock) if !refuses() && self.owner == process_id() => {
                    std::thread::yield_now();
                }
                outcome => return outcome,
            }
        }
    }

    /// Whether a thread is in a call. If not, only a look, or a call that begins or ends, locks the state.
    fn is_in_call(&self) -> bool {
        self.thread.load(Ordering::Relaxed) != NO_THREAD
    }

    /// Whether this thread is in a call.
    fn is_own_call(&self) -> bool {
        self.thread.load(Ordering::Relaxed) == this_thread()
    }

    /// The name of the call that is running, or was the last.
    fn running_call(&self) -> String {
        let running = Call::from_number(self.running.load(Ordering::Relaxed));
        running.expect("only calls are stored").to_string()
    }

    /// Raises when the pool is closed, or belongs to another process.
    pub(super) fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.owner != process_id() {
            return Err(forked(py, self.owner));
        }
        if self.closing.has_begun() {
            return Err(self.closed(py));
        }
        Ok(())
    }

    /// The exception for a call after the close.
    pub(super) fn closed(&self, py: Python<'_>) -> PyErr {
        closed(py, &self.class_name)
    }

    /// The exception for a call that panicked, and for every later one.
    fn broken(&self, py: Python<'_>) -> PyErr {
        let panic = self.panic.get(); // `None` for a moment, between the panic and its message
        broken(py, panic.map(|(calling, message)| (calling.as_str(), message.as_str())))
    }

    /// Closes the pool permanently; returns the workers that did not end by themselves within
    /// `grace`. `None`: this thread is in a call, which closes the pool and then calls `after`.
    pub(super) fn close(
        &self,
        py: Python<'_>,
        grace: Duration,
        after: Option<Py<PyAny>>,
    ) -> Option<Vec<usize>> {
        if self.owner != process_id() {
            return Some(Vec::new());
        }
        self.closing.0.fetch_max(CLOSING, Ordering::Relaxed); // ends the wait of a thread in a call
        if self.is_own_call() {
            let mut kept = self.after.lock().unwrap_or_else(PoisonError::into_inner);
            let before = std::mem::replace(&mut *kept, after);
            drop(kept);
            drop(before); // without the lock: this may run Python code
            self.closing.0.store(LEFT, Ordering::Relaxed); // this thread reads it
            return None;
        }
        let (began, limit) = (Instant::now(), grace.saturating_add(Duration::from_millis(500)));
        loop {
            match self.end(py, grace) {
                Some(unended) => return Some(unended),
                None if began.elapsed() < limit => {
                    py.detach(|| std::thread::sleep(Duration::from_millis(1)));
                }
                None => break,
            }
        }
        // Another thread is inside an environment and closes the pool when it returns. Either it
        // finds this word, which it reads after releasing the state, or the state is free by now:
        // this store comes before the lock is tried. The fence pairs with the one in `is_left`.
        self.closing.0.store(LEFT, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Some(self.end(py, grace).unwrap_or_default())
    }

    /// Drops the state in a forked child, which cannot use it, unless a call is running: its thread does not
    /// exist there.
    pub(super) fn drop_in_child(&self) {
        if self.owner != process_id() {
            drop(self.state.try_lock().ok().and_then(|mut state| state.take()));
        }
    }

    /// Closes the state for a thread that has left that to the call of this one.
    fn end_left(&self, py: Python<'_>) {
        self.end(py, LAST_GRACE);
        let after = self.after.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(error)) = after.map(|after| after.call0(py)) {
            error.write_unraisable(py, None);
        }
    }

    /// Closes the state, if that was not done: returns the workers that did not end within `grace`.
    /// `None` while another thread is in a call.
    fn end(&self, py: Python<'_>, grace: Duration) -> Option<Vec<usize>> {
        let state = match self.lock(|| self.is_in_call()) {
            Ok(mut state) => state.take(),
            Err(TryLockError::Poisoned(broken)) => broken.into_inner().take(), // only for closing
            Err(TryLockError::WouldBlock) => return None,
        };
        let Some(mut state) = state else { return Some(Vec::new()) };
        // Closing a half-changed state may panic too. Python then ends the remaining processes.
        let unended = catch_unwind(AssertUnwindSafe(|| state.close(py, grace)));
        Some(unended.unwrap_or_default())
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    panic_message(panic).unwrap_or("it has no message").to_owned()
}
