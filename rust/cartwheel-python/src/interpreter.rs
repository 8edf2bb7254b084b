//! The interpreter as threads meet it that it does not wait for when it ends.
//!
//! A worker thread, or a daemon thread of the program, may be inside an environment when the program
//! ends. Python up to 3.13 ends such a thread by `pthread_exit` as soon as it wants the interpreter again,
//! which no function of Rust on its stack survives. A thread that comes from native code finds no
//! interpreter at all. Both hang here until the process is gone, as Python 3.14 lets them.
//!
//! Another library may detach a thread within a function of ours that has called it, and call us: `torch`
//! frees tensors so. PyO3 counts its own calls alone, and takes such a thread to be attached.
//!
//! # Invariants
//!
//! 1. `Py_IsInitialized` may be called by any thread at any time.
//! 2. `PyGILState_Ensure` may be called by any thread, attached or not, while the interpreter is
//!    initialized. Each call is undone once, by the same thread, the last one first.
//! 3. `PyErr_Fetch` and `PyErr_Restore` are called attached. What the one gives is given to the other, once.
#![expect(unsafe_code, reason = "functions of Python, see the invariants")]

use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::time::Duration;

use cartwheel_engine::platform::{hang, hang_on_exit};
use pyo3::ffi::{
    self, Py_IsInitialized, PyGILState_Ensure, PyGILState_Release, PyGILState_STATE, PyObject,
};
use pyo3::prelude::*;

/// Number of looks for the end of the interpreter, a millisecond apart. Python says that threads have to
/// end a moment before it says that it has ended.
const LOOKS: u32 = 100;

/// Declares that this thread may run Python code below functions of Rust.
pub(crate) fn enter() {
    hang_on_exit(ends);
}

/// Runs `run` attached to the interpreter. Does not return after its end.
pub(crate) fn attach<T>(run: impl FnOnce(Python<'_>) -> T) -> T {
    enter();
    Python::try_attach(run).unwrap_or_else(|| hang())
}

/// Runs `run` attached, on a thread that another library may have detached; `None` after the end of the
/// interpreter.
pub(crate) fn attach_again<T>(run: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    /// Undoes a call of `PyGILState_Ensure`.
    struct Ensured(PyGILState_STATE);

    impl Drop for Ensured {
        fn drop(&mut self) {
            // SAFETY: the call was on this thread, whose stack has this value (invariant 2).
            unsafe { PyGILState_Release(self.0) }
        }
    }

    enter();
    // SAFETY: `Py_IsInitialized` may be called at any time (invariant 1).
    if unsafe { Py_IsInitialized() } == 0 {
        return None;
    }
    // SAFETY: the interpreter is initialized; undone by the drop (invariant 2).
    let _ensured = Ensured(unsafe { PyGILState_Ensure() });
    Python::try_attach(run)
}

/// Drops a value that has Python objects, attached as by [`attach_again`]; leaves it after the end of the
/// interpreter.
pub(crate) fn drop_attached<T>(value: T) {
    let value = ManuallyDrop::new(value);
    attach_again(|_| drop(ManuallyDrop::into_inner(value)));
}

/// Runs `run`, which calls Python, while the exception that this thread may be raising is set aside. Python
/// drops objects while it raises one, and functions of Python are not called then: they would take it for
/// their own, and lose it.
#[cfg_attr(Py_3_12, expect(deprecated, reason = "Python 3.10 has no other functions"))]
pub(crate) fn besides_exceptions<T>(_py: Python<'_>, run: impl FnOnce() -> T) -> T {
    /// Its type, the value and the traceback; null pointers for none.
    struct Raised([*mut PyObject; 3]);

    impl Drop for Raised {
        fn drop(&mut self) {
            let [kind, value, traceback] = self.0;
            // SAFETY: what `PyErr_Fetch` gave, on the same thread, attached again (invariant 3).
            unsafe { ffi::PyErr_Restore(kind, value, traceback) }
        }
    }

    let mut raised = Raised([null_mut(); 3]);
    let [kind, value, traceback] = &mut raised.0;
    // SAFETY: attached (invariant 3).
    unsafe { ffi::PyErr_Fetch(kind, value, traceback) }
    run()
}

/// A number of this thread that no other thread has while it runs.
pub(crate) fn this_thread() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

/// Whether the interpreter ends, so that this is why a thread is to end.
fn ends() -> bool {
    (0..LOOKS).any(|look| {
        if look > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // SAFETY: `Py_IsInitialized` may be called at any time (invariant 1).
        (unsafe { Py_IsInitialized() }) == 0
    })
}
