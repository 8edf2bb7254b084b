//! Forks of this process, as far as leases on shared memory are concerned.
//!
//! A forked child sees what was leased, and what was being filled, when it was made. Its copies of the
//! leases end with it, unknown to the parent; so a slab that was leased then must never be filled again.
//!
//! Whoever notices forks tells [`begins`] before and [`ended`] or [`ended_in_child`] after each. A lease
//! notes the number of forks when it is taken; if another number is found when it is dropped, a fork has
//! happened in between, and while one is under way there may be one at any moment.

use std::sync::atomic::{AtomicU64, Ordering};

/// Beginnings and ends of forks so far (upper half), and forks under way (lower half).
static FORKS: AtomicU64 = AtomicU64::new(0);

const COUNTED: u64 = 1 << 32;

/// The process is about to fork.
pub fn begins() {
    FORKS.fetch_add(COUNTED + 1, Ordering::SeqCst);
}

/// The process has forked, or has failed to; called in the parent.
pub fn ended() {
    FORKS.fetch_add(COUNTED - 1, Ordering::SeqCst);
}

/// The process was forked; called in the child, in which no other fork is under way.
pub fn ended_in_child() {
    let counted = FORKS.load(Ordering::SeqCst) & !(COUNTED - 1);
    FORKS.store(counted.wrapping_add(COUNTED), Ordering::SeqCst);
}

/// When a lease was taken, counted in forks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment(u64);

impl Moment {
    pub(super) fn now() -> Self {
        Self(FORKS.load(Ordering::SeqCst))
    }

    /// Whether a forked child may know what was leased at this moment and is still leased now.
    pub(super) fn forked_since(self) -> bool {
        let now = Self::now();
        now != self || now.0 & (COUNTED - 1) != 0
    }
}
