//! Rows that were sent, on their way to a worker: one ring per worker.
//!
//! The pool pushes, the worker takes (threads of a crew under the lock of the shard). A ring has a
//! place for each row of its shard, a row is in flight at most once, and what is taken leaves the ring
//! before it is stepped: so a ring never overflows, and neither side ever waits for the other.
//!
//! `Release` on `tail` publishes an entry, the row's action and the batches that were opened for it; it
//! pairs with the `Acquire` in [`WorkQueue::take`]. `head` and the first entry belong to the taker.

use std::ops::Range;

use super::progress::{InHand, Notes};
use crate::sync::{AtomicU32, Ordering};
use crate::wake::Op;

/// Neighbouring rows that were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// [`Op::Step`] or [`Op::Reset`].
    pub op: Op,
    /// What the pool's caller told the shard beside the operation.
    pub flags: u32,
    /// The rows, counted from the start of the environments.
    pub rows: Range<usize>,
    /// Their places, from this one on, counted through the ring of open batches; `None` for the next free
    /// ones when they are done.
    pub place: Option<u32>,
}

/// Marks work whose place is decided when it is done.
const ON_ARRIVAL: u32 = u32::MAX;
/// Marks a reset, beside the flags.
const RESET: u32 = 1 << 31;

/// The two ends of a ring.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Ends {
    /// Number of the next work to take.
    head: AtomicU32,
    /// Number of the next work to push.
    tail: AtomicU32,
}

impl Ends {
    /// Empties the queue of a worker that died.
    pub(super) fn clear(&self) {
        self.head.store(0, Ordering::Relaxed);
        self.tail.store(0, Ordering::Relaxed);
    }
}

/// A place of the ring.
#[derive(Debug, Default)]
#[repr(C, align(16))]
pub(super) struct Entry {
    first: AtomicU32,
    count: AtomicU32,
    what: AtomicU32,
    place: AtomicU32,
}

/// The ring of one worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkQueue<'a> {
    pub(super) ends: &'a Ends,
    pub(super) notes: &'a Notes,
    pub(super) entries: &'a [Entry],
}

impl WorkQueue<'_> {
    fn entry(&self, number: u32) -> &Entry {
        &self.entries[number as usize % self.entries.len()]
    }

    /// Adds work. Only the pool calls this, for rows of this shard that are not in flight.
    ///
    /// # Panics
    ///
    /// When the work has flags above 31 bits.
    pub(crate) fn push(&self, work: &Work) {
        assert!(work.flags < RESET, "31 flags");
        let tail = self.ends.tail.load(Ordering::Relaxed);
        let entry = self.entry(tail);
        entry.first.store(number(work.rows.start), Ordering::Relaxed);
        entry.count.store(number(work.rows.len()), Ordering::Relaxed);
        let reset = if work.op == Op::Reset { RESET } else { 0 };
        entry.what.store(work.flags | reset, Ordering::Relaxed);
        entry.place.store(work.place.unwrap_or(ON_ARRIVAL), Ordering::Relaxed);
        self.ends.tail.store(tail.wrapping_add(1), Ordering::Release);
    }

    /// Whether there is nothing to take.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.head.load(Ordering::Relaxed) == self.ends.tail.load(Ordering::Acquire)
    }

    /// What a worker that died had not counted as filled, one row each: the row in its hands, with its
    /// place, and those in the queue. `None` when the place of the former is not known.
    pub(crate) fn left_behind(&self) -> Option<Vec<Work>> {
        let work = |row: u32, place| {
            let rows = row as usize..row as usize + 1;
            Work { op: Op::Step, flags: 0, rows, place }
        };
        let (in_hand, mut left) = match self.notes.in_hand() {
            InHand::Nothing => (None, Vec::new()),
            InHand::Row(row, place) => (Some(row), vec![work(row, place)]),
            InHand::Unknown => return None,
        };
        let head = self.ends.head.load(Ordering::Relaxed);
        let entries = self.ends.tail.load(Ordering::Relaxed).wrapping_sub(head);
        for nth in 0..entries.min(number(self.entries.len())) {
            let entry = self.entry(head.wrapping_add(nth));
            let first = entry.first.load(Ordering::Relaxed);
            let place = Some(entry.place.load(Ordering::Relaxed)).filter(|&at| at != ON_ARRIVAL);
            // No more than there can be, whatever the dead one wrote; the pool checks the rows.
            let count = entry.count.load(Ordering::Relaxed).min(number(self.entries.len()));
            for nth in 0..count {
                // It may have died before the row in its hands left the queue.
                let row = first.wrapping_add(nth);
                if in_hand != Some(row) {
                    left.push(work(row, place.map(|place| place.wrapping_add(nth))));
                }
            }
        }
        Some(left)
    }

    /// Takes at most `most` rows of the work that was pushed first.
    pub(crate) fn take(&self, most: usize) -> Option<Work> {
        if self.is_empty() {
            return None;
        }
        let head = self.ends.head.load(Ordering::Relaxed);
        let entry = self.entry(head);
        let (first, count) =
            (entry.first.load(Ordering::Relaxed), entry.count.load(Ordering::Relaxed));
        let what = entry.what.load(Ordering::Relaxed);
        let place = Some(entry.place.load(Ordering::Relaxed)).filter(|&place| place != ON_ARRIVAL);
        let taken = count.min(u32::try_from(most).unwrap_or(u32::MAX)).max(1);
        self.notes.note_taken(first, place);
        if taken < count {
            entry.first.store(first + taken, Ordering::Release);
            entry.count.store(count - taken, Ordering::Relaxed);
            if let Some(place) = place {
                entry.place.store(place + taken, Ordering::Relaxed);
            }
        } else {
            // The next lap's `push` into this place follows the receipt of a row that was taken here.
            self.ends.head.store(head.wrapping_add(1), Ordering::Release);
        }
        let op = if what & RESET == 0 { Op::Step } else { Op::Reset };
        let rows = first as usize..(first + taken) as usize;
        Some(Work { op, flags: what & !RESET, rows, place })
    }
}

fn number(row: usize) -> u32 {
    u32::try_from(row).expect("a pool has fewer than 2^32 rows")
}
