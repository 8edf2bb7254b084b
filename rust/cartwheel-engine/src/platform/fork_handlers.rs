//! Functions that the C library calls around each fork of this process.
//!
//! A child has the thread that forked and no other: a lock that another thread holds at the fork stays held
//! there. The thread that forks can take the lock before and release it after, in both processes. Hooks of Python
//! around a fork do not serve for that: other hooks run between them, and let threads run that wait for the lock.
//!
//! # Invariants
//!
//! 1. The functions stay where they are for as long as the process lives: Python does not unload modules.
#![expect(unsafe_code, reason = "calls the C library, see the invariants")]

use std::ffi::c_int;
use std::io;

/// A function that is called around a fork. It must not unwind.
pub type ForkHandler = extern "C" fn();

unsafe extern "C" {
    fn pthread_atfork(
        before: Option<ForkHandler>,
        in_parent: Option<ForkHandler>,
        in_child: Option<ForkHandler>,
    ) -> c_int;
}

/// Calls `before` in the thread that forks, and `after` in the same thread and in that of the child, at
/// each fork from now on, by whatever code. A fork that only executes another program may call neither.
///
/// # Errors
///
/// The system is out of memory.
pub fn call_around_forks(before: ForkHandler, after: ForkHandler) -> io::Result<()> {
    // SAFETY: functions without arguments, which stay (invariant 1).
    match unsafe { pthread_atfork(Some(before), Some(after), Some(after)) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    static BEFORE: AtomicUsize = AtomicUsize::new(0);
    static AFTER: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn before() {
        BEFORE.fetch_add(1, SeqCst);
    }

    extern "C" fn after() {
        AFTER.fetch_add(1, SeqCst);
    }

    #[test]
    fn both_processes_call_them_at_a_fork() {
        call_around_forks(before, after).expect("there is memory");
        let mut command = Command::new("true");
        // Other tests may fork meanwhile, too.
        let are_called = || BEFORE.load(SeqCst) > 0 && AFTER.load(SeqCst) > 0;
        let check = move || {
            if are_called() { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
        };
        // SAFETY: two loads, which a forked child may make. With it, `Command` forks.
        unsafe { command.pre_exec(check) };
        assert!(command.status().expect("the child was content").success());
        assert!(are_called());
    }
}
