//! The death of a worker before each access to a word while it delivers rows, in every
//! interleaving, with loom.
//!
//! The worker runs the code of `delivery.rs`, and the pool reads what is left with the code of
//! `queue.rs`. The rows that are left go to a successor, here the pool's own thread, and every row
//! arrives once. A test ends early only after a death while places are claimed or counted, which
//! breaks the pool.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::interleavings::Words;
use crate::wake::{dies_after, every_death};

/// Hands what dead worker 0 left to a successor, which delivers it, at most `most` rows at once.
/// Returns whether the pool could determine what was left.
fn is_followed(words: &Words, most: usize) -> bool {
    let Some(left) = words.queue(0).left_behind() else {
        let is_stepping = words.is_stepping[0].load(Ordering::Relaxed);
        assert!(!is_stepping, "what a worker left that died at its rows is known");
        return false;
    };
    words.forget(0);
    left.iter().for_each(|work| words.queue(0).push(work));
    while words.deliver(0, most) > 0 {}
    true
}

/// Worker 0 delivers two rows, at most `most` at once, and dies after `accesses` accesses, while
/// worker 1 delivers one row.
fn dies_beside_another(
    accesses: u32,
    most: usize,
    batch_size: usize,
    places: Option<[u32; 2]>,
) -> bool {
    let words = Words::new(2, batch_size, 3_usize.div_ceil(batch_size));
    for (batch, slab) in (0..3_u32.div_ceil(batch_size as u32)).enumerate() {
        words.batches().open(batch as u64, slab * batch_size as u32);
    }
    words.send_rows(0, 0..2, 7, places.map(|[first, _]| first));
    words.send_rows(1, 2..3, 9, places.map(|[_, second]| second));
    let mortal = thread::spawn({
        let words = Arc::clone(&words);
        move || dies_after(accesses, || while words.deliver(0, most) > 0 {})
    });
    let other = thread::spawn({
        let words = Arc::clone(&words);
        move || words.deliver(1, 1)
    });
    let died = mortal.join().expect("a worker that ends or dies");
    let is_known = !died || is_followed(&words, most);
    other.join().expect("the other worker");
    if is_known {
        let mut shown = [0, 1, 2].map(|at| words.place(at));
        shown.sort_unstable();
        assert_eq!(shown, [7, 8, 9], "every row is in one place, after {accesses} accesses");
        let batches = 0..3_usize.div_ceil(batch_size) as u64;
        assert_eq!(batches.map(|batch| words.batches().arrived(batch)).sum::<u32>(), 3);
    }
    died
}

#[test]
fn rows_with_given_places_arrive_once_wherever_their_worker_dies() {
    for most in [1, 2] {
        every_death(move |accesses| dies_beside_another(accesses, most, 3, Some([0, 2])));
    }
}

#[test]
fn rows_without_places_arrive_once_wherever_their_worker_dies() {
    for most in [1, 2] {
        every_death(move |accesses| dies_beside_another(accesses, most, 2, None));
    }
}

#[test]
fn a_batch_that_was_returned_is_not_written_wherever_the_worker_dies() {
    every_death(|accesses| {
        let words = Words::new(1, 1, 1);
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
        let (mut is_known, mut is_dead) = (true, false);
        for (batch, action) in [(0, 7), (1, 8)] {
            words.batches().open(batch, u32::try_from(batch).expect("0 or 1"));
            words.send_rows(0, 0..1, action, None);
            // As in `Pool::wait_for`: the pool checks for a death while the rows are missing.
            while is_known && words.batches().arrived(batch) == 0 {
                is_dead |= dead.load(Ordering::Acquire);
                is_known = !is_dead || is_followed(&words, 1);
                thread::yield_now();
            }
            if !is_known {
                break;
            }
            let shown = [words.place(0), words.place(1)];
            assert_eq!(
                shown,
                if batch == 0 { [7, 0] } else { [7, 8] },
                "after {accesses} accesses"
            );
        }
        mortal.join().expect("a worker that ends or dies")
    });
}
