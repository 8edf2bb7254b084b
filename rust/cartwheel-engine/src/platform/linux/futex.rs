//! Waiting for a word by the kernel's futex.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};

use super::super::{Scope, poll};
use super::is_missing;

fn flags(scope: Scope) -> Flags {
    match scope {
        Scope::Private => Flags::PRIVATE,
        // Without the flag: a private futex never wakes another process, and gives no error.
        Scope::Shared => Flags::empty(),
    }
}

/// Sleeps while `word` is `expected`, until woken, for at most `timeout`. May return early.
pub(crate) fn wait(word: &AtomicU32, scope: Scope, expected: u32, timeout: Duration) {
    let limit = Timespec::try_from(timeout).expect("a slice is shorter than a century");
    // A signal, a changed word and the end of the slice all mean the same: check again.
    if let Err(error) = futex::wait(word, flags(scope), expected, Some(&limit))
        && is_missing(error)
    {
        poll::word(word, expected, timeout); // and `wake` fails, too
    }
}

/// Wakes one sleeper.
pub(crate) fn wake(word: &AtomicU32, scope: Scope) {
    // Fails only for words that are not mapped, and a reference is always mapped.
    let _ = futex::wake(word, flags(scope), 1);
}
