//! For loom alone: a word on the heap, with a model of the kernel's sleepers, and the death of a worker.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loom::sync::{Condvar, Mutex};

use super::futex::Word;
use crate::sync::{AtomicU32, Ordering};

/// A word whose sleepers are modelled by a condition variable, as the kernel keeps them: the check of
/// the value and falling asleep are one, and there is no time-out, so a lost wake-up is a deadlock,
/// which loom reports.
#[derive(Debug)]
pub struct ModelWord {
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
        self.word.load(Ordering::Acquire)
    }

    fn swap(&self, value: u32) -> u32 {
        self.word.swap(value, Ordering::AcqRel)
    }

    fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
        self.word.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    fn wait(&self, expected: u32, _slice: Duration) {
        let guard = self.sleepers.lock().expect("nobody panics with it");
        if self.word.load(Ordering::Relaxed) == expected {
            drop(self.woken.wait(guard).expect("nobody panics with it"));
        }
    }

    fn wake(&self) {
        let _guard = self.sleepers.lock().expect("nobody panics with it");
        self.woken.notify_one();
    }
}

/// Runs `run` in every interleaving with at most three pre-emptions.
pub fn every_interleaving(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// A thread that never dies.
const IMMORTAL: u32 = u32::MAX;

loom::thread_local! {
    /// Accesses to words of the protocol that this thread makes before it dies.
    static ACCESSES_LEFT: Cell<u32> = Cell::new(IMMORTAL);
}

/// What unwinds a thread that dies.
struct Death;

/// Ends the thread if it has made as many accesses as it was to make.
pub(crate) fn before_access() {
    ACCESSES_LEFT.with(|left| match left.get() {
        IMMORTAL => {}
        0 => {
            left.set(IMMORTAL); // what is dropped on the way out may access words
            resume_unwind(Box::new(Death));
        }
        accesses => left.set(accesses - 1),
    });
}

/// Runs `worker`, which dies after so many accesses to words of the protocol, if it makes as many; whether it
/// died.
///
/// A process that is killed leaves what it has stored, and so does a thread that unwinds from here.
pub fn dies_after(accesses: u32, worker: impl FnOnce()) -> bool {
    ACCESSES_LEFT.with(|left| left.set(accesses));
    let ended = catch_unwind(AssertUnwindSafe(worker));
    ACCESSES_LEFT.with(|left| left.set(IMMORTAL));
    match ended {
        Ok(()) => false,
        Err(death) if death.is::<Death>() => true,
        Err(panic) => resume_unwind(panic),
    }
}

/// Runs `run` in every interleaving, for a worker that dies after no access to a word of the protocol, after one,
/// two and so on, until no worker makes as many. `run` is called with the number of accesses and returns whether
/// the worker died.
pub fn every_death(run: impl Fn(u32) -> bool + Send + Sync + 'static) {
    let run = Arc::new(run);
    for accesses in 0..IMMORTAL {
        let died = Arc::new(AtomicBool::new(false));
        every_interleaving({
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
