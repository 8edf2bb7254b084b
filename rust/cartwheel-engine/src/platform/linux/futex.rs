//! Waiting for a word by the kernel's futex.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};
use rustix::time::{ClockId, clock_gettime};

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

/// Sleeps while `word` is `seen`, until a sleeper with `bit` is woken, for at most `timeout`. May return
/// early. Without the system's help, looks whether `is_over`.
pub(crate) fn sleep(
    word: &AtomicU32,
    scope: Scope,
    seen: u32,
    bit: u32,
    timeout: Duration,
    is_over: impl FnMut() -> bool,
) {
    let bit = NonZeroU32::new(bit).expect("a sleeper has a bit");
    let slice = Timespec::try_from(timeout).expect("a slice is shorter than a century");
    let end = clock_gettime(ClockId::Monotonic) + slice; // this operation wants a moment, not a time
    if let Err(error) = futex::wait_bitset(word, flags(scope), seen, Some(&end), bit)
        && is_missing(error)
    {
        poll::until(timeout, is_over); // and `wake_up` fails, too
    }
}

/// Wakes the sleepers with these bits, of which there is at least one.
pub(crate) fn wake_up(word: &AtomicU32, scope: Scope, bits: u32) {
    let bits = NonZeroU32::new(bits).expect("a thread sleeps");
    // As in `wake`. The most that can be woken is a signed number.
    let _ = futex::wake_bitset(word, flags(scope), i32::MAX.cast_unsigned(), bits);
}
