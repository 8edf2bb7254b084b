//! Every interleaving of the wake-ups, with loom.

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;

use super::model::{ModelEventCount, ModelWord, every_death, every_interleaving};
use super::{
    Latch, Op, Parked, Sleeper, TaskWord, WakeRequest, Word, acknowledge, acknowledge_uncounted,
    count, doorbell_disarm, has_acknowledged, park, publish, publish_all, take,
};
use crate::failpoint::dies_after;
use crate::sync::{AtomicU32, Ordering};

/// The words of two workers that share an event count.
#[derive(Default)]
struct Pair {
    words: [ModelWord; 2],
    event_count: ModelEventCount,
    /// Written before a task is published, as the words of a slot are.
    slab: AtomicU32,
}

impl Pair {
    fn sleeper(&self, worker: usize) -> Sleeper<&ModelWord, &ModelEventCount> {
        Sleeper::new(worker, &self.words[worker], &self.event_count)
    }

    fn publish_all(&self, task_word: TaskWord) {
        self.slab.store(task_word.task, Ordering::Relaxed);
        publish_all([0, 1].map(|worker| self.sleeper(worker)), task_word);
    }

    fn next_task(&self, worker: usize) -> TaskWord {
        let word = self.sleeper(worker);
        loop {
            match take(&word) {
                Some(task_word) => return task_word,
                None => {
                    park(&word, Duration::from_millis(1));
                }
            }
        }
    }
}

#[test]
fn a_published_command_always_reaches_its_worker() {
    every_interleaving(|| {
        let pair = Arc::new(Pair::default());
        let worker = thread::spawn({
            let pair = Arc::clone(&pair);
            move || [pair.next_task(0).op, pair.next_task(0).op]
        });
        publish(&pair.sleeper(0), TaskWord { op: Op::Step, task: 1 });
        // The pool publishes again after the acknowledgement; here, it waits until the task word is taken.
        while pair.words[0].load() >> 3 == 1 {
            thread::yield_now();
        }
        publish(&pair.sleeper(0), TaskWord { op: Op::Close, task: 2 });
        assert_eq!(worker.join().unwrap(), [Op::Step, Op::Close]);
    });
}

#[test]
fn a_close_on_top_of_another_command_is_never_lost() {
    every_interleaving(|| {
        let pair = Arc::new(Pair::default());
        let worker = thread::spawn({
            let pair = Arc::clone(&pair);
            move || while pair.next_task(0).op != Op::Close {}
        });
        publish(&pair.sleeper(0), TaskWord { op: Op::Step, task: 1 });
        publish(&pair.sleeper(0), TaskWord { op: Op::Close, task: 2 });
        worker.join().unwrap();
    });
}

#[test]
fn a_command_reaches_every_worker_that_shares_an_event_count() {
    every_interleaving(|| {
        let pair = Arc::new(Pair::default());
        let workers = [0, 1].map(|worker| {
            let pair = Arc::clone(&pair);
            thread::spawn(move || (pair.next_task(worker), pair.slab.load(Ordering::Relaxed)))
        });
        let task_word = TaskWord { op: Op::Step, task: 1 };
        pair.publish_all(task_word);
        for worker in workers {
            assert_eq!(
                worker.join().unwrap(),
                (task_word, 1),
                "the task and what was written for it"
            );
        }
    });
}

#[test]
fn a_wake_up_of_one_worker_takes_none_from_the_other() {
    every_interleaving(|| {
        let pair = Arc::new(Pair::default());
        let workers = [0, 1].map(|worker| {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.next_task(worker).task)
        });
        publish(&pair.sleeper(1), TaskWord { op: Op::Step, task: 1 });
        publish(&pair.sleeper(0), TaskWord { op: Op::Step, task: 2 });
        assert_eq!(workers.map(|worker| worker.join().unwrap()), [2, 1]);
    });
}

#[test]
fn a_worker_that_dies_on_its_way_to_sleep_takes_no_wake_up_from_the_other() {
    every_death(|accesses| {
        let pair = Arc::new(Pair::default());
        let mortal = thread::spawn({
            let pair = Arc::clone(&pair);
            move || dies_after(accesses, || while pair.next_task(0).op != Op::Step {})
        });
        let other = thread::spawn({
            let pair = Arc::clone(&pair);
            move || pair.next_task(1)
        });
        let task_word = TaskWord { op: Op::Step, task: 1 };
        pair.publish_all(task_word);
        assert_eq!(other.join().unwrap(), task_word);
        mortal.join().unwrap()
    });
}

/// A pool of two workers.
#[derive(Default)]
struct Tasks {
    doorbell: ModelWord,
    remaining: Latch,
    done: [AtomicU32; 2],
    rows: [AtomicU32; 2],
}

impl Tasks {
    /// Begins a task, in the order of `Pool::begin`.
    fn begin(&self, task: u32) {
        doorbell_disarm(&self.doorbell);
        self.remaining.begin(task, 2);
    }

    fn perform(&self, worker: usize, task: u32) {
        self.rows[worker].store(task, Ordering::Relaxed);
        acknowledge(&self.done[worker], &self.remaining, &self.doorbell, task);
    }

    fn is_pending(&self, task: u32) -> bool {
        self.done.iter().any(|done| !has_acknowledged(done, task))
    }

    /// Waits as `Pool::finish` does, and checks the rows.
    fn finish(&self, task: u32) {
        while self.is_pending(task) {
            if park(&self.doorbell, Duration::from_millis(1)) == Parked::Ready {
                doorbell_disarm(&self.doorbell);
            }
        }
        assert!(self.rows.iter().all(|row| row.load(Ordering::Relaxed) == task));
    }
}

/// A thread that performs `task` on one worker's rows.
fn performing(tasks: &Arc<Tasks>, worker: usize, task: u32) -> thread::JoinHandle<()> {
    let tasks = Arc::clone(tasks);
    thread::spawn(move || tasks.perform(worker, task))
}

#[test]
fn the_last_acknowledgement_wakes_the_pool_and_shows_every_row() {
    every_interleaving(|| {
        let tasks = Arc::new(Tasks::default());
        tasks.begin(1);
        let workers = [performing(&tasks, 0, 1), performing(&tasks, 1, 1)];
        tasks.finish(1);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

#[test]
fn a_late_count_does_not_count_for_the_next_task() {
    every_interleaving(|| {
        let tasks = Arc::new(Tasks::default());
        tasks.begin(1);
        let late = performing(&tasks, 0, 1);
        tasks.perform(1, 1); // as the caller does in a thread pool
        tasks.finish(1);
        tasks.begin(2);
        let other = performing(&tasks, 1, 2);
        tasks.perform(0, 2); // now the caller has this shard
        tasks.finish(2);
        [late, other].into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn workers_that_are_counted_at_once_wake_the_pool_and_count_for_their_task_only() {
    every_interleaving(|| {
        let tasks = Arc::new(Tasks::default());
        tasks.begin(1);
        let both = thread::spawn({
            let tasks = Arc::clone(&tasks);
            move || {
                for (row, done) in tasks.rows.iter().zip(&tasks.done) {
                    row.store(1, Ordering::Relaxed);
                    acknowledge_uncounted(done, 1);
                }
                count(&tasks.remaining, &tasks.doorbell, 1, 2);
            }
        });
        tasks.finish(1);
        tasks.begin(2);
        let other = performing(&tasks, 1, 2);
        tasks.perform(0, 2);
        tasks.finish(2);
        [both, other].into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_task_ends_wherever_a_worker_dies_and_the_next_one_wakes_the_pool() {
    every_death(|accesses| {
        let tasks = Arc::new(Tasks::default());
        tasks.begin(1);
        let mortal = thread::spawn({
            let tasks = Arc::clone(&tasks);
            move || dies_after(accesses, || tasks.perform(0, 1))
        });
        let other = performing(&tasks, 1, 1);
        let died = mortal.join().unwrap();
        if !has_acknowledged(&tasks.done[0], 1) {
            tasks.perform(0, 1); // as the replacement of the dead worker does
        }
        other.join().unwrap();
        // Without the dead worker's count no worker rings: the pool checks at the end of a slice.
        assert!(!tasks.is_pending(1));
        tasks.finish(1);
        tasks.begin(2);
        tasks.perform(0, 2);
        let last = performing(&tasks, 1, 2);
        tasks.finish(2);
        last.join().unwrap();
        died
    });
}

#[test]
fn a_wake_up_always_ends_a_wait_that_heeds_it() {
    every_interleaving(|| {
        let words = Arc::new((WakeRequest::default(), ModelWord::default(), AtomicU32::new(0)));
        let waker = thread::spawn({
            let words = Arc::clone(&words);
            move || {
                let (request, doorbell, left) = &*words;
                for number in [1, 2] {
                    left.store(number, Ordering::Relaxed);
                    request.make(doorbell);
                }
            }
        });
        let (request, doorbell, left) = &*words;
        let mut found = 0;
        while found < 2 {
            doorbell_disarm(doorbell);
            while !request.is_made() {
                if park(doorbell, Duration::from_millis(1)) == Parked::Ready {
                    doorbell_disarm(doorbell);
                }
            }
            request.take();
            let now = left.load(Ordering::Relaxed);
            assert!(now > found, "what was left before the wake-up");
            found = now;
        }
        waker.join().unwrap();
    });
}
