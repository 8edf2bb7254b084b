//! A request that a waiting pool returns, although nothing that it waits for has happened.

use super::parker::ring;
use super::word::Word;
use crate::sync::{AtomicU32, Ordering};

/// Whether a thread wants the waiting thread of a pool to return. Any thread makes the request, and the
/// thread that waits takes it.
#[derive(Debug, Default)]
pub struct WakeRequest(AtomicU32);

impl WakeRequest {
    /// Makes the request and rings the doorbell: a wait that has begun ends, and otherwise the next one.
    pub fn make(&self, doorbell: &impl Word) {
        // `Release` pairs with the `Acquire` in `take`: the thread that takes the request finds what was
        // left for it. `Acquire` pairs with the `Release` there: this request comes after what was taken.
        self.0.swap(1, Ordering::AcqRel);
        ring(doorbell);
    }

    /// Whether a request was made and not taken. A thread that sleeps on the doorbell looks after it has
    /// disarmed it: the exchange orders a request whose ring it erased before the look.
    pub fn is_made(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0 // nothing is read because of it: `take` acquires
    }

    /// Takes the request, and all that were made since it was found. Later ones end later waits.
    pub fn take(&self) {
        // `Acquire` pairs with the `Release` in `make`, also of a request that this erases, and `Release`
        // with the `Acquire` there.
        self.0.swap(0, Ordering::AcqRel);
    }
}
