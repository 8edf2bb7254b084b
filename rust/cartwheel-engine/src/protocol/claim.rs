//! Claims: one pool for each memory, and one server for each worker, across all clones and
//! attachments of the memory.
//!
//! A claim is a word of the control memory, so it holds between threads, between processes, and
//! between two attachments of one memory in the same process. A process takes it by writing its
//! number, with an exchange that succeeds only where no number is stored. A claim is given back in
//! one case: the process that held a worker has ended, the pool has cleared what it left, and
//! another process will follow. A server that merely returned keeps its claim, because its worker
//! is closed.
//!
//! # Memory orders
//!
//! That only one of several takers succeeds needs no order: the exchanges of one word have one
//! order. `Release`, when the pool frees a worker that it cleared, pairs with the `Acquire` of the
//! next taker, so the new server finds the queue and the notes as the pool left them. The holder of
//! a pool's claim reads nothing through it.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::platform::process_id;

/// Not held, as in new memory.
const FREE: u32 = 0;
/// The pool is clearing what a dead holder left, and the claim cannot be taken yet. No process has
/// this number.
const CLEARING: u32 = u32::MAX;

/// An exclusive right.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(super) struct Claim(AtomicU32);

impl Claim {
    /// Takes the claim for this process; returns whether it was free.
    pub(super) fn take(&self) -> bool {
        self.0.compare_exchange(FREE, process_id(), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives back a claim that was taken and not yet used.
    pub(super) fn give_back(&self) {
        self.0.store(FREE, Ordering::Release);
    }

    /// Calls `clear` to remove what the holder left, and frees the claim, unless its holder has not
    /// ended. Returns whether it was freed.
    pub(super) fn free(&self, has_ended: impl FnOnce(u32) -> bool, clear: impl FnOnce()) -> bool {
        let holder = self.0.load(Ordering::Relaxed);
        if holder == CLEARING || (holder != FREE && !has_ended(holder)) {
            return false;
        }
        // Not a store: another process may have taken the claim since.
        let (from, to) = (holder, CLEARING);
        if self.0.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        clear();
        self.0.store(FREE, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_freed_only_if_its_holder_has_ended() {
        let claim = Claim::default();
        assert!(claim.take());
        assert!(!claim.take(), "not even by the same process");
        assert!(!claim.free(|_| false, || panic!("the holder is alive")));
        assert!(!claim.take());
        let freed = claim.free(
            |holder| holder == process_id(),
            || assert!(!claim.take(), "the holder's words are not cleared yet"),
        );
        assert!(freed);
        assert!(claim.take());
    }

    #[test]
    fn a_claim_without_a_holder_is_cleared_too() {
        let (claim, mut cleared) = (Claim::default(), false);
        assert!(claim.free(|_| panic!("there is no holder to ask for"), || cleared = true));
        assert!(cleared);
    }
}
