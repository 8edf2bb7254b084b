//! The parker: one word for each direction, on which one side sleeps and the other side wakes it.

use std::time::Duration;

use super::task_word::{Op, TaskWord};
use super::word::Word;
use crate::sync::{AtomicU32, Ordering};

/// Nothing to do, no sleeper.
pub(crate) const IDLE: u32 = 0;
/// The owner of the word sleeps, or is about to.
pub(crate) const PARKED: u32 = 1;
/// The doorbell was rung.
const RUNG: u32 = 2;

/// Hands `task_word` to the owner of `word` and wakes the owner if it sleeps.
pub(crate) fn publish(word: &impl Word, task_word: TaskWord) {
    if hand(word, task_word) {
        word.wake();
    }
}

/// Hands `task_word` to the owner of `word`; returns whether the owner sleeps and has to be woken.
pub(super) fn hand(word: &impl Word, task_word: TaskWord) -> bool {
    word.swap(task_word.to_word()) == PARKED
}

/// Takes the task word in `word`, if there is one.
///
/// The exchange fails, and the newer task word is taken, when the pool publishes a `Close` in
/// between: a plain store of `IDLE` would erase it.
pub(crate) fn take(word: &impl Word) -> Option<TaskWord> {
    let mut seen = word.load();
    loop {
        let task_word = TaskWord::from_word(seen)?;
        match word.compare_exchange(seen, IDLE) {
            Ok(_) => return Some(task_word),
            Err(now) => seen = now,
        }
    }
}

/// Whether the word holds the task word to close. The task word stays there.
pub(crate) fn is_closing(word: &impl Word) -> bool {
    TaskWord::from_word(word.load()).is_some_and(|task_word| task_word.op == Op::Close)
}

/// The end of a [`park`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parked {
    /// There was a task word or a ring, without sleeping.
    Ready,
    /// The owner slept, for a slice or less.
    Slept,
}

/// Sleeps on `word` for at most `slice`, unless it already holds a task word or a ring.
///
/// A sleeper that wakes by itself leaves `PARKED` in the word, which costs the other side at most
/// one unnecessary wake-up.
pub(crate) fn park(word: &impl Word, slice: Duration) -> Parked {
    match word.compare_exchange(IDLE, PARKED) {
        Ok(_) | Err(PARKED) => {
            word.wait(PARKED, slice);
            Parked::Slept
        }
        Err(_) => Parked::Ready,
    }
}

/// Rings the doorbell of a waiting pool and wakes it if it sleeps.
pub(crate) fn ring(word: &impl Word) {
    if word.swap(RUNG) == PARKED {
        word.wake();
    }
}

/// Resets the doorbell, before a task is published or after it was heard.
pub(crate) fn doorbell_disarm(word: &impl Word) {
    word.swap(IDLE);
}

/// Whether a thread wants the waiting thread of a pool to return. Any thread makes the request, and the
/// thread that waits takes it.
#[derive(Debug, Default)]
pub(crate) struct WakeRequest(AtomicU32);

impl WakeRequest {
    /// Makes the request and rings the doorbell: a wait that has begun ends, and otherwise the next one.
    pub(crate) fn make(&self, doorbell: &impl Word) {
        // `Release` pairs with the `Acquire` in `take`: the thread that takes the request finds what was
        // left for it. `Acquire` pairs with the `Release` there: this request comes after what was taken.
        self.0.swap(1, Ordering::AcqRel);
        ring(doorbell);
    }

    /// Whether a request was made and not taken. A thread that sleeps on the doorbell looks after it has
    /// disarmed it: the exchange orders a request whose ring it erased before the look.
    pub(crate) fn is_made(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0 // nothing is read because of it: `take` acquires
    }

    /// Takes the request, and all that were made since it was found. Later ones end later waits.
    pub(crate) fn take(&self) {
        // `Acquire` pairs with the `Release` in `make`, also of a request that this erases, and `Release`
        // with the `Acquire` there.
        self.0.swap(0, Ordering::AcqRel);
    }
}
