//! The free slabs, last released first.
//!
//! A lock-free stack of slab numbers (R. K. Treiber, IBM RJ 5118, 1986): the head holds the number
//! on top, and `next[n]` holds the number below `n`. A lease can end on any thread at any time, so
//! a push must not block. Last in, first out reuses the slab that is most likely in the cache.
//!
//! Popping has the ABA problem: between reading `next[top]` and swapping the head, other threads
//! may pop `top`, change the numbers below it and push it again. The upper half of the head counts
//! every change, so a head that changed compares equal only after 2^32 changes. Only the pool pops, one
//! call at a time: in between there can be nothing but pushes, of other numbers than `top`.

use crate::sync::{AtomicU32, AtomicU64, Ordering, pack, unpack};

const EMPTY: u32 = u32::MAX;

/// A stack of numbers below a fixed limit; each number is in it at most once.
#[derive(Debug)]
pub(crate) struct FreeList {
    /// Number of changes (upper half) and the number on top (lower half).
    head: AtomicU64,
    next: Box<[AtomicU32]>,
}

impl FreeList {
    /// An empty list for the numbers `0..limit`.
    ///
    /// # Panics
    ///
    /// When `limit` is `u32::MAX`, which marks the end of the list.
    pub(crate) fn new(limit: u32) -> Self {
        assert!(limit < EMPTY, "{limit} numbers are too many");
        Self {
            head: AtomicU64::new(pack(0, EMPTY)),
            next: (0..limit).map(|_| AtomicU32::new(EMPTY)).collect(),
        }
    }

    /// Pushes `number`, which must not be in the list.
    pub(crate) fn push(&self, number: u32) {
        let mut head = self.head.load(Ordering::Relaxed); // the exchange checks it
        loop {
            let (changes, top) = unpack(head);
            self.next[number as usize].store(top, Ordering::Relaxed); // published below
            // `Release` publishes `next[number]` and all accesses to the slab; it pairs with the
            // `Acquire` loads of the head in `pop`.
            match self.head.compare_exchange(
                head,
                pack(changes.wrapping_add(1), number),
                Ordering::Release,
                Ordering::Relaxed, // nothing is read because of a head that was missed
            ) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Pops the number that was pushed last.
    pub(crate) fn pop(&self) -> Option<u32> {
        // The load of the head that found `top` is an `Acquire` that pairs with the `Release` in
        // `push`: it makes `next[top]` visible, and all accesses to the slab before it was released.
        // The exchange finds the same head, so it needs no order.
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let (changes, top) = unpack(head);
            if top == EMPTY {
                return None;
            }
            let below = self.next[top as usize].load(Ordering::Relaxed); // acquired with the head
            match self.head.compare_exchange(
                head,
                pack(changes.wrapping_add(1), below),
                Ordering::Relaxed,
                Ordering::Acquire, // the next round reads the number below this head
            ) {
                Ok(_) => return Some(top),
                Err(now) => head = now,
            }
        }
    }
}
