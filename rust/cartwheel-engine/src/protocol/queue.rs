//! Rows that were sent and wait for their worker: one ring for each worker.
//!
//! The pool pushes rows and the worker takes them (threads of a thread pool under the lock of the shard).
//! An entry of the ring does not change after the push, and rows leave the ring when they are
//! written and about to be committed.
//!
//! A ring has at least as many places as its shard has rows. A row is in flight at most once, and
//! leaves the ring before it is received: so a ring never overflows, and neither side waits for the
//! other. The number of places is a power of two, so the numbers of entries can wrap around at
//! 2^32.
//!
//! `Release` on `tail` publishes an entry, the row's action and the batches that were opened for it; it
//! pairs with the `Acquire` in [`RowQueue::first`].

use std::ops::Range;

use crate::sync::{AtomicU32, AtomicU64, Ordering, pack, unpack};
use crate::wake::Op;

/// Neighboring rows that were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedRows {
    /// [`Op::Step`] or [`Op::Reset`].
    pub op: Op,
    /// Flags that the pool's caller passes to the shard.
    pub flags: u32,
    /// The rows, counted from the first row of the pool.
    pub rows: Range<usize>,
    /// The first of their places, counted through the ring of open batches; `None` for the next
    /// free places when the rows are done.
    pub place: Option<u32>,
}

/// Marks work whose place is decided when it is done.
const ON_ARRIVAL: u32 = u32::MAX;
/// Marks a reset, together with the flags.
const RESET: u32 = 1 << 31;
/// Number of places in the ring of a shard with `rows` rows, fewer than twice as many.
pub(super) const fn ring_places(rows: usize) -> usize {
    rows.next_power_of_two()
}

/// The two ends of a ring.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Ends {
    /// The first row in the ring: the number of its entry in the upper half, and in the lower half
    /// the number of rows of the entry that come before it.
    first: AtomicU64,
    /// Number of the next entry to push.
    tail: AtomicU32,
}

impl Ends {
    /// Empties the queue of a worker that died.
    pub(super) fn clear(&self) {
        // `Relaxed`: the worker is dead, and the start of the next one publishes it.
        self.first.store(0, Ordering::Relaxed);
        self.tail.store(0, Ordering::Relaxed);
    }

    /// The number of the entry of the first row in the ring, and the number of its rows that come
    /// before that row.
    fn first(&self) -> (u32, u32) {
        unpack(self.first.load(Ordering::Relaxed)) // one thread at a time removes rows
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

impl Entry {
    /// The place of its row number `nth`, if places were dealt.
    fn place(&self, nth: u32) -> Option<u32> {
        let first = self.place.load(Ordering::Relaxed); // acquired with `tail`
        (first != ON_ARRIVAL).then(|| first.wrapping_add(nth))
    }
}

/// The ring of one worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowQueue<'a> {
    pub(super) ends: &'a Ends,
    pub(super) entries: &'a [Entry],
}

impl RowQueue<'_> {
    fn entry(&self, number: u32) -> &Entry {
        &self.entries[number as usize & (self.entries.len() - 1)]
    }

    /// Adds work. Only the pool calls this, for rows of this shard that are not in flight.
    ///
    /// # Panics
    ///
    /// When the work has flags above 31 bits.
    pub(crate) fn push(&self, queued: &QueuedRows) {
        assert!(queued.flags < RESET, "31 flags");
        // `Relaxed` up to the last line: only the pool writes `tail`, and `tail` publishes the entry.
        // The worker has read what this place held in the last lap: it removed those rows before the
        // commits that the pool acquired.
        let tail = self.ends.tail.load(Ordering::Relaxed);
        let entry = self.entry(tail);
        entry.first.store(number(queued.rows.start), Ordering::Relaxed);
        entry.count.store(number(queued.rows.len()), Ordering::Relaxed);
        let reset = if queued.op == Op::Reset { RESET } else { 0 };
        entry.what.store(queued.flags | reset, Ordering::Relaxed);
        entry.place.store(queued.place.unwrap_or(ON_ARRIVAL), Ordering::Relaxed);
        self.ends.tail.store(tail.wrapping_add(1), Ordering::Release); // pairs with `first`
    }

    /// A number that changes when a row leaves the queue.
    pub(crate) fn taken(&self) -> u64 {
        self.ends.first.load(Ordering::Relaxed) // only compared, by the watchdog
    }

    /// A number that changes when work is pushed.
    pub(crate) fn pushed(&self) -> u32 {
        self.ends.tail.load(Ordering::Relaxed) // only compared, by the pool, which writes it
    }

    /// Whether every row has left the queue.
    pub(crate) fn is_empty(&self) -> bool {
        let (entry, _) = self.ends.first();
        // Relaxed: nothing is read because of it but the queue itself, by `first`.
        entry == self.ends.tail.load(Ordering::Relaxed)
    }

    /// At most `max` rows of the work that was pushed first. They stay in the queue.
    pub(super) fn first(&self, max: usize) -> Option<QueuedRows> {
        let (number, before) = self.ends.first();
        // `Acquire` pairs with the `Release` in `push`: the entry is visible, and with it the row's
        // action and its batch, so the loads below need no order.
        if number == self.ends.tail.load(Ordering::Acquire) {
            return None;
        }
        let entry = self.entry(number);
        let first = entry.first.load(Ordering::Relaxed) + before;
        let max = u32::try_from(max).unwrap_or(u32::MAX).max(1);
        let count = (entry.count.load(Ordering::Relaxed) - before).min(max);
        let what = entry.what.load(Ordering::Relaxed);
        let op = if what & RESET == 0 { Op::Step } else { Op::Reset };
        let rows = first as usize..(first + count) as usize;
        Some(QueuedRows { op, flags: what & !RESET, rows, place: entry.place(before) })
    }

    /// Removes rows that are about to be committed: the first `count`, all of one entry.
    pub(super) fn remove(&self, count: usize) {
        let (number, before) = self.ends.first();
        let before = before + self::number(count);
        let next = if before < self.entry(number).count.load(Ordering::Relaxed) {
            pack(number, before)
        } else {
            pack(number.wrapping_add(1), 0)
        };
        // `push` reuses this place in the next lap, after the row that left it was received: the commit
        // of that row releases that the entry was read.
        self.ends.first.store(next, Ordering::Relaxed);
    }
}

fn number(row: usize) -> u32 {
    u32::try_from(row).expect("a pool has fewer than 2^32 rows")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_order_where_the_numbers_of_works_start_again() {
        for rows in 1..=9_usize {
            let entries: Vec<_> = (0..ring_places(rows)).map(|_| Entry::default()).collect();
            let start = u32::MAX - 2;
            let ends = Ends { first: AtomicU64::new(pack(start, 0)), tail: AtomicU32::new(start) };
            let queue = RowQueue { ends: &ends, entries: &entries };
            for lap in 0..3 {
                for row in 0..rows {
                    let place = Some(number(lap * rows + row));
                    queue.push(&QueuedRows { op: Op::Step, flags: 0, rows: row..row + 1, place });
                }
                for row in 0..rows {
                    let queued = queue.first(1).expect("as many as were pushed");
                    queue.remove(1);
                    assert_eq!(
                        (queued.rows, queued.place),
                        (row..row + 1, Some(number(lap * rows + row))),
                        "of {rows}"
                    );
                }
                assert!(queue.is_empty());
            }
        }
    }
}
