//! Only for loom: words on the heap, with a model of the kernel's sleepers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loom::sync::{Condvar, Mutex, atomic};

use super::word::{EventCount, OWN, SWAP, Word};
use crate::failpoint::before_access;
use crate::sync::{AtomicU32, Ordering};

/// A word whose sleepers are modeled by a condition variable, with the kernel's rules: checking
/// the value and falling asleep are one operation. There is no time-out, so a lost wake-up is a
/// deadlock, which loom reports.
#[derive(Debug)]
pub(crate) struct ModelWord {
    word: AtomicU32,
    sleepers: Mutex<()>,
    woken: Condvar,
}

impl Default for ModelWord {
    fn default() -> Self {
        Self { word: AtomicU32::new(0), sleepers: Mutex::new(()), woken: Condvar::new() }
    }
}

impl Word for ModelWord {
    fn load(&self) -> u32 {
        self.word.load(Ordering::Relaxed)
    }

    fn swap(&self, value: u32) -> u32 {
        self.word.swap(value, SWAP)
    }

    fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
        self.word.compare_exchange(current, new, OWN, Ordering::Relaxed)
    }

    fn wait(&self, expected: u32, _slice: Duration) {
        let guard = self.sleepers.lock().expect("no thread panics while it holds the lock");
        if self.word.load(Ordering::Relaxed) == expected {
            drop(self.woken.wait(guard).expect("no thread panics while it holds the lock"));
        }
    }

    fn wake(&self) {
        let _guard = self.sleepers.lock().expect("no thread panics while it holds the lock");
        self.woken.notify_one();
    }
}

impl<W: Word> Word for &W {
    fn load(&self) -> u32 {
        (**self).load()
    }

    fn swap(&self, value: u32) -> u32 {
        (**self).swap(value)
    }

    fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
        (**self).compare_exchange(current, new)
    }

    fn wait(&self, expected: u32, slice: Duration) {
        (**self).wait(expected, slice);
    }

    fn wake(&self) {
        (**self).wake();
    }
}

/// An event count, as [`ModelWord`]: only those sleepers wake whose bits are named.
#[derive(Debug)]
pub(super) struct ModelEventCount {
    /// Not mortal: the kernel looks at it too.
    word: atomic::AtomicU32,
    sleepers: Mutex<u32>,
    woken: Condvar,
}

impl Default for ModelEventCount {
    fn default() -> Self {
        Self { word: atomic::AtomicU32::new(0), sleepers: Mutex::new(0), woken: Condvar::new() }
    }
}

impl EventCount for &ModelEventCount {
    fn load(self, order: Ordering) -> u32 {
        before_access();
        self.word.load(order)
    }

    fn add_one(self, order: Ordering) {
        before_access();
        self.word.fetch_add(1, order);
    }

    fn sleep(self, seen: u32, bit: u32, _slice: Duration, _is_over: impl FnMut() -> bool) {
        let mut sleepers = self.sleepers.lock().expect("no thread panics while it holds the lock");
        if self.word.load(Ordering::Relaxed) != seen {
            return;
        }
        *sleepers |= bit;
        while *sleepers & bit != 0 {
            sleepers = self.woken.wait(sleepers).expect("no thread panics while it holds the lock");
        }
    }

    fn wake_up(self, bits: u32) {
        *self.sleepers.lock().expect("no thread panics while it holds the lock") &= !bits;
        self.woken.notify_all();
    }
}

/// Runs `run` in every interleaving with at most three pre-emptions, or as many as
/// `LOOM_MAX_PREEMPTIONS` says.
pub(crate) fn every_interleaving(run: impl Fn() + Send + Sync + 'static) {
    check(3, run);
}

fn check(max_preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new(); // reads `LOOM_MAX_PREEMPTIONS`
    builder.preemption_bound = builder.preemption_bound.or(Some(max_preemptions));
    builder.check(run);
}

/// Runs `run` in every interleaving, for a worker that dies after 0 accesses to a word of the
/// protocol, after 1, 2 and so on, until the worker finishes before it dies. `run` gets the number
/// of accesses and returns whether the worker died.
///
/// There are at most two pre-emptions in addition to the death, because three take minutes: `make loom` runs
/// them.
pub(crate) fn every_death(run: impl Fn(u32) -> bool + Send + Sync + 'static) {
    let run = Arc::new(run);
    for accesses in 0_u32.. {
        let died = Arc::new(AtomicBool::new(false));
        check(2, {
            let (run, died) = (Arc::clone(&run), Arc::clone(&died));
            move || {
                died.fetch_or(run(accesses), std::sync::atomic::Ordering::Relaxed);
            }
        });
        if !died.load(std::sync::atomic::Ordering::Relaxed) {
            return;
        }
    }
}
