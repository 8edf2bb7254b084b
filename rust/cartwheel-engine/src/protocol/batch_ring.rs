//! The batches in which rows arrive, when they are sent and received in parts.
//!
//! # The order of completion
//!
//! A worker that has finished a row, except for writing it, takes a *ticket*: one more than the
//! last. Ticket `t` is place `t % batch_size` of batch `t / batch_size`. So the rows of a batch are
//! in the order in which they were done, and are written directly to where they are read. The row
//! is then written, and counted in the batch's `filled`; a batch is complete when all its places
//! are committed.
//!
//! The pool opens batches, each with a slab, before it pushes the rows that may be written to them:
//! for `n` rows in flight, `n / batch_size` batches, rounded up. The ring of batches has room for
//! all rows. A batch that is received before it is full, because nothing more is in flight, leaves
//! its last places empty: no worker holds a ticket then, and the pool moves the count to the next
//! batch.
//!
//! # Batches in parts
//!
//! The pool may hand out a part of a batch: places from the first one that was not handed out, as
//! far as all of them are committed (`place_state.rs`). The others go on being drawn and filled, and are
//! handed out later, so nothing has to be agreed with workers. `filled` says that enough rows have
//! come, the words say which: where a place is still being written, later ones may be counted. And a
//! row may be handed out before it is counted, so that its count is one of the next batch at this
//! place of the ring, which is then looked at too early. So the words alone decide. The ring of
//! batches has room for one batch more than all rows need, for the one that was handed out in part.
//!
//! # Memory orders
//!
//! A batch's slab is stored before the queue's `Release`. A worker may draw a ticket of a batch
//! that was opened for a *later* send, to another worker. So `tickets` is drawn with `AcqRel`: the
//! draws form a chain, and the draw of that other worker, which acquired the later send, comes
//! earlier in it. The pool sees rows by the words of their places, which it acquires
//! (`place_state.rs`); their count only tells it when to look at these words.
//!
//! A worker rings the doorbell when `filled` reaches `wanted`. Both sides exchange `filled`, and
//! these exchanges have one order: the pool stores `wanted` and then adds 0 to `filled`; a worker
//! adds its rows and then loads `wanted`. If the worker comes first, the pool sees the rows. If the
//! pool comes first, the worker's `Acquire` pairs with the pool's `Release` and the worker sees
//! `wanted`.
//!
//! # Processes
//!
//! A worker process may die between two instructions, and threads do not. So where workers are
//! processes, the words of places (`place_state.rs`) decide: a row has the place that is
//! claimed for it in the place's word, and a batch is complete when all its places are committed.
//! `tickets` and `filled` only say where to look: a worker that finds the next place claimed
//! moves the ticket on, as the worker that claimed it may have died before it could; and a worker that died
//! before it counted its rows has only missed a ring. In the other direction, a late count may
//! be one of the next batch at this place of the ring, which is then looked at too early.
//!
//! `interleavings.rs` and `deaths.rs` run all this through loom.

use std::ops::Range;

use super::place_state::{Holder, PlaceState};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The number of the next ticket.
pub(super) type Tickets = AtomicU64;

/// A batch that is being filled.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct OpenBatch {
    slab: AtomicU32,
    filled: AtomicU32,
    wanted: AtomicU32,
}

/// The ring of batches that are being filled, and the tickets for their places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchRing<'a> {
    pub(super) tickets: &'a Tickets,
    pub(super) ring: &'a [OpenBatch],
    /// The owner of each place of the ring.
    pub(super) place_states: &'a [PlaceState],
    /// Rows of a batch.
    pub(super) batch_size: usize,
    /// Whether workers are processes, which may die.
    pub(super) mortal: bool,
}

/// Neighboring places of one open batch that a worker has claimed.
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

impl BatchRing<'_> {
    /// Claims the next places, at most `max` of them, for rows that are done, the first of which is
    /// `row`.
    pub(super) fn claim_next(&self, max: usize, row: usize) -> Places {
        let (size, tickets) = (self.batch_size as u64, self.tickets);
        // The loop retries when another worker drew first.
        loop {
            // `Acquire` pairs with the `AcqRel` of every draw before: batch and slab of the ticket are
            // visible, even if they were opened for another worker.
            let ticket = tickets.load(Ordering::Acquire);
            let (batch, first) = (self.ring_place(ticket / size), to_usize(ticket % size));
            // A claim does not extend beyond its batch, and a word claims one place.
            let count = if self.mortal { 1 } else { max.min(self.batch_size - first) };
            let is_claimed =
                self.mortal.then(|| self.states_of(batch)[first].claim(ticket / size, row));
            let (from, to) = (ticket, ticket + count as u64);
            // `AcqRel` makes the draws a chain; a draw that was missed is loaded again.
            let drawn = tickets.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
            if is_claimed.unwrap_or(drawn.is_ok()) {
                return self.places(batch, first, count);
            }
        }
    }

    /// Claims places that were dealt before, at most `max` of them, counted through the ring of
    /// batches: places that the pool dealt, or the places of a worker that died.
    pub(crate) fn claim_given(&self, first: usize, max: usize) -> Places {
        let (batch, first) = (first / self.batch_size % self.ring.len(), first % self.batch_size);
        self.places(batch, first, max.min(self.batch_size - first))
    }

    fn places(&self, batch: usize, first: usize, count: usize) -> Places {
        let slab = self.ring[batch].slab.load(Ordering::Relaxed); // acquired with the ticket or the queue
        Places { batch, slab, first, count }
    }

    /// Commits claimed places, and counts them as filled; returns whether the pool has to be woken.
    pub(crate) fn filled(&self, places: Places) -> bool {
        let claimed = places.first..places.first + places.count;
        self.states_of(places.batch)[claimed].iter().for_each(PlaceState::commit);
        let count = u32::try_from(places.count).expect("a batch has fewer than 2^32 rows");
        let open_batch = &self.ring[places.batch];
        // `AcqRel` orders the count with the pool's in `want`.
        let before = open_batch.filled.fetch_add(count, Ordering::AcqRel);
        let wanted = open_batch.wanted.load(Ordering::Relaxed); // acquired with the count
        before.saturating_add(count) >= wanted
    }

    /// Opens batch number `batch` with this slab. Only the pool calls this.
    pub(crate) fn open(&self, batch: u64, slab: u32) {
        let open_batch = self.open_batch(batch);
        open_batch.slab.store(slab, Ordering::Relaxed); // published by the queues
        open_batch.filled.store(0, Ordering::Relaxed); // likewise, as all that follows
        let size = u32::try_from(self.batch_size).expect("a batch has fewer than 2^32 rows");
        open_batch.wanted.store(size, Ordering::Relaxed);
        for state in self.states_of(self.ring_place(batch)) {
            state.free(batch);
        }
    }

    /// Deals places to `rows`, the first of them `first` places after the first one of batch number
    /// `batch`; returns its number, counted through the ring of batches. Only the pool calls this.
    pub(crate) fn deal(&self, batch: u64, first: usize, rows: Range<usize>) -> u32 {
        let place = |place: usize| {
            let batch = batch + (place / self.batch_size) as u64;
            (batch, self.ring_place(batch) * self.batch_size + place % self.batch_size)
        };
        if self.mortal {
            for (nth, row) in rows.enumerate() {
                let (batch, number) = place(first + nth);
                self.place_states[number].deal(batch, row);
            }
        }
        u32::try_from(place(first).1).expect("the places of the ring are numbered in 32 bits")
    }

    /// Requests a ring when `rows` rows of batch number `batch` have arrived.
    pub(crate) fn want(&self, batch: u64, rows: u32) {
        let open_batch = self.open_batch(batch);
        open_batch.wanted.store(rows, Ordering::Relaxed); // published by the exchange
        open_batch.filled.fetch_add(0, Ordering::AcqRel); // pairs with the count in `filled`
    }

    /// Number of rows of batch number `batch` that were counted.
    pub(crate) fn counted(&self, batch: u64) -> usize {
        // A hint: `arrived` acquires the rows.
        self.open_batch(batch).filled.load(Ordering::Relaxed) as usize
    }

    /// Whether the rows at these places of batch number `batch` have arrived.
    pub(crate) fn arrived(&self, batch: u64, places: Range<usize>) -> bool {
        self.committed(batch, places.clone()) == places.len()
    }

    /// Number of these places of batch number `batch` that are committed, up to the first that is
    /// not.
    pub(crate) fn committed(&self, batch: u64, places: Range<usize>) -> usize {
        let place_states = &self.states_of(self.ring_place(batch))[places];
        place_states.iter().take_while(|state| state.is_committed()).count()
    }

    /// The holders of the places of batch number `batch` from place `from` on, counted through the
    /// ring of batches.
    pub(crate) fn holders(
        &self,
        batch: u64,
        from: usize,
    ) -> impl Iterator<Item = (usize, Holder)> + '_ {
        let batch = self.ring_place(batch);
        let (place_states, first) =
            (&self.states_of(batch)[from..], batch * self.batch_size + from);
        let holders = place_states.iter().enumerate();
        holders.filter_map(move |(nth, state)| Some((first + nth, state.holder()?)))
    }

    /// Leaves the remaining places of the batches before number `batch` empty. No row may be in
    /// flight.
    pub(crate) fn skip_to(&self, batch: u64) {
        let ticket = batch * self.batch_size as u64;
        self.tickets.store(ticket, Ordering::Relaxed); // published by the queues
    }

    /// The owners of the places of the batch at place `batch` of the ring.
    fn states_of(&self, batch: usize) -> &[PlaceState] {
        let first = batch * self.batch_size;
        &self.place_states[first..first + self.batch_size]
    }

    fn open_batch(&self, batch: u64) -> &OpenBatch {
        &self.ring[self.ring_place(batch)]
    }

    fn ring_place(&self, batch: u64) -> usize {
        to_usize(batch % self.ring.len() as u64)
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("smaller than a batch")
}
