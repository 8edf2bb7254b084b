//! No thread of a crew idles while rows wait, however uneven their work is.

#![expect(clippy::unwrap_used, reason = "a failed test is what a failed unwrap says")]

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use cartwheel::Call;
use cartwheel::autoreset::{PhaseTag, Transition};
use cartwheel::memory::{Memory, Plan, Scope};
use cartwheel::pool::{OnDeath, OwnShard, Policy, Pool, Workers};
use cartwheel::schedule::fine_shards;
use cartwheel::wake::Op;
use cartwheel::worker::{Crew, CrewSettings, Report, Shard, Task};

const ROWS: usize = 16;

/// What the rows of a batch know of each other.
#[derive(Debug, Default)]
struct Batch {
    /// The row whose step lasts until all others have been stepped, if there is one.
    longest: Option<usize>,
    stepped: usize,
}

/// One row.
#[derive(Debug)]
struct Row(Arc<(Mutex<Batch>, Condvar)>);

impl Shard for Row {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        let row = task.slab.rows().start;
        let (batch, changed) = &*self.0;
        let mut batch = batch.lock().unwrap();
        if batch.longest == Some(row) {
            let others_wait = |batch: &mut Batch| batch.stepped < ROWS - 1;
            let limit = Duration::from_secs(10);
            let (waited, timeout) = changed.wait_timeout_while(batch, limit, others_wait).unwrap();
            assert!(!timeout.timed_out(), "during row {row} only {} were stepped", waited.stepped);
            batch = waited;
        }
        batch.stepped += 1;
        let is_first = batch.longest.is_none() && task.op == Op::Step;
        drop(batch);
        changed.notify_all();
        let start = Instant::now();
        while is_first && start.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop(); // so that the crew sees that waking a thread is worth it
        }
        task.slab.write_transition(row, &Transition::RESET, PhaseTag::Running);
        Report::default()
    }

    fn flush(&mut self, _report: Report) {}

    fn close(&mut self) {}
}

#[test]
fn while_one_thread_is_busy_with_a_row_the_other_steps_all_the_rest() {
    let plan = Plan {
        observations: vec![],
        actions: vec![],
        shards: fine_shards(ROWS, 2, 1),
        batch_size: ROWS,
        max_slabs: 2,
        info_bytes: 64,
    };
    assert_eq!(plan.shards.len(), ROWS, "a shard for each row");
    let memory = Memory::new(plan, Scope::Private).unwrap();
    let shared = Arc::new((Mutex::new(Batch::default()), Condvar::new()));
    let shards = (0..ROWS).map(|_| Box::new(Row(Arc::clone(&shared))) as Box<dyn OwnShard>);
    let settings = CrewSettings { threads: 2, spin: true, affinity_offset: None };
    let crew = Crew::new(memory.clone(), shards.collect(), settings).unwrap();
    let policy = Policy {
        refuse_over: false,
        refuse_unstarted: false,
        on_death: OnDeath::Break,
        spin: true,
    };
    let mut pool = Pool::new(memory, Workers::Crew(crew), policy).unwrap();
    for longest in std::iter::once(None).chain((0..ROWS).map(Some)) {
        *shared.0.lock().unwrap() = Batch { longest, stepped: 0 };
        pool.begin(Call::Step, 0).unwrap();
        pool.finish(Call::Step, Some(Duration::from_secs(60)), &mut || false).unwrap();
        assert_eq!(shared.0.lock().unwrap().stepped, ROWS, "every row once");
    }
}
