//! Words that can be waited on: one worker's, and one that several share.

use std::time::Duration;

use crate::sync::Ordering;

/// The orders of [`Word::swap`] and of a successful [`Word::compare_exchange`], here for the words in mapped
/// memory too, which loom cannot reach: it shows on its model that these orders are needed.
///
/// `Release`: what the task needs, or its results. `Acquire`: what the replaced exchange released. An
/// exchange of the owner, to sleep or to take what is there, releases nothing.
pub(super) const SWAP: Ordering = Ordering::AcqRel;
pub(super) const OWN: Ordering = Ordering::Acquire;

/// A 32-bit word with the operations that the parker needs. Implemented by [`Futex`](super::Futex), and by a
/// model in the loom tests.
///
/// Every operation is on a single location, so orders weaker than sequential consistency are
/// enough. What a load or a failed exchange finds is taken by an exchange, before it is acted upon.
pub(crate) trait Word {
    /// Loads with `Relaxed`.
    fn load(&self) -> u32;

    /// Swaps with [`SWAP`].
    fn swap(&self, value: u32) -> u32;

    /// Compares and exchanges with [`OWN`], and `Relaxed` on failure; the owner of the word does.
    ///
    /// # Errors
    ///
    /// The value that was found, when it is not `current`.
    fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32>;

    /// Sleeps while the word is `expected`, until woken, for at most `slice`. May return early.
    fn wait(&self, expected: u32, slice: Duration);

    /// Wakes one sleeper.
    fn wake(&self);
}

/// A word on which several sleep, each with a bit. Implemented by [`Futex`](super::Futex), and by a
/// model in the loom tests.
pub(crate) trait EventCount: Copy {
    /// Loads the number of wake-ups.
    fn load(self, order: Ordering) -> u32;

    /// Adds one to it.
    fn add_one(self, order: Ordering);

    /// Sleeps while the event count is `seen`, until the sleepers with `bit` are woken, for at most `slice`.
    /// May return early. `is_over` says whether there is nothing to wait for any more, for systems
    /// without event counts.
    fn sleep(self, seen: u32, bit: u32, slice: Duration, is_over: impl FnMut() -> bool);

    /// Wakes the sleepers with these bits.
    fn wake_up(self, bits: u32);
}
