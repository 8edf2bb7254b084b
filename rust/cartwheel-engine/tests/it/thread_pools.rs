//! The threads of a thread pool share shards, wake when that pays, and end.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use cartwheel_core::schedule::fine_shards;
use cartwheel_engine::Call;
use cartwheel_engine::memory::Plan;
use cartwheel_engine::pool::{Policy, Pool};
use cartwheel_engine::wake::Op;
use cartwheel_engine::worker::{Report, Shard, Task};

use crate::support::{Plain, thread_pool};

const ROWS: usize = 16;

/// A thread pool of two threads, with a shard for each row.
fn two_threads(shard: impl FnMut() -> Box<dyn Shard>) -> Pool {
    let plan = Plan::new(fine_shards(ROWS, 2, 1));
    assert_eq!(plan.shards.len(), ROWS, "a shard for each row");
    let shards = std::iter::repeat_with(shard).take(ROWS);
    thread_pool(plan, 2, shards, Policy { spin: true, ..Policy::default() })
}

/// The state that the rows of a batch share.
#[derive(Debug, Default)]
struct Batch {
    /// The row that runs until all others are done.
    longest: usize,
    done: usize,
}

/// One row.
#[derive(Debug)]
struct Row(Arc<(Mutex<Batch>, Condvar)>);

impl Shard for Row {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        let row = task.slab.rows().start;
        let (batch, changed) = &*self.0;
        let mut batch = batch.lock().unwrap();
        if batch.longest == row {
            let others_wait = |batch: &mut Batch| batch.done < ROWS - 1;
            let limit = Duration::from_secs(60);
            let (waited, timeout) = changed.wait_timeout_while(batch, limit, others_wait).unwrap();
            assert!(!timeout.timed_out(), "during row {row} only {} were done", waited.done);
            batch = waited;
        }
        batch.done += 1;
        drop(batch);
        changed.notify_all();
        Plain.run(task)
    }
}

#[test]
fn while_one_thread_is_busy_with_a_row_the_other_takes_all_other_rows() {
    let shared = Arc::new((Mutex::new(Batch::default()), Condvar::new()));
    let mut pool = two_threads(|| Box::new(Row(Arc::clone(&shared))));
    // Resets are shared like steps, and wake every thread whatever a wake-up costs on this machine.
    for longest in 0..ROWS {
        *shared.0.lock().unwrap() = Batch { longest, done: 0 };
        pool.begin(Call::Reset, 0).unwrap();
        pool.finish(Call::Reset, Some(Duration::from_secs(120)), &mut || false).unwrap();
        assert_eq!(shared.0.lock().unwrap().done, ROWS, "every row once");
    }
}

/// One row whose step takes this long, and which reports the thread that stepped it.
#[derive(Debug)]
struct Slow(Duration, Sender<std::thread::ThreadId>);

impl Shard for Slow {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        let until = Instant::now() + self.0;
        while task.op == Op::Step && Instant::now() < until {
            std::hint::spin_loop();
        }
        self.1.send(std::thread::current().id()).unwrap();
        Plain.run(task)
    }
}

#[test]
fn no_thread_is_woken_before_a_step_was_measured_and_long_steps_are_shared() {
    let (tell, stepped) = channel();
    let mut pool = two_threads(|| Box::new(Slow(Duration::from_millis(2), tell.clone())));
    let mut step = || {
        pool.begin(Call::Step, 0).unwrap();
        pool.finish(Call::Step, None, &mut || false).unwrap();
        let threads: Vec<_> = stepped.try_iter().collect();
        assert_eq!(threads.len(), ROWS, "every shard once a step");
        let mine = std::thread::current().id();
        threads.into_iter().filter(|&thread| thread != mine).count()
    };
    assert_eq!(step(), 0);
    // The pool does not decide how soon the other thread gets a processor.
    let start = Instant::now();
    while step() == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "no other thread was woken");
    }
}

/// A shard that reports when it runs, and then waits at its gate. The test resets it, because a reset wakes
/// every thread of a thread pool.
#[derive(Debug)]
struct Heavy {
    enter: Sender<usize>,
    gate: Receiver<()>,
}

impl Shard for Heavy {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        let _ = self.enter.send(task.rows.start);
        let _ = self.gate.recv();
        Report::default()
    }
}

#[test]
fn a_thread_that_is_late_at_the_close_of_its_thread_pool_finishes_its_shard_and_begins_no_other() {
    let (enter, entered) = channel();
    let mut gates = Vec::new();
    let mut pool = two_threads(|| {
        let (open, gate) = channel();
        gates.push(open);
        Box::new(Heavy { enter: enter.clone(), gate })
    });
    drop(enter);
    pool.begin(Call::Reset, 0).unwrap(); // the caller runs no shard
    let at = entered.recv().unwrap();
    assert_eq!(pool.close(Duration::ZERO), [1], "the thread is inside an environment");
    drop(pool);
    drop(gates); // opens them all
    assert_eq!(at, 8, "the first shard of the thread's own");
    // The iteration ends when the thread has ended, and has dropped the last shard.
    assert_eq!(entered.iter().collect::<Vec<_>>(), [] as [usize; 0]);
}
