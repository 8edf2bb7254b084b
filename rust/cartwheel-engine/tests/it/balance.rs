//! No thread of a thread pool idles while rows wait, however uneven their work is.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use cartwheel_core::schedule::fine_shards;
use cartwheel_engine::memory::Plan;
use cartwheel_engine::pool::{Policy, Pool, Workers};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::wake::Scope;
use cartwheel_engine::worker::{Report, Shard, Task, ThreadPool, ThreadPoolSettings};
use cartwheel_engine::{Call, PhaseTag, Transition};

const ROWS: usize = 16;

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
        task.slab.write_transition(row, &Transition::RESET, PhaseTag::Running);
        Report::default()
    }
}

#[test]
fn while_one_thread_is_busy_with_a_row_the_other_takes_all_other_rows() {
    let plan = Plan::new(fine_shards(ROWS, 2, 1));
    assert_eq!(plan.shards.len(), ROWS, "a shard for each row");
    let (_, tokens) = Memory::new(plan, Scope::Private).unwrap();
    let shared = Arc::new((Mutex::new(Batch::default()), Condvar::new()));
    let shards = (0..ROWS).map(|_| Box::new(Row(Arc::clone(&shared))) as Box<dyn Shard>);
    let settings = ThreadPoolSettings { threads: 2, spin: true, affinity_offset: None };
    let thread_pool = ThreadPool::new(tokens.workers, shards.collect(), settings).unwrap();
    let policy = Policy { spin: true, ..Policy::default() };
    let mut pool = Pool::new(tokens.pool, Workers::ThreadPool(thread_pool), policy).unwrap();
    // Resets are shared like steps, and wake every thread whatever a wake-up costs on this machine.
    for longest in 0..ROWS {
        *shared.0.lock().unwrap() = Batch { longest, done: 0 };
        pool.begin(Call::Reset, 0).unwrap();
        pool.finish(Call::Reset, Some(Duration::from_secs(120)), &mut || false).unwrap();
        assert_eq!(shared.0.lock().unwrap().done, ROWS, "every row once");
    }
}
