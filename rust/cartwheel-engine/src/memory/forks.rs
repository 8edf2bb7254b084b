//! Counts forks of this process, for leases on shared memory.
//!
//! A forked child sees the slabs that were leased or being filled at the fork. Its copies of the
//! leases end with the child, and the parent does not notice; so a slab of shared memory that was
//! leased at a fork must never be filled again.
//!
//! The code that observes forks calls [`begins`] before each fork and [`ended`] or
//! [`ended_in_child`] after it. A lease records the number of forks when it is taken. If the number
//! differs when the lease is dropped, a fork has happened in between. While a fork is under way,
//! the child may be created at any moment.
//!
//! # Invariants
//!
//! 1. Every fork under way is counted: an end is announced once for each beginning. Otherwise a slab
//!    that a child still sees would be filled again (memory invariant 3 in the child).
#![expect(unsafe_code, reason = "announcements that leases rely on, see the invariants")]

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of beginnings and ends of forks so far (upper half), number of forks under way (lower
/// half).
///
/// All accesses are `SeqCst`: a lease reads it after it took a slab and once more before it frees the
/// slab, and these reads have one order with the beginnings and ends of forks. They are rare.
static FORKS: AtomicU64 = AtomicU64::new(0);

const COUNTED: u64 = 1 << 32;

/// The process is about to fork.
pub fn begins() {
    FORKS.fetch_add(COUNTED + 1, Ordering::SeqCst);
}

/// The process has forked, or the fork has failed; called in the parent.
///
/// # Safety
///
/// Called once for each call of [`begins`], after it (invariant 1).
pub unsafe fn ended() {
    FORKS.fetch_add(COUNTED - 1, Ordering::SeqCst);
}

/// The process was forked; called in the child, in which no other fork is under way.
///
/// # Safety
///
/// Called in a forked child, once, before it forks (invariant 1).
pub unsafe fn ended_in_child() {
    let counted = FORKS.load(Ordering::SeqCst) & !(COUNTED - 1);
    FORKS.store(counted.wrapping_add(COUNTED), Ordering::SeqCst);
}

/// The count of forks when a lease was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment(u64);

impl Moment {
    pub(super) fn now() -> Self {
        Self(FORKS.load(Ordering::SeqCst))
    }

    /// Whether a forked child may still see what was leased at this moment.
    pub(super) fn forked_since(self) -> bool {
        let now = Self::now();
        now != self || now.0 & (COUNTED - 1) != 0
    }
}
