//! The interpreter as threads meet it that it does not wait for when it ends.
//!
//! A worker thread, or a daemon thread of the program, may be inside an environment when the program
//! ends. Python up to 3.13 ends such a thread by `pthread_exit` as soon as it wants the interpreter again,
//! which no function of Rust on its stack survives. A thread that comes from native code finds no
//! interpreter at all. Both hang here until the process is gone, as Python 3.14 lets them.
//!
//! # Invariants
//!
//! 1. `Py_IsInitialized` may be called by any thread at any time.
#![expect(unsafe_code, reason = "a function of Python, see the invariants")]

use std::time::Duration;

use cartwheel_engine::platform::{hang, hang_on_exit};
use pyo3::ffi::Py_IsInitialized;
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
