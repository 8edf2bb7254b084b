//! The number of leases on a slab, whose last drop frees the slab, or on the first batch of a rollout.

use crate::sync::{AtomicU32, Ordering};

/// Number of leases on one slab or batch.
#[derive(Debug)]
pub(crate) struct Leases(AtomicU32);

impl Leases {
    /// The leases on a slab that is free: none.
    pub(crate) fn none() -> Self {
        Self(AtomicU32::new(0))
    }

    /// The first lease on a slab that was just taken, so that it has no other holder.
    pub(crate) fn begin(&self) {
        self.0.store(1, Ordering::Relaxed); // the lease is handed over by what publishes the slab
    }

    /// Ends the only lease, whose holder keeps the slab for the next batch.
    pub(crate) fn park(&self) {
        self.0.store(0, Ordering::Relaxed); // no other thread has a lease, nor takes one
    }

    /// Whether there is a lease. If not, all that had one have finished reading.
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0 // pairs with `end`
    }

    /// A further lease. The caller has one, which keeps the slab meanwhile.
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed); // it cannot be the last: the caller has one
    }

    /// Ends a lease; returns whether it was the last one.
    pub(crate) fn end(&self) -> bool {
        // `Release`: this lease has finished reading, which `any` acquires. `Acquire` pairs with the
        // `Release` of the other leases' ends: so have they, before the last one frees the slab.
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
