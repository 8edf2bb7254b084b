//! Rollouts of any length, one after the other, need the memory of only a few.
#![expect(unsafe_code, reason = "shares memory with worker processes")]

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use cartwheel_engine::memory::{Lease, Plan, RolloutLease};
use cartwheel_engine::pool::{Policy, Pool};
use cartwheel_engine::space::{DType, Leaf};
use cartwheel_engine::wake::Scope;
use cartwheel_engine::worker::{Report, Shard, Task};
use cartwheel_engine::{Call, PhaseTag, Transition};

use crate::support::{Plain, inline};

/// Blocks of 512 bytes in a page.
const PAGE_BLOCKS: i64 = 8;

/// Writes the number of its tasks so far.
#[derive(Debug, Default)]
struct Counting(i64);

impl Shard for Counting {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        self.0 += 1;
        for row in task.slab.rows() {
            task.slab.write(0, row, &self.0.to_ne_bytes());
        }
        Plain.run(task)
    }
}

fn pool(scope: Scope) -> Pool {
    let plan = Plan {
        observations: vec![Leaf { dtype: DType::I64, shape: vec![] }],
        max_slabs: 4,
        ..Plan::new(vec![0..1; 1])
    };
    inline(plan, scope, Box::<Counting>::default(), Policy::default())
}

fn call(pool: &mut Pool, call: Call) -> i64 {
    pool.begin(call, 0).unwrap();
    let finished = pool.finish(call, Some(Duration::from_secs(30)), &mut || false).unwrap();
    shown(finished.lease.as_ref().unwrap())
}

fn shown(lease: &Lease) -> i64 {
    let mut bytes = [0; 8];
    lease.read(lease.layout().leaf_offset(0), &mut bytes);
    i64::from_ne_bytes(bytes)
}

/// Creates a rollout of `steps` steps, records at most three of them, and returns it with its descriptor.
fn recorded(pool: &mut Pool, steps: usize) -> (Arc<RolloutLease>, Option<OwnedFd>) {
    let made = pool.new_rollout(steps).unwrap();
    pool.record(Arc::clone(&made.rollout)).unwrap();
    let first = call(pool, Call::Reset);
    for step in 1..=steps.min(3) {
        assert_eq!(call(pool, Call::Step), first + i64::try_from(step).unwrap());
    }
    pool.stop_recording();
    // SAFETY: the descriptor is not used.
    unsafe { made.into_parts() }
}

/// Rows that end every episode: their final observation is the number of their tasks, and less by one than what
/// they show.
#[derive(Debug, Default)]
struct Ending(i64);

impl Shard for Ending {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        self.0 += 1;
        for row in task.slab.rows() {
            task.slab.write(0, row, &(self.0 + 1).to_ne_bytes());
            task.slab.write_final(row, Some(&self.0.to_ne_bytes()));
            task.slab.write_transition(row, &Transition::CUT, PhaseTag::Running);
        }
        Report::default()
    }
}

#[test]
fn what_the_batches_of_a_rollout_share_is_read_until_the_next_step_and_no_batch_shows_another() {
    let plan = Plan {
        observations: vec![Leaf { dtype: DType::I64, shape: vec![] }],
        max_slabs: 4,
        dense_finals: true,
        ..Plan::new(vec![0..1; 1])
    };
    let mut pool = inline(plan, Scope::Private, Box::<Ending>::default(), Policy::default());
    let rollout = pool.new_rollout(2).unwrap().rollout;
    pool.record(rollout).unwrap();
    let mut begun = Vec::new();
    for call in [Call::Reset, Call::Step, Call::Step] {
        pool.begin(call, 0).unwrap();
        begun.push(pool.finish(call, None, &mut || false).unwrap().lease.unwrap());
        let (last, before) = begun.split_last().unwrap();
        let tasks = i64::try_from(begun.len()).unwrap();
        assert_eq!(number(last, last.layout().leaf_offset(1)), Some(tasks));
        for (task, lease) in (1..).zip(before) {
            let layout = lease.layout();
            assert_eq!(number(lease, layout.leaf_offset(1)), None, "final observation {task}");
            assert_eq!(number(lease, layout.phases_offset()), None, "phases after task {task}");
            assert_eq!(number(lease, layout.leaf_offset(0)), Some(task + 1));
            assert_eq!(number(lease, layout.rewards_offset()), Some(0));
            assert_eq!(number(lease, last.layout().leaf_offset(0)), None, "of another batch");
        }
    }
}

/// Eight bytes, or fewer where there are no more, as a number; `None` if the lease refuses to read them.
fn number(lease: &Lease, offset: usize) -> Option<i64> {
    let read = || {
        let mut bytes = [0; 8];
        let count = if offset == lease.layout().phases_offset() { 1 } else { 8 };
        lease.read(offset, &mut bytes[..count]);
        i64::from_ne_bytes(bytes)
    };
    catch_unwind(AssertUnwindSafe(read)).ok()
}

#[test]
fn rollouts_of_varying_length_use_few_numbers() {
    for scope in [Scope::Private, Scope::Shared] {
        let mut pool = pool(scope);
        for steps in 1..200 {
            let (rollout, _) = recorded(&mut pool, steps);
            assert_eq!(rollout.steps(), steps);
            assert!(rollout.index() < 8, "rollout {steps} has number {}", rollout.index());
        }
    }
}

#[test]
fn rollouts_that_are_held_keep_their_numbers_and_their_memory() {
    let mut pool = pool(Scope::Shared);
    let held: Vec<_> = (1..20).map(|steps| recorded(&mut pool, steps).0).collect();
    let numbers: Vec<usize> = held.iter().map(|rollout| rollout.index()).collect();
    assert_eq!(numbers, (0..19).collect::<Vec<_>>());
    for steps in 20..60 {
        let (rollout, _) = recorded(&mut pool, steps);
        assert!(!numbers.contains(&rollout.index()));
    }
}

#[test]
fn rollouts_of_a_few_alternating_lengths_are_reused() {
    let mut pool = pool(Scope::Shared);
    for turn in 0..5 {
        for steps in [128, 16, 64] {
            let (_, descriptor) = recorded(&mut pool, steps);
            assert_eq!(descriptor.is_some(), turn == 0, "{steps} steps, turn {turn}");
        }
    }
}

#[test]
#[cfg_attr(
    any(not(target_os = "linux"), feature = "portable"),
    ignore = "memory of POSIX goes with its last mapping"
)]
fn memory_of_a_rollout_is_freed_when_its_number_is_reused_although_workers_map_it() {
    let mut pool = pool(Scope::Shared);
    let blocks = |file: &OwnedFd| rustix::fs::fstat(file).unwrap().st_blocks;
    let (first, file) = recorded(&mut pool, 1000);
    let file = file.unwrap();
    assert!(blocks(&file) > PAGE_BLOCKS);
    drop(first);
    for steps in 1..20 {
        recorded(&mut pool, steps);
    }
    assert!(blocks(&file) <= PAGE_BLOCKS, "all but a partial last page");
}
