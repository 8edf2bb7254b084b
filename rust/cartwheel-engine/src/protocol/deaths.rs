//! The death of a worker before each access to a word while it delivers rows, in every
//! interleaving, with loom.
//!
//! The worker runs the code of `delivery.rs`, and the words of the places say what is left, while
//! another worker goes on. The rows that are left go to a successor, here the pool's own thread, and
//! every row arrives once.

use std::ops::Range;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::interleavings::Words;
use super::queue::QueuedRows;
use crate::failpoint::dies_after;
use crate::wake::{Op, every_death};

impl Words {
    /// Hands what dead worker `worker` left of `rows`, which were in flight, to a successor, which
    /// delivers it, at most `max` rows at once. As `Pool::resume` does, with the batches that are
    /// `open`.
    fn follow(&self, worker: usize, rows: Range<usize>, open: Range<u64>, max: usize) {
        self.follow_beyond(worker, rows, open, 0, max);
    }

    /// Likewise, where the first `handed_out` places of the first open batch were handed out.
    fn follow_beyond(
        &self,
        worker: usize,
        rows: Range<usize>,
        open: Range<u64>,
        handed_out: usize,
        max: usize,
    ) {
        self.forget(worker);
        let batches = self.batches();
        let first = open.start;
        for row in rows {
            let from = |batch| if batch == first { handed_out } else { 0 };
            let mut holders = open.clone().flat_map(|batch| batches.holders(batch, from(batch)));
            let own = holders.find(|(_, holder)| holder.row == row);
            if own.is_none_or(|(_, holder)| !holder.is_committed) {
                let place = own.map(|(place, _)| u32::try_from(place).expect("a few"));
                let queued = QueuedRows { op: Op::Step, flags: 0, rows: row..row + 1, place };
                self.queue(worker).push(&queued);
            }
        }
        while self.deliver(worker, max) > 0 {}
    }

    /// Opens batches for three rows.
    fn open_three(&self, batch_size: usize) {
        for batch in 0..3_usize.div_ceil(batch_size) {
            let first = u32::try_from(batch * batch_size).expect("below 4");
            self.batches().open(batch as u64, first);
        }
    }

    /// Checks that each of three rows is in one place, and was counted once.
    fn assert_three_arrived(&self, batch_size: usize, context: &str) {
        let mut shown = [0, 1, 2].map(|at| self.place(at));
        shown.sort_unstable();
        assert_eq!(shown, [7, 8, 9], "every row is in one place, {context}");
        for batch in 0..3_usize.div_ceil(batch_size) {
            let rows = batch_size.min(3 - batch * batch_size);
            assert!(self.batches().arrived(batch as u64, 0..rows), "{context}");
        }
    }

    /// The batches of three rows.
    fn of_three(&self) -> Range<u64> {
        0..self.batches().ring.len() as u64
    }
}

/// The words of two processes.
fn mortal(rows: usize, batch_size: usize, open_batches: usize) -> Arc<Words> {
    Words::of_threads_or_processes(rows, batch_size, open_batches, true)
}

/// Worker 0 delivers two rows, at most `max` at once, and dies after `accesses` accesses, while
/// worker 1 delivers one row.
fn dies_next_to_another(
    accesses: u32,
    max: usize,
    batch_size: usize,
    places: Option<[u32; 2]>,
) -> bool {
    let words = mortal(2, batch_size, 3_usize.div_ceil(batch_size));
    words.open_three(batch_size);
    words.send_rows(0, 0..2, 7, places.map(|[first, _]| first));
    words.send_rows(1, 2..3, 9, places.map(|[_, second]| second));
    let mortal = thread::spawn({
        let words = Arc::clone(&words);
        move || dies_after(accesses, || while words.deliver(0, max) > 0 {})
    });
    let other = thread::spawn({
        let words = Arc::clone(&words);
        move || words.deliver(1, 1)
    });
    let died = mortal.join().expect("a worker that ends or dies");
    if died {
        words.follow(0, 0..2, words.of_three(), max);
    }
    other.join().expect("the other worker");
    words.assert_three_arrived(batch_size, &format!("after {accesses} accesses"));
    died
}

#[test]
fn rows_with_given_places_arrive_once_wherever_their_worker_dies() {
    for max in [1, 2] {
        every_death(move |accesses| dies_next_to_another(accesses, max, 3, Some([0, 2])));
    }
}

#[test]
fn rows_without_places_arrive_once_wherever_their_worker_dies() {
    for max in [1, 2] {
        every_death(move |accesses| dies_next_to_another(accesses, max, 2, None));
    }
}

#[test]
fn rows_of_three_batches_arrive_once_wherever_their_worker_dies() {
    every_death(|accesses| dies_next_to_another(accesses, 1, 1, None));
}

/// Both workers die, worker 1 after `other` accesses. Returns whether worker 0 died.
fn both_die(accesses: u32, other: u32, batch_size: usize) -> bool {
    let words = mortal(2, batch_size, 3_usize.div_ceil(batch_size));
    words.open_three(batch_size);
    words.send_rows(0, 0..2, 7, None);
    words.send_rows(1, 2..3, 9, None);
    let workers = [(0, accesses), (1, other)].map(|(worker, accesses)| {
        let words = Arc::clone(&words);
        thread::spawn(move || dies_after(accesses, || while words.deliver(worker, 2) > 0 {}))
    });
    let died = workers.map(|worker| worker.join().expect("a worker that ends or dies"));
    words.follow(0, 0..2, words.of_three(), 2);
    words.follow(1, 2..3, words.of_three(), 2);
    words.assert_three_arrived(batch_size, &format!("after {accesses} and {other} accesses"));
    died[0]
}

#[test]
fn rows_arrive_once_wherever_both_workers_die() {
    for (other, batch_size) in (0..20).flat_map(|other| [(other, 1), (other, 2)]) {
        every_death(move |accesses| both_die(accesses, other, batch_size));
    }
}

#[test]
fn a_batch_that_was_returned_is_not_written_wherever_the_worker_dies() {
    every_death(|accesses| {
        let words = mortal(1, 1, 1);
        let dead = Arc::new(AtomicBool::new(false));
        let mortal = thread::spawn({
            let (words, dead) = (Arc::clone(&words), Arc::clone(&dead));
            move || {
                let mut rows = 0;
                let died = dies_after(accesses, || {
                    while rows < 2 {
                        rows += words.deliver(0, 1);
                        thread::yield_now();
                    }
                });
                dead.store(died, Ordering::Release);
                died
            }
        });
        let mut is_followed = false;
        for (next, action) in [(0, 7), (1, 8)] {
            words.batches().open(next, u32::try_from(next).expect("0 or 1"));
            words.send_rows(0, 0..1, action, None);
            // As in `Pool::wait_for`: the pool checks for a death while the rows are missing.
            while !words.batches().arrived(next, 0..1) {
                if is_followed {
                    words.deliver(0, 1);
                } else if dead.load(Ordering::Acquire) {
                    words.follow(0, 0..1, next..next + 1, 1);
                    is_followed = true;
                }
                thread::yield_now();
            }
            let shown = [words.place(0), words.place(1)];
            assert_eq!(shown, if next == 0 { [7, 0] } else { [7, 8] }, "after {accesses} accesses");
        }
        mortal.join().expect("a worker that ends or dies")
    });
}

/// A worker with two rows dies after `accesses` accesses while the pool polls once, and sends the first
/// row again if it came.
fn dies_next_to_a_part(accesses: u32, are_dealt: bool) -> bool {
    let words = mortal(2, 2, 2);
    words.batches().open(0, 0);
    words.send_rows(0, 0..2, 7, are_dealt.then_some(0));
    let mortal = thread::spawn({
        let words = Arc::clone(&words);
        move || dies_after(accesses, || while words.deliver(0, 1) > 0 {})
    });
    let part = words.batches().committed(0, 0..1);
    if part == 1 {
        assert_eq!(words.place(0), 7, "the row of a part is seen, after {accesses} accesses");
        words.batches().open(1, 2);
        words.send_rows(0, 0..1, 9, are_dealt.then_some(2));
    }
    let died = mortal.join().expect("a worker that ends or dies");
    if died {
        words.follow_beyond(0, 0..2, 0..1 + part as u64, part, 1);
    }
    while words.deliver(0, 1) > 0 {}
    assert_eq!(words.batches().committed(0, 0..2), 2, "after {accesses} accesses");
    assert_eq!(words.place(0), 7, "a row of a part is not repeated, after {accesses} accesses");
    let mut others = [words.place(1), words.place(2)];
    others.sort_unstable();
    let expected = if part == 1 { [8, 9] } else { [0, 8] };
    assert_eq!(others, expected, "after {accesses} accesses");
    died
}

#[test]
fn rows_of_a_part_are_not_repeated_wherever_their_worker_dies() {
    for are_dealt in [false, true] {
        every_death(move |accesses| dies_next_to_a_part(accesses, are_dealt));
    }
}
