//! MuJoCo's errors and warnings: those of our calls belong to their row.
//!
//! By itself MuJoCo ends the process at an error, and writes warnings into a file in the working
//! directory. It has two variables for handlers, which are global. While a model lives, ours are
//! there; whatever else is put there is kept, and ours are put back by the next call. Within a guarded
//! call, an error unwinds to the guard, and a warning is kept. Elsewhere the handlers that were there
//! before are called, or MuJoCo does what it does without any. When the last model has gone, those
//! are put back.
//!
//! MuJoCo's module for Python catches errors of its own calls first, so they never come here.
//!
//! # Invariants
//!
//! 1. **Handlers** are called by MuJoCo with a C string, on a thread that runs its code.
//! 2. **Unwinding.** An error unwinds through frames of MuJoCo only: `mju_error` does not expect to
//!    go on, so no frame between it and the guard has work left, except memory on the stack of the
//!    data, which `mj_resetData` frees. The library has tables for unwinding; without them the
//!    process aborts, as it would without a handler. Run on x86-64 Linux.
//! 3. **Pointers** in MuJoCo's variables are its handlers' addresses, or null.
#![expect(unsafe_code, reason = "handlers that C calls, see the invariants")]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::io::Write;
use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cartwheel::{Error, Failure};

use crate::clock::{self, IS_GUARDED};
use crate::library::Library;

thread_local! {
    /// MuJoCo's warning of the guarded call.
    static WARNING: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// An error of MuJoCo, on its way to the guard.
struct Raised(String);

/// Calls MuJoCo. Returns the result, and what it warned of.
///
/// # Errors
///
/// MuJoCo's error. The data of the simulation must be reset before it is used again.
#[inline]
pub(crate) fn guarded<T>(
    library: &Library,
    call: impl FnOnce() -> T,
) -> (Result<T, Failure>, Option<String>) {
    if !are_ours(library) {
        put_in(&mut installed(), library);
    }
    // A callback of MuJoCo, within a guarded call, may step another row on this thread.
    let (was_guarded, earlier) = (IS_GUARDED.replace(true), WARNING.take());
    let result = catch_unwind(AssertUnwindSafe(call));
    IS_GUARDED.set(was_guarded);
    let warning = WARNING.replace(earlier);
    let result = result.map_err(|payload| match payload.downcast::<Raised>() {
        Ok(raised) => Failure::new(format!("MuJoCo: {}", raised.0)),
        Err(panic) => resume_unwind(panic),
    });
    (result, warning)
}

/// The type of a handler.
type Handler = unsafe extern "C-unwind" fn(*const c_char);

/// The handler of errors.
unsafe extern "C-unwind" fn on_error(message: *const c_char) {
    if IS_GUARDED.get() {
        let raised = Box::new(Raised(text(message)));
        resume_unwind(raised); // invariant 2
    }
    let Some(installed) = *installed() else { return };
    if let Some(before) = handler(installed.error_before) {
        // SAFETY: a handler that was installed before ours gets what we got (invariants 1 and 3).
        return unsafe { before(message) };
    }
    // `Release`, as in `put_in`.
    installed.library.user_error().store(null_mut(), Release);
    // SAFETY: a C string (invariant 1). Without a handler this ends the process.
    unsafe { installed.library.raise_error(message) };
}

/// The handler of warnings.
unsafe extern "C-unwind" fn on_warning(message: *const c_char) {
    if IS_GUARDED.get() {
        let message = text(message);
        WARNING.with_borrow_mut(|warning| match warning {
            None => *warning = Some(message),
            Some(earlier) => *earlier = format!("{earlier}; {message}"),
        });
        return;
    }
    let Some(installed) = *installed() else { return };
    if let Some(before) = handler(installed.warning_before) {
        // SAFETY: a handler that was installed before ours gets what we got (invariants 1 and 3).
        return unsafe { before(message) };
    }
    // SAFETY: a C string (invariant 1).
    unsafe { installed.library.write_log(message) };
    let text = text(message);
    // A closed stderr is not a reason to fail.
    drop(writeln!(std::io::stderr(), "WARNING: {text}\n"));
}

/// A message of MuJoCo.
fn text(message: *const c_char) -> String {
    if message.is_null() {
        return "an error without a message".to_owned();
    }
    // SAFETY: a C string (invariant 1).
    unsafe { CStr::from_ptr(message) }.to_string_lossy().trim_end().to_owned()
}

/// A handler from a variable of MuJoCo.
fn handler(pointer: *mut c_void) -> Option<Handler> {
    // SAFETY: null, or the address of a handler (invariant 3).
    unsafe { transmute::<*mut c_void, Option<Handler>>(pointer) }
}

/// Our handlers, of errors and of warnings: one address each, wherever it is read.
static OURS: [Handler; 2] = [on_error, on_warning];

fn ours() -> [*mut c_void; 2] {
    OURS.map(|handler| handler as *mut c_void)
}

fn variables(library: &Library) -> [&'static AtomicPtr<c_void>; 2] {
    [library.user_error(), library.user_warning()]
}

fn are_ours(library: &Library) -> bool {
    // `Relaxed`: it only decides whether to put them in. What `put_in` remembers is behind the lock.
    variables(library).map(|variable| variable.load(Relaxed)) == ours()
}

/// The handlers that were there before ours, and whose they are.
#[derive(Clone, Copy)]
pub(crate) struct Installed {
    library: Library,
    /// Number of models that need our handlers.
    models: usize,
    error_before: *mut c_void,
    warning_before: *mut c_void,
}

// SAFETY: the pointers are addresses of functions.
unsafe impl Send for Installed {}

/// Nothing until the first model; the last model leaves it, for an error that is on its way.
static INSTALLED: Mutex<Option<Installed>> = Mutex::new(None);

/// Locks it; at forks, see [`forks`](crate::forks).
pub(crate) fn installed() -> MutexGuard<'static, Option<Installed>> {
    INSTALLED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether no thread holds the lock.
#[cfg(test)]
pub(crate) fn is_free() -> bool {
    INSTALLED.try_lock().is_ok()
}

/// Puts our handlers in, and remembers what was there.
fn put_in(installed: &mut Option<Installed>, library: &Library) {
    let [error, warning] = ours();
    let none = Installed {
        library: *library,
        models: 0,
        error_before: null_mut(),
        warning_before: null_mut(),
    };
    let installed = installed.get_or_insert(none);
    for (variable, ours, before) in [
        (library.user_error(), error, &mut installed.error_before),
        (library.user_warning(), warning, &mut installed.warning_before),
    ] {
        // `Acquire` pairs with the write that put in what was found, which ours call; `Release` is for MuJoCo,
        // which reads the variable when it calls.
        let found = variable.swap(ours, AcqRel);
        if found != ours {
            *before = found;
        }
    }
}

/// Keeps our handlers installed.
#[derive(Debug)]
pub(crate) struct Handlers(());

impl Handlers {
    /// Installs our handlers, unless they are.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] while models of another copy of MuJoCo live: a handler could not tell
    /// whose error it gets.
    pub(crate) fn install(library: &Library) -> Result<Self, Error> {
        let mut slot = installed();
        if let Some(other) = *slot
            && !std::ptr::eq(other.library.user_error(), library.user_error())
        {
            if other.models > 0 {
                return Err(Error::bad_options(
                    "this process has environments of another copy of MuJoCo: close them first",
                ));
            }
            *slot = None;
        }
        put_in(&mut slot, library);
        clock::put_in(library.clock());
        slot.as_mut().expect("just put in").models += 1;
        Ok(Self(()))
    }
}

impl Drop for Handlers {
    /// With the last model, puts back what was there, unless our handlers were replaced.
    fn drop(&mut self) {
        let mut slot = installed();
        let installed = slot.as_mut().expect("it was installed");
        installed.models -= 1;
        if installed.models == 0 {
            clock::put_back(installed.library.clock());
            let before = [installed.error_before, installed.warning_before];
            for ((variable, ours), before) in
                variables(&installed.library).into_iter().zip(ours()).zip(before)
            {
                let _replaced = variable.compare_exchange(ours, before, Release, Relaxed); // as in `put_in`
            }
        }
    }
}
