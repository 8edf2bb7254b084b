//! Every wait ends: by what is waited for, or by an error that says why.
#![expect(clippy::unwrap_used, reason = "a failed test is what a failed unwrap says")]

use std::time::{Duration, Instant};

use cartwheel::autoreset::{PhaseTag, Transition};
use cartwheel::memory::{Memory, Plan, Scope};
use cartwheel::pool::{OnDeath, OwnShard, Policy, Pool, Workers};
use cartwheel::schedule::shards;
use cartwheel::worker::{Crew, CrewSettings, Report, Shard, Task};
use cartwheel::{Call, Error};

const ROWS: usize = 6;
/// A hang is a failure, long before anybody grows impatient.
const LIMIT: Duration = Duration::from_secs(30);
const POLICY: Policy =
    Policy { refuse_over: false, refuse_unstarted: false, on_death: OnDeath::Break, spin: false };

/// Rows with nothing but transitions.
#[derive(Debug)]
struct Plain;

impl Shard for Plain {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        for row in task.slab.rows() {
            task.slab.write_transition(row, &Transition::RESET, PhaseTag::Running);
        }
        Report::default()
    }

    fn flush(&mut self, _: Report) {}

    fn close(&mut self) {}
}

/// `ROWS` rows without observations, received in batches of `batch_size`, in so many shards.
fn memory(num_shards: usize, batch_size: usize) -> Memory {
    let plan = Plan {
        observations: vec![],
        actions: vec![],
        shards: shards(ROWS, num_shards),
        batch_size,
        max_slabs: 2 + ROWS,
        info_bytes: 64,
    };
    Memory::new(plan, Scope::Private).unwrap()
}

fn inline(batch_size: usize) -> Pool {
    Pool::new(memory(1, batch_size), Workers::Inline(Box::new(Plain)), POLICY).unwrap()
}

/// A crew of the calling thread and `others`.
fn crew(others: usize, batch_size: usize) -> Pool {
    let memory = memory(3, batch_size);
    let own = (0..3).map(|_| Box::new(Plain) as Box<dyn OwnShard>).collect();
    let settings = CrewSettings { threads: 1 + others, spin: false, affinity_offset: None };
    let crew = Crew::new(memory.clone(), own, settings).unwrap();
    Pool::new(memory, Workers::Crew(crew), POLICY).unwrap()
}

/// Receives all rows, which are in flight, with a zero timeout; how many calls that took.
fn poll(pool: &mut Pool) -> usize {
    let (mut received, mut polls, start) = (Vec::new(), 0, Instant::now());
    while received.len() < ROWS {
        assert!(start.elapsed() < LIMIT, "{received:?} of {ROWS} rows after {polls} calls");
        polls += 1;
        match pool.receive(Some(Duration::ZERO), &mut || false) {
            Ok(batch) => received.extend(batch.rows),
            Err(Error::Timeout { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    received.sort_unstable();
    assert_eq!(received, (0..ROWS).collect::<Vec<_>>());
    polls
}

#[test]
fn polling_with_a_zero_timeout_eventually_receives_every_row() {
    for batch_size in [1, 4, ROWS] {
        for (mut pool, alone) in
            [(inline(batch_size), true), (crew(0, batch_size), true), (crew(1, batch_size), false)]
        {
            for call in [Call::Reset, Call::Step, Call::Step] {
                let rows: Vec<usize> = (0..ROWS).collect();
                pool.sending(call, &rows).unwrap().send(0);
                let polls = poll(&mut pool);
                // Every call steps a row, or has a batch to return. Another thread may be slower.
                assert!(!alone || polls <= 2 * ROWS, "{polls} calls for {ROWS} rows");
            }
        }
    }
}
