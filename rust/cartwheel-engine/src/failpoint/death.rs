//! Only for loom: the death of a thread, which represents a worker process.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// More accesses than a thread makes, so it does not die.
const IMMORTAL: u32 = u32::MAX;

loom::thread_local! {
    /// Number of accesses to words of the protocol that this thread makes before it dies.
    static ACCESSES_LEFT: Cell<u32> = Cell::new(IMMORTAL);
}

/// The panic payload that unwinds a dying thread.
struct Death;

/// Ends the thread if it has made its number of accesses.
pub(crate) fn before_access() {
    ACCESSES_LEFT.with(|left| match left.get() {
        IMMORTAL => {}
        0 => {
            left.set(IMMORTAL); // destructors may access words while unwinding
            resume_unwind(Box::new(Death));
        }
        accesses => left.set(accesses - 1),
    });
}

/// Runs `worker`, which dies after `accesses` accesses to words of the protocol, if it makes that
/// many. Returns whether it died.
///
/// A killed process leaves the values that it has stored, and so does a thread that unwinds from
/// here.
pub(crate) fn dies_after(accesses: u32, worker: impl FnOnce()) -> bool {
    ACCESSES_LEFT.with(|left| left.set(accesses));
    let ended = catch_unwind(AssertUnwindSafe(worker));
    ACCESSES_LEFT.with(|left| left.set(IMMORTAL));
    match ended {
        Ok(()) => false,
        Err(death) if death.is::<Death>() => true,
        Err(panic) => resume_unwind(panic),
    }
}
