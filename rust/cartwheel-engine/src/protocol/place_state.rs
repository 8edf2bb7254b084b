//! Ownership of the places of the open batches.
//!
//! ```text
//! free ──drawn by the worker, or dealt by the pool──▶ claimed ──row written──▶ committed
//! ```
//!
//! Committed places are what the pool hands out, from the first one that it has not handed out to the
//! first one that is not committed. Where workers are threads, that is all: their places stay free
//! until they are committed, because tickets suffice to claim them.
//!
//! A worker process may die between any two instructions. Each place has a word, each step is one
//! access to it, and the word names the row. So when a worker died, the words of the open batches
//! say what became of its rows in flight: a row is written if its place is committed, it has a place
//! if one is claimed for it, and it has none otherwise. That holds at any moment, whatever other
//! workers do or did, dead ones too: only a row's own worker commits its place, and a place that is
//! claimed stays claimed.
//!
//! The word has the number of the batch too. So a worker that stops while it claims a place of one
//! batch does not claim the place of a later one.
//!
//! # Memory orders
//!
//! A free place is published as the rest of its batch: by the queues, and by the chain of draws
//! (`batch_ring.rs`). The claim is a link of that chain: it releases what its worker has acquired to
//! workers that find the place claimed, and move the ticket on. The commit releases the row to the
//! pool, which acquires it in [`PlaceState::is_committed`] and [`PlaceState::holder`].

use crate::sync::{AtomicU64, Ordering};

/// A word whose state is zero is free.
const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const COMMITTED: u64 = 2;
const STATE_BITS: u32 = 2;
const STATE: u64 = (1 << STATE_BITS) - 1;
/// A pool has at most 2^30 rows, see `memory/plan.rs`.
const ROW_BITS: u32 = 30;

/// The word of a place.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct PlaceState(AtomicU64);

/// The holder of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) row: usize,
    /// Whether the row is written.
    pub(crate) is_committed: bool,
}

impl PlaceState {
    /// The pool opens batch number `batch`.
    pub(super) fn free(&self, batch: u64) {
        self.0.store(free(batch), Ordering::Relaxed); // published like the batch
    }

    /// The pool deals the place to a row; the queue publishes it.
    pub(super) fn deal(&self, batch: u64, row: usize) {
        self.0.store(claimed(batch, row), Ordering::Relaxed); // by `Release` of the queue's `tail`
    }

    /// A worker claims the place in batch number `batch` for a row; returns whether it was free.
    pub(super) fn claim(&self, batch: u64, row: usize) -> bool {
        let (free, claimed) = (free(batch), claimed(batch, row));
        // `Release` hands what this worker has acquired to the one whose claim fails here, which
        // acquires it: it moves the ticket on, and may claim a place that was opened later.
        self.0.compare_exchange(free, claimed, Ordering::Release, Ordering::Acquire).is_ok()
    }

    /// The worker has written the row that has the place.
    pub(super) fn commit(&self) {
        let claimed = self.0.load(Ordering::Relaxed); // its own claim, or dealt by the queue
        // Pairs with the `Acquire` in `is_committed` and `holder`: the row is visible.
        self.0.store((claimed & !STATE) | COMMITTED, Ordering::Release);
    }

    /// Whether the row that has the place is written.
    pub(super) fn is_committed(&self) -> bool {
        self.0.load(Ordering::Acquire) & STATE == COMMITTED // pairs with `commit`
    }

    /// The holder of the place.
    pub(super) fn holder(&self) -> Option<Holder> {
        let word = self.0.load(Ordering::Acquire); // pairs with `commit`
        let state = word & STATE;
        let row = (word >> STATE_BITS) & ((1 << ROW_BITS) - 1);
        let row = usize::try_from(row).expect("a row's number fits");
        (state != FREE).then_some(Holder { row, is_committed: state == COMMITTED })
    }
}

const fn free(batch: u64) -> u64 {
    batch << (ROW_BITS + STATE_BITS)
}

const fn claimed(batch: u64, row: usize) -> u64 {
    free(batch) | (row as u64) << STATE_BITS | CLAIMED
}
