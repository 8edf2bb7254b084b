//! Every interleaving of the wake-ups and of the free list, by loom.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p cartwheel --release --lib --test loom`
#![cfg(loom)]

use std::time::Duration;

use cartwheel::memory::FreeList;
use cartwheel::wake::{
    Command, ModelWord, Op, Word, doorbell_disarm, every_interleaving, park, publish, ring, take,
};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

fn next_command(word: &ModelWord) -> Command {
    loop {
        match take(word) {
            Some(command) => return command,
            None => {
                park(word, Duration::from_millis(1));
            }
        }
    }
}

#[test]
fn a_published_command_always_reaches_its_worker() {
    every_interleaving(|| {
        let word = Arc::new(ModelWord::default());
        let worker = thread::spawn({
            let word = Arc::clone(&word);
            move || [next_command(&word).op, next_command(&word).op]
        });
        publish(&*word, Command { op: Op::Step, task: 1 });
        // The pool waits for the acknowledgement before it publishes again; here, until it is taken.
        while word.load() >> 3 == 1 {
            thread::yield_now();
        }
        publish(&*word, Command { op: Op::Close, task: 2 });
        assert_eq!(worker.join().unwrap(), [Op::Step, Op::Close]);
    });
}

#[test]
fn a_close_on_top_of_another_command_is_never_lost() {
    every_interleaving(|| {
        let word = Arc::new(ModelWord::default());
        let worker = thread::spawn({
            let word = Arc::clone(&word);
            move || while next_command(&word).op != Op::Close {}
        });
        publish(&*word, Command { op: Op::Step, task: 1 });
        publish(&*word, Command { op: Op::Close, task: 2 });
        worker.join().unwrap();
    });
}

#[test]
fn the_last_acknowledgement_wakes_the_pool_and_shows_every_row() {
    every_interleaving(|| {
        struct Shared {
            doorbell: ModelWord,
            remaining: AtomicU32,
            done: [AtomicU32; 2],
            rows: [AtomicU32; 2],
        }
        let zeros = || [AtomicU32::new(0), AtomicU32::new(0)];
        let shared = Arc::new(Shared {
            doorbell: ModelWord::default(),
            remaining: AtomicU32::new(2),
            done: zeros(),
            rows: zeros(),
        });
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.rows[worker].store(7, Ordering::Relaxed);
                    shared.done[worker].store(1, Ordering::Release);
                    if shared.remaining.fetch_sub(1, Ordering::AcqRel) == 1 {
                        ring(&shared.doorbell);
                    }
                })
            })
            .collect();
        let ready = || shared.done.iter().all(|done| done.load(Ordering::Acquire) == 1);
        while !ready() {
            if park(&shared.doorbell, Duration::from_millis(1)) == cartwheel::wake::Parked::Ready {
                doorbell_disarm(&shared.doorbell);
            }
        }
        assert!(shared.rows.iter().all(|row| row.load(Ordering::Relaxed) == 7));
        workers.into_iter().for_each(|worker| worker.join().unwrap());
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
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut left: Vec<_> = std::iter::from_fn(|| free.pop()).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 1, 2]);
    });
}
