//! The batches in which rows arrive, when they are sent and received in parts.
//!
//! # The order of completion
//!
//! A worker that has finished a row, except for writing it, takes a *ticket*: one more than the
//! last. Ticket `t` is place `t % batch_size` of batch `t / batch_size`. So the rows of a batch are
//! in the order in which they were done, and are written directly to where they are read. The row
//! is then written, and counted in the batch's `filled`; a batch is complete when all its places
//! are counted.
//!
//! The pool opens batches, each with a slab, before it pushes the rows that may be written to them:
//! for `n` rows in flight, `n / batch_size` batches, rounded up. The ring of batches has room for
//! all rows. A batch that is received before it is full, because nothing more is in flight, leaves
//! its last places empty: no worker holds a ticket then, and the pool moves the count to the next
//! batch.
//!
//! # Memory orders
//!
//! A batch's slab is stored before the queue's `Release`. A worker may draw a ticket of a batch
//! that was opened for a *later* send, to another worker. So `tickets` is drawn with `AcqRel`: the
//! draws form a chain, and the draw of that other worker, which acquired the later send, comes
//! earlier in it. `filled` is counted with `AcqRel`, so the pool's `Acquire` of the complete count
//! sees all rows.
//!
//! A worker rings the doorbell when `filled` reaches `wanted`. Both sides exchange `filled`, and
//! these exchanges have one order: the pool stores `wanted` and then adds 0 to `filled`; a worker
//! adds its rows and then loads `wanted`. If the worker comes first, the pool sees the rows. If the
//! pool comes first, the worker's `Acquire` pairs with the pool's `Release` and the worker sees
//! `wanted`.
//!
//! The pool loads `tickets` and `filled` with `Acquire` to find out what a dead worker did, see
//! `settling.rs`.
//!
//! `interleavings.rs` runs all this through loom.

use super::progress::Run;
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

/// The ring of batches that are being filled, and the tickets for their places.
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
    /// Number of places.
    pub(crate) count: usize,
}

impl Places {
    /// The places, counted through the ring of batches of `batch_size` rows.
    pub(super) fn run(&self, batch_size: usize) -> Run {
        run(self.batch * batch_size + self.first, self.count)
    }
}

impl OpenBatches<'_> {
    /// Claims the next places, at most `most` of them, for rows that are done. `attempt` is called
    /// before each attempt, with the places that it is for.
    pub(super) fn claim_next(&self, most: usize, attempt: impl Fn(Run)) -> Places {
        let (size, tickets) = (self.batch_size as u64, self.tickets);
        // A claim does not extend beyond its batch. The loop retries when another worker drew first.
        let mut ticket = tickets.load(Ordering::Relaxed);
        loop {
            let (batch, first) = (self.ring_place(ticket / size), to_usize(ticket % size));
            let count = most.min(self.batch_size - first);
            attempt(run(batch * self.batch_size + first, count));
            let drawn = tickets.compare_exchange_weak(
                ticket,
                ticket + count as u64,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match drawn {
                Ok(_) => return self.places(batch, first, count),
                Err(now) => ticket = now,
            }
        }
    }

    /// Claims places that were dealt before, counted through the ring of batches: places of the
    /// only batch, dealt by the pool, or the places of a worker that died.
    pub(crate) fn claim_given(&self, first: usize, count: usize) -> Places {
        let batch = first / self.batch_size % self.ring.len();
        self.places(batch, first % self.batch_size, count)
    }

    fn places(&self, batch: usize, first: usize, count: usize) -> Places {
        let slab = self.ring[batch].slab.load(Ordering::Relaxed); // see above
        Places { batch, slab, first, count }
    }

    /// Counts claimed places as filled; returns whether the pool has to be woken.
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

    /// Requests a ring when `rows` rows of batch number `batch` have arrived.
    pub(crate) fn want(&self, batch: u64, rows: u32) {
        let arrivals = self.arrivals(batch);
        arrivals.wanted.store(rows, Ordering::Relaxed); // published by the exchange
        arrivals.filled.fetch_add(0, Ordering::AcqRel);
    }

    /// Number of rows of batch number `batch` that have arrived.
    pub(crate) fn arrived(&self, batch: u64) -> u32 {
        self.arrivals(batch).filled.load(Ordering::Acquire)
    }

    /// Leaves the remaining places of the batches before number `batch` empty. No row may be in
    /// flight.
    pub(crate) fn skip_to(&self, batch: u64) {
        let ticket = batch * self.batch_size as u64;
        self.tickets.store(ticket, Ordering::Relaxed); // published by the queues
    }

    /// The place in the ring of the batch with place `place`, whatever a dead worker wrote.
    pub(super) fn batch_of(&self, place: u32) -> usize {
        place as usize / self.batch_size % self.ring.len()
    }

    /// Number of places that were drawn of the batch at place `at` of the ring; `next` is the number
    /// of the batch that is received next.
    pub(super) fn drawn(&self, at: usize, next: u64) -> u32 {
        let ring = self.ring.len();
        let ahead = (at + ring - self.ring_place(next)) % ring;
        let first = (next + ahead as u64) * self.batch_size as u64;
        let drawn = self.tickets.load(Ordering::Acquire).saturating_sub(first);
        let drawn = drawn.min(self.batch_size as u64);
        u32::try_from(drawn).expect("a batch has fewer than 2^32 rows")
    }

    /// Number of rows of the batch at place `at` of the ring that were counted.
    pub(super) fn counted(&self, at: usize) -> u32 {
        self.ring[at].filled.load(Ordering::Acquire)
    }

    /// Counts `count` rows of the batch at place `at` of the ring, for a worker that died before it
    /// counted them.
    pub(super) fn count(&self, at: usize, count: u32) {
        // `Relaxed`: the `Acquire` of the dead worker's note has shown its rows to the pool, and an
        // exchange passes on what earlier ones have released.
        self.ring[at].filled.fetch_add(count, Ordering::Relaxed);
    }

    fn arrivals(&self, batch: u64) -> &Arrivals {
        &self.ring[self.ring_place(batch)]
    }

    fn ring_place(&self, batch: u64) -> usize {
        to_usize(batch % self.ring.len() as u64)
    }
}

fn run(first: usize, count: usize) -> Run {
    let number = |number| u32::try_from(number).expect("places are fewer than 2^32");
    Run { first: number(first), count: number(count) }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("smaller than a batch")
}
