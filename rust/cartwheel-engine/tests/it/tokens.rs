//! Tokens, memory and rollouts fit only the memory that they were made for. That each token is used
//! once is the compiler's business: see `protocol::Tokens`.
#![expect(unsafe_code, reason = "shares memory with worker processes")]

use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use cartwheel_core::schedule::shards;
use cartwheel_engine::memory::Plan;
use cartwheel_engine::pool::{OnDeath, Policy, Pool, Workers};
use cartwheel_engine::protocol::{Memory, Tokens, WorkerToken};
use cartwheel_engine::space::{DType, Leaf};
use cartwheel_engine::wake::Scope;
use cartwheel_engine::worker::{
    ProcessHandle, Report, Shard, Task, ThreadPool, ThreadPoolSettings, serve,
};
use cartwheel_engine::{Call, Error};

use crate::support::Plain;
use crate::worker_process::{self, attach};

const ROWS: usize = 4;
const LIMIT: Duration = Duration::from_secs(30);

/// Rows whose observations are their numbers.
#[derive(Debug)]
struct Numbered;

impl Shard for Numbered {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        for row in task.slab.rows() {
            task.slab.write(0, row, &i64::try_from(row).unwrap().to_ne_bytes());
        }
        Plain.run(task)
    }
}

fn plan(workers: usize) -> Plan {
    Plan {
        observations: vec![Leaf { dtype: DType::I64, shape: vec![] }],
        max_slabs: 3,
        ..Plan::new(shards(ROWS, workers))
    }
}

fn policy(on_death: OnDeath) -> Policy {
    Policy { on_death, ..Policy::default() }
}

fn inline(token: WorkerToken) -> Workers {
    Workers::Inline(token, Box::new(Numbered))
}

/// The pool that steps all rows of a memory by itself.
fn pool(mut tokens: Tokens) -> Pool {
    let workers = inline(tokens.workers.remove(0));
    Pool::new(tokens.pool, workers, policy(OnDeath::Resume)).unwrap()
}

fn thread_pool(tokens: Vec<WorkerToken>) -> Result<ThreadPool, Error> {
    let own = tokens.iter().map(|_| Box::new(Numbered) as Box<dyn Shard>).collect();
    let settings = ThreadPoolSettings { threads: 2, spin: false, affinity_offset: None };
    ThreadPool::new(tokens, own, settings)
}

fn private(workers: usize) -> Tokens {
    Memory::new(plan(workers), Scope::Private).unwrap().1
}

/// Copies of the descriptors of shared memory.
fn descriptors(memory: &Memory) -> [OwnedFd; 4] {
    // SAFETY: they are only attached.
    let descriptors = unsafe { memory.descriptors() }.unwrap();
    descriptors.map(|descriptor| descriptor.try_clone_to_owned().unwrap())
}

/// Attaches rollout `index`, of two steps.
fn attach_rollout(memory: &Memory, index: usize, descriptor: &OwnedFd) -> Result<(), Error> {
    // SAFETY: the descriptor is that of a recorded rollout.
    unsafe { memory.attach_rollout(index, 2, descriptor.try_clone().unwrap()) }
}

/// Attaches memory to this process once more.
fn attached(memory: &Memory, plan: Plan, worker: usize) -> Result<WorkerToken, Error> {
    // SAFETY: they are those of one memory, and no worker is served.
    unsafe { WorkerToken::attach(plan, descriptors(memory), worker) }
}

fn assert_refused<T: std::fmt::Debug>(outcome: &Result<T, Error>) {
    assert!(matches!(outcome, Err(Error::BadPlan(_))), "{outcome:?}");
}

fn assert_steps(pool: &mut Pool) {
    pool.begin(Call::Step, 0).unwrap();
    let finished = pool.finish(Call::Step, Some(LIMIT), &mut || false).unwrap();
    assert_shows_numbers(finished.lease.as_ref().unwrap());
}

fn assert_shows_numbers(lease: &cartwheel_engine::memory::Lease) {
    let mut shown = [0; 8 * ROWS];
    lease.read(lease.layout().leaf_offset(0), &mut shown);
    let shown: Vec<_> = shown.as_chunks().0.iter().map(|row| i64::from_ne_bytes(*row)).collect();
    assert_eq!(shown, [0, 1, 2, 3]);
}

#[test]
fn a_pool_steps_only_workers_of_its_own_memory() {
    let (own, mut other) = (private(1), private(1));
    let refused = inline(other.workers.remove(0));
    assert_refused(&Pool::new(own.pool, refused, policy(OnDeath::Break)));
    let (own, other) = (private(2), private(2));
    let refused = Workers::ThreadPool(thread_pool(own.workers).unwrap());
    assert_refused(&Pool::new(other.pool, refused, policy(OnDeath::Break)));
    let Tokens { pool, workers } = private(2);
    let thread_pool = Workers::ThreadPool(thread_pool(workers).unwrap());
    assert_steps(&mut Pool::new(pool, thread_pool, policy(OnDeath::Break)).unwrap());
}

#[test]
fn a_thread_pool_has_the_tokens_of_all_workers_of_one_memory_in_order() {
    assert_refused(&thread_pool(Vec::new()));
    let mut tokens = private(2).workers;
    tokens.swap(0, 1);
    assert_refused(&thread_pool(tokens));
    let mut tokens = private(2).workers;
    tokens.truncate(1);
    assert_refused(&thread_pool(tokens));
    let [mut tokens, other] = [private(2), private(2)].map(|tokens| tokens.workers);
    tokens.truncate(1);
    tokens.extend(other.into_iter().skip(1));
    assert_refused(&thread_pool(tokens));
}

/// Rows whose drop shows that a thread pool has released them.
#[derive(Debug)]
struct HeldToken(#[expect(dead_code, reason = "held for its drop")] Arc<()>);

impl Shard for HeldToken {
    fn run(&mut self, _task: &mut Task<'_>) -> Report {
        Report::default()
    }
}

#[test]
fn a_thread_pool_that_no_pool_takes_is_ended() {
    let held = Arc::new(());
    let made = || {
        let shards = [(); 2].map(|()| Box::new(HeldToken(Arc::clone(&held))) as Box<dyn Shard>);
        let settings = ThreadPoolSettings { threads: 2, spin: false, affinity_offset: None };
        let thread_pool = ThreadPool::new(private(2).workers, shards.into(), settings).unwrap();
        assert_eq!(Arc::strong_count(&held), 3);
        thread_pool
    };
    let refused = Workers::ThreadPool(made());
    assert_refused(&Pool::new(private(2).pool, refused, policy(OnDeath::Break)));
    assert_eq!(Arc::strong_count(&held), 1);
    drop(made());
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn memory_is_attached_only_with_its_own_shards_and_slabs() {
    let (memory, _) = Memory::new(plan(2), Scope::Shared).unwrap();
    assert_refused(&attached(&memory, plan(2), 2));
    let uneven = Plan { shards: vec![0..1, 1..ROWS], ..plan(2) };
    let refused = attached(&memory, uneven, 0);
    assert!(matches!(refused, Err(Error::Mismatch { .. })), "{refused:?}");
    // The slabs of a different memory.
    let (other, _) = Memory::new(plan(2), Scope::Shared).unwrap();
    let [control, actions, infos, _] = descriptors(&memory);
    let [.., slabs] = descriptors(&other);
    // SAFETY: only this test knows them.
    let refused = unsafe { WorkerToken::attach(plan(2), [control, actions, infos, slabs], 0) };
    assert!(matches!(refused, Err(Error::Mismatch { .. })), "{refused:?}");
}

#[test]
fn a_rollout_is_attached_only_in_a_worker_and_under_its_own_number() {
    let (memory, tokens) = Memory::new(plan(1), Scope::Shared).unwrap();
    let worker = attached(&memory, plan(1), 0).unwrap();
    let mut pool = pool(tokens);
    let [first, second] = [(); 2].map(|()| pool.new_rollout(2).unwrap());
    // SAFETY: they are only attached.
    let [first, second] = [first, second].map(|made| unsafe { made.into_parts() }.1.unwrap());
    let made = attach_rollout(&memory, 1, &first);
    assert!(matches!(made, Err(Error::BadPlan(_))), "{made:?}");
    let wrong = attach_rollout(worker.memory(), 1, &first);
    assert!(matches!(wrong, Err(Error::Mismatch { expected: 1, got: 0, .. })), "{wrong:?}");
    attach_rollout(worker.memory(), 0, &first).unwrap();
    attach_rollout(worker.memory(), 1, &second).unwrap();
}

#[test]
fn a_rollout_is_recorded_once_and_by_its_own_pool() {
    let [mut own, mut other] = [(); 2].map(|()| pool(private(1)));
    let rollout = own.new_rollout(2).unwrap().rollout;
    let refused = other.record(rollout.clone());
    assert!(matches!(refused, Err(Error::BadPlan(_))), "{refused:?}");
    own.record(rollout.clone()).unwrap();
    own.begin(Call::Reset, 0).unwrap();
    let shown = own.finish(Call::Reset, None, &mut || false).unwrap().lease.unwrap();
    let refused = own.record(rollout);
    assert!(matches!(refused, Err(Error::BadPlan(_))), "its first batch is leased: {refused:?}");
    assert_shows_numbers(&shown);
}

#[test]
fn the_first_batch_of_a_rollout_is_not_filled_again_while_it_is_leased() {
    let mut pool = pool(private(1));
    let rollout = pool.new_rollout(2).unwrap().rollout;
    pool.record(rollout).unwrap();
    let reset = |pool: &mut Pool| {
        pool.begin(Call::Reset, 0)?;
        pool.finish(Call::Reset, None, &mut || false).map(|finished| finished.lease.unwrap())
    };
    let first = reset(&mut pool).unwrap();
    let refused = reset(&mut pool);
    assert!(matches!(refused, Err(Error::BadPlan(_))), "{refused:?}");
    let by_address = first.by_address();
    let second = reset(&mut pool).unwrap();
    drop(by_address);
    assert!(reset(&mut pool).is_err(), "the second lease is still held");
    drop(second);
    reset(&mut pool).unwrap();
}

// Processes

#[test]
#[ignore = "a worker process of another test"]
fn a_worker() {
    serve(attach(plan(1)), &mut Numbered, false);
}

fn start_worker(memory: &Memory) -> (Child, ProcessHandle) {
    let child = worker_process::worker("tokens::a_worker", memory, 0).spawn().unwrap();
    let handle = ProcessHandle::new(child.id()).unwrap();
    (child, handle)
}

#[test]
fn a_dead_worker_process_can_be_replaced_once_its_words_are_cleared() {
    let (memory, tokens) = Memory::new(plan(1), Scope::Shared).unwrap();
    let (mut first, handle) = start_worker(&memory);
    let workers = Workers::Processes(vec![handle]);
    let mut pool = Pool::new(tokens.pool, workers, policy(OnDeath::Resume)).unwrap();
    assert_steps(&mut pool);
    first.kill().unwrap();
    first.wait().unwrap();
    pool.begin(Call::Step, 0).unwrap();
    let died = pool.finish(Call::Step, Some(LIMIT), &mut || false);
    assert!(matches!(died, Err(Error::WorkerDied { worker: 0, .. })), "{died:?}");
    pool.lost(0);
    let (mut second, handle) = start_worker(&memory);
    pool.resume(0, handle);
    let finished = pool.finish(Call::Step, Some(LIMIT), &mut || false).unwrap();
    assert_shows_numbers(finished.lease.as_ref().unwrap());
    assert_steps(&mut pool);
    assert_eq!(pool.close(LIMIT), [] as [usize; 0]);
    assert!(second.wait().unwrap().success());
}

#[test]
#[should_panic(expected = "a worker that died")]
fn a_living_worker_has_lost_nothing() {
    let (memory, tokens) = Memory::new(plan(1), Scope::Shared).unwrap();
    let (_, handle) = start_worker(&memory);
    let workers = Workers::Processes(vec![handle]);
    Pool::new(tokens.pool, workers, policy(OnDeath::Resume)).unwrap().lost(0);
}
