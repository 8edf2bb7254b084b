//! The batches that rows arrive in, when they are sent and received in parts.
//!
//! # The order of completion
//!
//! A worker that is done with a row, apart from writing it, takes a *ticket*: one more than the last.
//! Ticket `t` is place `t % batch_size` of batch `t / batch_size`, so rows stand in a batch in the order
//! in which they were done, and go straight to where they are read. The row is then written, and counted
//! in `filled` of its batch; a batch is whole when all its places are.
//!
//! The pool opens batches, each with a slab, before it pushes the rows that may come to lie in them: for
//! `n` rows in flight, `n / batch_size` of them, rounded up. The ring of batches has room for all rows.
//! A batch that is received short, because nothing more is in flight, leaves its last places empty:
//! nobody holds a ticket then, and the pool moves the count to the next batch.
//!
//! # Memory orders
//!
//! A batch's slab is stored before the queue's `Release`. A worker may draw a ticket of a batch that was
//! opened for a *later* send, to another worker; `tickets` is therefore drawn with `AcqRel`: the draws
//! form a chain, in which that other worker, who acquired the later send, comes before.
//! `filled` is counted with `AcqRel`, so the pool's `Acquire` of the whole count sees all rows.
//!
//! A worker rings the doorbell when `filled` reaches `wanted`. Both sides exchange `filled`, whose exchanges
//! have one order: the pool stores its wish and then adds nothing to `filled`, a worker adds its rows and
//! then loads the wish. If the worker comes first the pool sees the rows; if the pool does, the worker's
//! `Acquire` pairs with the pool's `Release` and the worker sees the wish.
//!
//! `interleavings.rs` runs all this through loom.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The number of the next ticket.
pub(super) type Tickets = AtomicU64;

/// A batch that is being filled.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Arrivals {
    slab: AtomicU32,
    filled: AtomicU32,
    wanted: AtomicU32,
}

/// The batches that are being filled, as a ring, and the tickets for their places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenBatches<'a> {
    pub(super) tickets: &'a Tickets,
    pub(super) ring: &'a [Arrivals],
    /// Rows of a batch.
    pub(super) batch_size: usize,
}

/// Neighbouring places of one open batch that a worker has claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    /// The batch's place in the ring.
    pub(crate) batch: usize,
    /// The slab to fill.
    pub(crate) slab: u32,
    /// The first place.
    pub(crate) first: usize,
    /// How many.
    pub(crate) count: usize,
}

impl Places {
    /// The first place, counted through the ring of batches of `batch_size` rows.
    pub(crate) fn ring_place(&self, batch_size: usize) -> u32 {
        u32::try_from(self.batch * batch_size + self.first).expect("places are fewer than 2^32")
    }
}

impl OpenBatches<'_> {
    /// Claims the next places, at most `most` of them, for rows that are done.
    pub(crate) fn claim_next(&self, most: usize) -> Places {
        let (size, tickets) = (self.batch_size as u64, self.tickets);
        // A claim does not reach beyond its batch: the loop ends by the draw of whoever was faster.
        let mut ticket = tickets.load(Ordering::Relaxed);
        loop {
            let count = (most as u64).min(size - ticket % size);
            let drawn = tickets.compare_exchange_weak(
                ticket,
                ticket + count,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match drawn {
                Ok(_) => {
                    let (batch, first) = (ticket / size, ticket % size);
                    return self.places(batch, to_usize(first), to_usize(count));
                }
                Err(now) => ticket = now,
            }
        }
    }

    /// Claims places that are given out already, counted through the ring of batches: those of the only
    /// batch, by the pool, or that of a worker which died.
    pub(crate) fn claim_given(&self, first: usize, count: usize) -> Places {
        self.places((first / self.batch_size) as u64, first % self.batch_size, count)
    }

    fn places(&self, batch: u64, first: usize, count: usize) -> Places {
        let batch = self.ring_place(batch);
        let slab = self.ring[batch].slab.load(Ordering::Relaxed); // see above
        Places { batch, slab, first, count }
    }

    /// Counts claimed places as filled; whether the pool has to be told.
    pub(crate) fn filled(&self, places: Places) -> bool {
        let count = u32::try_from(places.count).expect("a batch has fewer than 2^32 rows");
        let arrivals = &self.ring[places.batch];
        let before = arrivals.filled.fetch_add(count, Ordering::AcqRel);
        let wanted = arrivals.wanted.load(Ordering::Relaxed); // see above
        before < wanted && before + count >= wanted
    }

    /// Opens batch number `batch` with this slab. Only the pool calls this.
    pub(crate) fn open(&self, batch: u64, slab: u32) {
        let arrivals = self.arrivals(batch);
        arrivals.slab.store(slab, Ordering::Relaxed); // published by the queues
        arrivals.filled.store(0, Ordering::Relaxed);
        let size = u32::try_from(self.batch_size).expect("a batch has fewer than 2^32 rows");
        arrivals.wanted.store(size, Ordering::Relaxed);
    }

    /// Asks to be told when `rows` rows of batch number `batch` are there.
    pub(crate) fn want(&self, batch: u64, rows: u32) {
        let arrivals = self.arrivals(batch);
        arrivals.wanted.store(rows, Ordering::Relaxed); // published by the exchange
        arrivals.filled.fetch_add(0, Ordering::AcqRel);
    }

    /// Rows that are there of batch number `batch`.
    pub(crate) fn arrived(&self, batch: u64) -> u32 {
        self.arrivals(batch).filled.load(Ordering::Acquire)
    }

    /// Leaves the rest of the batches before number `batch` empty. Nothing may be in flight.
    pub(crate) fn skip_to(&self, batch: u64) {
        let ticket = batch * self.batch_size as u64;
        self.tickets.store(ticket, Ordering::Relaxed); // published by the queues
    }

    fn arrivals(&self, batch: u64) -> &Arrivals {
        &self.ring[self.ring_place(batch)]
    }

    fn ring_place(&self, batch: u64) -> usize {
        to_usize(batch % self.ring.len() as u64)
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("smaller than a batch")
}
