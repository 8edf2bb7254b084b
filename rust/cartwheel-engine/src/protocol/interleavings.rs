//! Every interleaving of the queues, the tickets, the open batches, the free list and the
//! leases, with loom.
//!
//! These tests run the code of `queue.rs`, `batch_ring.rs`, `delivery.rs` and `wake/parker.rs`
//! itself; only the words are on the heap instead of in a mapping. An order that is weaker than its
//! comment says makes one of the tests fail.

use std::ops::Range;
use std::time::Duration;

use loom::sync::Arc;
use loom::thread;

use super::batch_ring::{BatchRing, OpenBatch, Places};
use super::delivery::{Delivery, Filling};
use super::place_state::PlaceState;
use super::queue::{Ends, Entry, QueuedRows, RowQueue, ring_places};
use crate::memory::{FreeList, Leases};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::wake::{ModelWord, Op, Parked, doorbell_disarm, every_interleaving, park};

/// The words of a pool of two workers, and memory that they order. That memory is accessed without
/// any order of its own, so a read that the words do not order may see an old value.
pub(crate) struct Words {
    tickets: AtomicU64,
    ring: Vec<OpenBatch>,
    batch_size: usize,
    place_states: Vec<PlaceState>,
    /// Whether the workers are processes.
    mortal: bool,
    ends: [Ends; 2],
    entries: [Vec<Entry>; 2],
    doorbell: ModelWord,
    /// Written by the pool for a row before it is sent: its action.
    actions: Vec<AtomicU32>,
    /// Written by a worker to a place: the row's action.
    places: Vec<AtomicU32>,
}

fn cells(count: usize) -> Vec<AtomicU32> {
    (0..count).map(|_| AtomicU32::new(0)).collect()
}

impl Words {
    /// A thread with `rows` rows, or two with `rows` rows each.
    pub(crate) fn new(rows: usize, batch_size: usize, open_batches: usize) -> Arc<Self> {
        Self::of_threads_or_processes(rows, batch_size, open_batches, false)
    }

    /// Likewise; the workers are processes if `die` is set, which may die.
    pub(super) fn of_threads_or_processes(
        rows: usize,
        batch_size: usize,
        open_batches: usize,
        die: bool,
    ) -> Arc<Self> {
        let entries = || (0..ring_places(rows)).map(|_| Entry::default()).collect();
        Arc::new(Self {
            tickets: AtomicU64::new(0),
            ring: (0..open_batches).map(|_| OpenBatch::default()).collect(),
            batch_size,
            place_states: (0..open_batches * batch_size).map(|_| PlaceState::default()).collect(),
            mortal: die,
            ends: [Ends::default(), Ends::default()],
            entries: [entries(), entries()],
            doorbell: ModelWord::default(),
            actions: cells(4),
            places: cells(4),
        })
    }

    pub(crate) fn queue(&self, worker: usize) -> RowQueue<'_> {
        RowQueue { ends: &self.ends[worker], entries: &self.entries[worker] }
    }

    pub(crate) fn batches(&self) -> BatchRing<'_> {
        let Self { tickets, ring, place_states, batch_size, mortal, .. } = self;
        BatchRing { tickets, ring, place_states, batch_size: *batch_size, mortal: *mortal }
    }

    /// Gives row `row` an action and sends it to a worker.
    fn send(&self, worker: usize, row: usize, action: u32) {
        self.send_rows(worker, row..row + 1, action, None);
    }

    /// Sends rows to a worker, with actions from `action` on, and with places if any are given.
    pub(crate) fn send_rows(
        &self,
        worker: usize,
        rows: Range<usize>,
        action: u32,
        place: Option<u32>,
    ) {
        for (row, action) in rows.clone().zip(action..) {
            self.actions[row].store(action, Ordering::Relaxed);
        }
        if let Some(place) = place {
            self.batches().deal(0, place as usize, rows.clone());
        }
        self.queue(worker).push(&QueuedRows { op: Op::Step, flags: 0, rows, place });
    }

    /// Clears what a dead worker left, as [`Slot::forget`](super::control::Slot) does.
    pub(crate) fn forget(&self, worker: usize) {
        self.ends[worker].clear();
    }

    /// Delivers at most `max` rows of a worker's queue as a worker does. Slab `n` begins at place `n`.
    pub(crate) fn deliver(&self, worker: usize, max: usize) -> usize {
        let (queue, batches) = (self.queue(worker), self.batches());
        Delivery { queue, batches, doorbell: &self.doorbell }
            .deliver(max, &mut Writing { words: self })
    }

    /// Waits for a row in a worker's queue and delivers it.
    fn work(&self, worker: usize) {
        while self.deliver(worker, 1) == 0 {
            thread::yield_now();
        }
    }

    /// Waits, as the pool does, for rows of a batch.
    fn receive(&self, batch: u64, rows: usize) {
        doorbell_disarm(&self.doorbell);
        self.batches().want(batch, u32::try_from(rows).expect("a few"));
        while !self.batches().arrived(batch, 0..rows) {
            if park(&self.doorbell, Duration::from_millis(1)) == Parked::Ready {
                doorbell_disarm(&self.doorbell);
            }
        }
    }

    /// The value at a place.
    pub(crate) fn place(&self, at: usize) -> u32 {
        self.places[at].load(Ordering::Relaxed)
    }
}

/// Writes the actions of rows to their places.
struct Writing<'a> {
    words: &'a Words,
}

impl Filling for Writing<'_> {
    fn prepare(&mut self, _queued: &QueuedRows) {}

    fn together(&mut self, rows: Range<usize>) -> usize {
        rows.len()
    }

    fn fill(&mut self, _queued: &QueuedRows, rows: Range<usize>, places: Places) {
        let words = self.words;
        for (nth, row) in rows.enumerate() {
            let action = words.actions[row].load(Ordering::Relaxed);
            let at = places.slab as usize + places.first + nth;
            words.places[at].store(action, Ordering::Relaxed);
        }
    }

    fn counted(&mut self) {
        self.words.places[0].load(Ordering::Relaxed); // the worker can die here
    }
}

/// Runs `run` in every interleaving, with words of threads and with those of processes.
fn every_interleaving_of_workers(
    [rows, batch_size, open_batches]: [usize; 3],
    run: impl Fn(Arc<Words>) + Copy + Send + Sync + 'static,
) {
    for die in [false, true] {
        every_interleaving(move || {
            run(Words::of_threads_or_processes(rows, batch_size, open_batches, die));
        });
    }
}

fn start(words: &Arc<Words>, worker: usize, rows: usize) -> thread::JoinHandle<()> {
    let words = Arc::clone(words);
    thread::spawn(move || (0..rows).for_each(|_| words.work(worker)))
}

#[test]
fn a_ring_of_one_place_is_used_lap_after_lap() {
    every_interleaving_of_workers([1, 1, 1], |words| {
        let worker = start(&words, 0, 2);
        for (batch, action) in [(0, 7), (1, 8)] {
            words.batches().open(batch, 0);
            words.send(0, 0, action);
            words.receive(batch, 1);
            assert_eq!(words.place(0), action);
        }
        worker.join().expect("a worker");
    });
}

#[test]
fn the_pool_wakes_when_enough_rows_have_arrived_and_sees_them() {
    every_interleaving_of_workers([1, 2, 1], |words| {
        words.batches().open(0, 0);
        words.send(0, 0, 7);
        words.send(1, 1, 8);
        let workers = [start(&words, 0, 1), start(&words, 1, 1)];
        words.receive(0, 2);
        let mut seen = [words.place(0), words.place(1)];
        seen.sort_unstable();
        assert_eq!(seen, [7, 8]);
        workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
    });
}

#[test]
fn a_batch_that_is_received_short_is_not_waited_for() {
    every_interleaving_of_workers([1, 2, 1], |words| {
        words.batches().open(0, 0);
        let worker = start(&words, 0, 1);
        words.send(0, 0, 7);
        words.receive(0, 1); // fewer than the batch has places: `wanted` may be stored last
        assert_eq!(words.place(0), 7);
        words.batches().skip_to(1);
        worker.join().expect("a worker");
    });
}

#[test]
fn a_part_of_a_batch_is_seen_while_later_places_are_drawn_and_written() {
    every_interleaving_of_workers([1, 2, 2], |words| {
        words.batches().open(0, 0);
        words.send(0, 0, 7);
        words.send(1, 1, 8);
        let workers = [start(&words, 0, 1), start(&words, 1, 1)];
        words.receive(0, 1);
        let part = words.batches().committed(0, 0..2);
        assert!(part >= 1, "as many rows as were wanted");
        let first: Vec<_> = (0..part).map(|place| words.place(place)).collect();
        words.receive(0, 2);
        let mut seen = [words.place(0), words.place(1)];
        assert_eq!(first, seen[..part], "a row that was handed out is not written again");
        seen.sort_unstable();
        assert_eq!(seen, [7, 8]);
        workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
    });
}

#[test]
fn a_part_in_the_order_of_sends_waits_for_its_own_places() {
    every_interleaving_of_workers([1, 2, 2], |words| {
        words.batches().open(0, 0);
        words.send_rows(0, 0..1, 7, Some(0));
        words.send_rows(1, 1..2, 8, Some(1));
        let workers = [start(&words, 0, 1), start(&words, 1, 1)];
        words.receive(0, 1);
        assert_eq!(words.place(0), 7, "place 1 may have been counted first");
        words.receive(0, 2);
        assert_eq!(words.place(1), 8);
        workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
    });
}

#[test]
fn a_late_count_of_a_part_does_not_complete_the_next_lap() {
    // The last row of a lap may be handed out before it is counted: the count comes in the next lap.
    every_interleaving_of_workers([1, 1, 1], |words| {
        words.batches().open(0, 0);
        words.send(0, 0, 7);
        let late = start(&words, 0, 1);
        while words.batches().committed(0, 0..1) == 0 {
            thread::yield_now();
        }
        assert_eq!(words.place(0), 7);
        words.batches().open(1, 1);
        words.send(1, 1, 8);
        let other = start(&words, 1, 1);
        words.receive(1, 1);
        assert_eq!(words.place(1), 8);
        [late, other].into_iter().for_each(|worker| worker.join().expect("a worker"));
    });
}

#[test]
fn a_place_of_a_batch_that_was_opened_for_another_worker_is_in_that_batch() {
    every_interleaving_of_workers([1, 1, 2], |words| {
        words.batches().open(0, 2);
        words.send(0, 0, 7);
        let first = start(&words, 0, 1); // sees this send only, and may draw the second ticket
        words.batches().open(1, 3);
        words.send(1, 1, 8);
        let workers = [first, start(&words, 1, 1)];
        workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
        let mut seen = [words.place(2), words.place(3)];
        seen.sort_unstable();
        assert_eq!(seen, [7, 8]);
    });
}

#[test]
fn a_place_that_another_worker_found_claimed_is_in_the_batch_of_its_ticket() {
    // Worker 0 claims the second place; worker 1 finds it claimed, and moves the ticket on.
    every_interleaving(|| {
        let words = Words::of_threads_or_processes(2, 1, 3, true);
        words.batches().open(0, 1);
        words.send(0, 0, 7);
        let first = start(&words, 0, 1);
        words.batches().open(1, 2);
        words.batches().open(2, 3);
        words.send_rows(1, 1..3, 8, None);
        let workers = [first, start(&words, 1, 2)];
        workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
        let mut seen = [words.place(1), words.place(2), words.place(3)];
        seen.sort_unstable();
        assert_eq!(seen, [7, 8, 9]);
    });
}

#[test]
fn a_row_is_visible_when_the_holder_of_its_place_has_committed_it() {
    every_interleaving_of_workers([1, 1, 1], |words| {
        words.batches().open(0, 0);
        words.send(0, 0, 7);
        let worker = start(&words, 0, 1);
        let holder = words.batches().holders(0, 0).next();
        if holder.is_some_and(|(_, holder)| holder.is_committed) {
            assert_eq!(words.place(0), 7);
        }
        worker.join().expect("a worker");
    });
}

#[test]
fn a_slab_has_one_holder_and_earlier_accesses_have_ended() {
    every_interleaving(|| {
        let slabs = Arc::new((FreeList::new(2), cells(2)));
        (0..2).for_each(|slab| slabs.0.push(slab));
        let use_one = {
            let slabs = Arc::clone(&slabs);
            move || {
                let slab = slabs.0.pop()?;
                let uses = slabs.1[slab as usize].load(Ordering::Relaxed);
                slabs.1[slab as usize].store(uses + 1, Ordering::Relaxed);
                slabs.0.push(slab);
                Some(())
            }
        };
        let other = thread::spawn({
            let use_one = use_one.clone();
            move || use_one().expect("a slab each")
        });
        use_one().expect("a slab each");
        use_one().expect("a slab each");
        other.join().expect("the other");
        let uses = slabs.1.iter().map(|uses| uses.load(Ordering::Relaxed));
        assert_eq!(uses.sum::<u32>(), 3);
    });
}

#[test]
fn the_last_of_two_leases_ends_after_all_reads() {
    every_interleaving(|| {
        let slab = Arc::new((Leases::none(), cells(2)));
        slab.0.begin();
        slab.0.add();
        // Whether all reads are seen to have ended, if this lease was the last one.
        let read = {
            let slab = Arc::clone(&slab);
            move |part: usize| {
                slab.1[part].store(1, Ordering::Relaxed);
                slab.0.end().then(|| slab.1.iter().all(|read| read.load(Ordering::Relaxed) == 1))
            }
        };
        let other = thread::spawn({
            let read = read.clone();
            move || read(1)
        });
        let mut seen = [read(0), other.join().expect("the other")];
        seen.sort_unstable();
        assert_eq!(seen, [None, Some(true)]);
    });
}

#[test]
fn memory_without_leases_was_read_before() {
    every_interleaving(|| {
        let slab = Arc::new((Leases::none(), cells(1)));
        slab.0.begin();
        let reader = thread::spawn({
            let slab = Arc::clone(&slab);
            move || {
                slab.1[0].store(1, Ordering::Relaxed);
                slab.0.end();
            }
        });
        if !slab.0.any() {
            assert_eq!(slab.1[0].load(Ordering::Relaxed), 1, "the read comes before");
        }
        reader.join().expect("the reader");
    });
}

#[test]
fn a_head_that_was_popped_and_pushed_again_differs() {
    every_interleaving(|| {
        let free = Arc::new(FreeList::new(3));
        [2, 1, 0].into_iter().for_each(|slab| free.push(slab));
        let other = thread::spawn({
            let free = Arc::clone(&free);
            move || free.pop().expect("three slabs for three takers")
        });
        let (first, second) = (free.pop().expect("one"), free.pop().expect("two"));
        free.push(first); // on top again, with another one below
        let third = other.join().expect("the other");
        assert_ne!(second, third);
        let mut all: Vec<_> = std::iter::from_fn(|| free.pop()).chain([second, third]).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    });
}

#[test]
fn no_slab_is_handed_out_twice_and_none_is_lost() {
    every_interleaving(|| {
        let free = Arc::new(FreeList::new(3));
        let holders: Arc<[AtomicU32; 3]> = Arc::new(std::array::from_fn(|_| AtomicU32::new(0)));
        (0..3).for_each(|slab| free.push(slab));
        let take_and_give_back = {
            let (free, holders) = (Arc::clone(&free), Arc::clone(&holders));
            move || {
                let slab = free.pop().expect("three slabs for three takers");
                assert_eq!(holders[slab as usize].fetch_add(1, Ordering::Relaxed), 0);
                holders[slab as usize].fetch_sub(1, Ordering::Relaxed);
                free.push(slab);
            }
        };
        let threads: Vec<_> = (0..2).map(|_| thread::spawn(take_and_give_back.clone())).collect();
        take_and_give_back();
        threads.into_iter().for_each(|thread| thread.join().expect("a taker"));
        let mut left: Vec<_> = std::iter::from_fn(|| free.pop()).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 1, 2]);
    });
}
