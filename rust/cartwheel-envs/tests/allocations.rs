//! A step allocates nothing: not the environment, not the shard, not the autoreset machine, not the
//! pool.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(unsafe_code, reason = "a global allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use cartwheel_engine::Call;
use cartwheel_engine::autoreset::{AutoresetMode, OnDone};
use cartwheel_engine::env::Space;
use cartwheel_engine::memory::{Plan, bytes_of};
use cartwheel_engine::native::{Mailbox, RowReset, ShardSettings};
use cartwheel_engine::pool::{OnDeath, Policy, Pool, Workers};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::rng::Rng;
use cartwheel_engine::space::{ActionTag, DType};
use cartwheel_engine::wake::Scope;
use std::sync::Arc;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const ROWS: usize = 16;

fn pool(id: &str, autoreset: AutoresetMode) -> (Pool, Arc<Mailbox>, Space) {
    let entry = cartwheel_envs::find(id).unwrap();
    let recipe = entry.recipe("").unwrap();
    let max_episode_steps = entry.max_episode_steps;
    let settings =
        ShardSettings { autoreset, on_done: OnDone::Freeze, max_episode_steps, replacements: 0 };
    let (shard, mailbox) = recipe.shard(ROWS, settings).unwrap();
    let plan = Plan {
        observations: recipe.spaces().observation.leaves(),
        actions: recipe.spaces().action.leaves(),
        shards: vec![0..ROWS; 1],
        batch_size: ROWS,
        max_slabs: 4,
        info_bytes: 1 << 16,
    };
    let memory = Memory::new(plan, Scope::Private).unwrap();
    let policy = Policy {
        refuse_over: false,
        refuse_unstarted: true,
        on_death: OnDeath::Break,
        spin: false,
    };
    let workers = Workers::Inline(shard);
    (Pool::new(memory, workers, policy).unwrap(), mailbox, recipe.spaces().action.clone())
}

fn call(pool: &mut Pool, call: Call) {
    pool.begin(call, 0).unwrap();
    drop(pool.finish(call, None, &mut || false).unwrap());
    assert!(pool.reports().all(|report| !report.failed));
}

/// Stores a batch of random actions.
fn store_actions(pool: &mut Pool, space: &Space, rng: &mut Rng) {
    let (mut integers, mut floats) = ([0_i64; ROWS], [0.0_f32; ROWS]);
    let stored = if let Space::Discrete { n, .. } = *space {
        rng.fill_integers(0..n, &mut integers);
        pool.store_actions(0, ActionTag::Array(DType::I64), bytes_of(&integers))
    } else {
        floats.fill_with(|| rng.random_f32());
        pool.store_actions(0, ActionTag::Array(DType::F32), bytes_of(&floats))
    };
    stored.unwrap();
}

#[test]
fn a_step_allocates_nothing() {
    for entry in cartwheel_envs::ENTRIES {
        for mode in [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled] {
            let (mut pool, mailbox, space) = pool(entry.id, mode);
            let play = |pool: &mut Pool| {
                mailbox.post_reset((0..ROWS as u128).map(RowReset::Seed).collect(), None);
                call(pool, Call::Reset);
                let mut rng = Rng::from_seed(1);
                let before = ALLOCATIONS.get();
                for _ in 0..1100 {
                    store_actions(pool, &space, &mut rng);
                    call(pool, Call::Step);
                }
                ALLOCATIONS.get() - before
            };
            // Two identical runs: in the first one, the buffer of the infos grows to its size.
            play(&mut pool);
            assert_eq!(play(&mut pool), 0, "{} in {mode:?}", entry.id);
        }
    }
}
