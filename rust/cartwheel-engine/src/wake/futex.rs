//! Words in memory that can be waited on.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::word::{EventCount, OWN, SWAP, Word};
use crate::failpoint::Failpoint;
use crate::platform::{self, Scope};

/// A word in memory and the scope in which it is waited on: a futex, where the system has one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Futex<'a> {
    word: &'a AtomicU32,
    scope: Scope,
}

impl<'a> Futex<'a> {
    /// `word`, on which threads of this process or also other processes wait.
    pub(crate) fn new(word: &'a AtomicU32, scope: Scope) -> Self {
        Self { word, scope }
    }
}

impl Word for Futex<'_> {
    fn load(&self) -> u32 {
        self.word.load(Ordering::Relaxed)
    }

    fn swap(&self, value: u32) -> u32 {
        self.word.swap(value, SWAP)
    }

    fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
        self.word.compare_exchange(current, new, OWN, Ordering::Relaxed)
    }

    fn wait(&self, expected: u32, slice: Duration) {
        if Failpoint::SpuriousWake.hit() {
            return;
        }
        platform::wait(self.word, self.scope, expected, slice);
    }

    fn wake(&self) {
        if comes() {
            platform::wake(self.word, self.scope);
        }
    }
}

impl EventCount for Futex<'_> {
    fn load(self, order: Ordering) -> u32 {
        self.word.load(order)
    }

    fn add_one(self, order: Ordering) {
        self.word.fetch_add(1, order);
    }

    fn sleep(self, seen: u32, bit: u32, slice: Duration, is_over: impl FnMut() -> bool) {
        if Failpoint::SpuriousWake.hit() {
            return;
        }
        platform::sleep(self.word, self.scope, seen, bit, slice, is_over);
    }

    fn wake_up(self, bits: u32) {
        if comes() {
            platform::wake_up(self.word, self.scope, bits);
        }
    }
}

/// Whether a wake-up comes: always, except in tests of faults, where it may also be late.
fn comes() -> bool {
    if Failpoint::DropWake.hit() {
        return false;
    }
    if Failpoint::DelayWake.hit() {
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
