//! Threads that are told to end by `pthread_exit` while functions of Rust are on their stack.
//!
//! The `pthread_exit` of glibc unwinds the stack, as an exception of C++ does. Most functions of Rust have
//! no rule for such an exception: the process aborts at the first one, or code after it runs on what was
//! unwound. glibc first calls the handlers of `pthread_cleanup_push`, before it unwinds anything, if their
//! records are not on the stack. A handler that never returns makes the thread hang with its stack intact.
//!
//! Elsewhere `pthread_exit` unwinds nothing: the thread's stack is given back as it is.
//!
//! # Invariants
//!
//! 1. **Records** are never freed, and each is registered once, by one thread: glibc links them.
//! 2. **The argument** of a handler is the function that was given to [`hang_on_exit`].
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "registers a handler of the C library, see the invariants")
)]

/// Makes the calling thread hang forever where it would end by `pthread_exit` or `pthread_cancel`, if
/// `hangs` says so at that moment. That a thread returns from its first function is not such an end.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn hang_on_exit(hangs: fn() -> bool) {
    if !glibc::IS_REGISTERED.get() {
        glibc::register(hangs);
    }
}

/// Does nothing: no stack is unwound here.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn hang_on_exit(_: fn() -> bool) {}

/// Never returns.
pub fn hang() -> ! {
    loop {
        std::thread::sleep(std::time::Duration::MAX);
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::cell::Cell;
    use std::ffi::{c_int, c_void};
    use std::mem::transmute;
    use std::ptr::null_mut;

    type Handler = unsafe extern "C" fn(*mut c_void);

    /// `struct _pthread_cleanup_buffer`, which glibc fills.
    #[repr(C)]
    struct Record {
        handler: Option<Handler>,
        argument: *mut c_void,
        cancel_type: c_int,
        previous: *mut Record,
    }

    unsafe extern "C" {
        fn _pthread_cleanup_push(record: *mut Record, handler: Handler, argument: *mut c_void);
    }

    thread_local! {
        /// Whether this thread has a record.
        pub(super) static IS_REGISTERED: Cell<bool> = const { Cell::new(false) };
    }

    #[cold]
    pub(super) fn register(hangs: fn() -> bool) {
        IS_REGISTERED.set(true);
        // On the heap: what lies outside of the stack counts as left by the first step of the unwinding.
        let record =
            Record { handler: None, argument: null_mut(), cancel_type: 0, previous: null_mut() };
        let record = Box::into_raw(Box::new(record));
        // SAFETY: the record is new and is never freed (invariant 1).
        unsafe { _pthread_cleanup_push(record, on_exit, hangs as *mut c_void) }
    }

    unsafe extern "C" fn on_exit(argument: *mut c_void) {
        // SAFETY: such a function was given (invariant 2).
        let hangs = unsafe { transmute::<*mut c_void, fn() -> bool>(argument) };
        if hangs() {
            super::hang();
        }
        IS_REGISTERED.set(false); // glibc has removed the record
    }
}
