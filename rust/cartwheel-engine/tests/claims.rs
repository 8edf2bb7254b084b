//! Memory has one pool, and each of its workers is served once: further attempts are errors.
#![expect(unsafe_code, reason = "shares memory with worker processes")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod worker_process;

use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use cartwheel_engine::memory::Plan;
use cartwheel_engine::pool::{OnDeath, Policy, Pool, Workers};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::schedule::shards;
use cartwheel_engine::space::{DType, Leaf};
use cartwheel_engine::wake::Scope;
use cartwheel_engine::worker::{
    Crew, CrewSettings, OwnShard, ProcessHandle, Report, Shard, Task, serve,
};
use cartwheel_engine::{Call, Error, PhaseTag, Transition};
use worker_process::attach;

const ROWS: usize = 4;
const LIMIT: Duration = Duration::from_secs(30);

/// Rows whose observations are their numbers.
#[derive(Debug)]
struct Numbered;

impl Shard for Numbered {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        for row in task.slab.rows() {
            task.slab.write(0, row, &i64::try_from(row).unwrap().to_ne_bytes());
            task.slab.write_transition(row, &Transition::RESET, PhaseTag::Running);
        }
        Report::default()
    }

    fn flush(&mut self, _report: Report) {}

    fn close(&mut self) {}
}

fn plan(workers: usize) -> Plan {
    Plan {
        observations: vec![Leaf { dtype: DType::I64, shape: vec![] }],
        actions: vec![],
        shards: shards(ROWS, workers),
        batch_size: ROWS,
        max_slabs: 3,
        info_bytes: 64,
        dense_finals: false,
    }
}

fn policy(on_death: OnDeath) -> Policy {
    Policy { refuse_over: false, refuse_unstarted: false, on_death, spin: false, judges: false }
}

fn pool(memory: &Memory, workers: Workers) -> Result<Pool, Error> {
    Pool::new(memory.clone(), workers, policy(OnDeath::Resume))
}

fn inline() -> Workers {
    Workers::Inline(Box::new(Numbered))
}

fn crew(memory: &Memory) -> Crew {
    let own = memory.plan().shards.iter().map(|_| Box::new(Numbered) as Box<dyn OwnShard>);
    let settings = CrewSettings { threads: 2, spin: false, affinity_offset: None };
    Crew::new(memory.clone(), own.collect(), settings).unwrap()
}

fn private(workers: usize) -> Memory {
    Memory::new(plan(workers), Scope::Private).unwrap()
}

/// A thread that tries to serve worker `worker`.
fn serving(memory: &Memory, worker: usize) -> JoinHandle<Result<(), Error>> {
    let memory = memory.clone();
    spawn(move || serve(&memory, worker, &mut Numbered, false))
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
fn attached(memory: &Memory, plan: Plan) -> Result<Memory, Error> {
    // SAFETY: they are those of one memory.
    unsafe { Memory::attach(plan, descriptors(memory)) }
}

fn assert_served(outcome: Result<(), Error>, worker: usize) {
    assert!(
        matches!(outcome, Err(Error::AlreadyServed { worker: at }) if at == worker),
        "{outcome:?}"
    );
}

fn assert_pooled(outcome: &Result<Pool, Error>) {
    assert!(matches!(outcome, Err(Error::AlreadyPooled)), "{outcome:?}");
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
fn a_second_pool_over_the_same_memory_is_refused() {
    let memory = private(1);
    let mut first = pool(&memory, inline()).unwrap();
    for workers in [Workers::Threads, inline(), Workers::Crew(crew(&memory))] {
        assert_pooled(&pool(&memory, workers));
    }
    assert_steps(&mut first);
    drop(first);
    // A late worker of the first pool may still be writing.
    assert_pooled(&pool(&memory, inline()));
}

#[test]
fn a_worker_is_served_only_once() {
    let memory = private(2);
    // Two threads for each worker: the first one to come serves it.
    let threads: Vec<_> =
        (0..2).flat_map(|worker| [worker; 2]).map(|at| serving(&memory, at)).collect();
    let mut only = pool(&memory, Workers::Threads).unwrap();
    assert_steps(&mut only);
    assert_eq!(only.close(LIMIT), [] as [usize; 0]);
    let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    for (worker, outcomes) in outcomes.chunks(2).enumerate() {
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
        // A worker that was closed stays closed.
        assert_served(serving(&memory, worker).join().unwrap(), worker);
    }
}

#[test]
fn a_worker_is_served_only_once_by_all_that_attach_its_memory() {
    let memory = Memory::new(plan(2), Scope::Shared).unwrap();
    let (one, other) = (attached(&memory, plan(2)).unwrap(), attached(&memory, plan(2)).unwrap());
    let threads = [serving(&one, 0), serving(&other, 1)];
    let mut only = pool(&memory, Workers::Threads).unwrap();
    assert_steps(&mut only);
    for memory in [&memory, &one, &other] {
        (0..2).for_each(|worker| assert_served(serving(memory, worker).join().unwrap(), worker));
    }
    assert_steps(&mut only);
    assert_eq!(only.close(LIMIT), [] as [usize; 0]);
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
}

#[test]
fn a_worker_that_the_pool_steps_itself_cannot_be_served() {
    for workers in [1, 2] {
        let memory = private(workers);
        let own = if workers == 1 { inline() } else { Workers::Crew(crew(&memory)) };
        let mut pool = pool(&memory, own).unwrap();
        (0..workers).for_each(|at| assert_served(serving(&memory, at).join().unwrap(), at));
        assert_steps(&mut pool);
    }
}

#[test]
fn a_pool_that_is_refused_does_not_claim_the_memory() {
    let memory = private(2);
    let mut second = vec![serving(&memory, 1), serving(&memory, 1)];
    // As soon as one of them is refused, the other one serves.
    let refused = loop {
        if let Some(at) = second.iter().position(JoinHandle::is_finished) {
            break second.swap_remove(at);
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_served(refused.join().unwrap(), 1);
    let refused = pool(&memory, Workers::Crew(crew(&memory)));
    assert!(matches!(refused, Err(Error::AlreadyServed { worker: 1 })), "{refused:?}");
    let first = serving(&memory, 0);
    let mut only = pool(&memory, Workers::Threads).unwrap();
    assert_steps(&mut only);
    assert_eq!(only.close(LIMIT), [] as [usize; 0]);
    for thread in second.into_iter().chain([first]) {
        thread.join().unwrap().unwrap();
    }
}

#[test]
fn a_crew_steps_only_its_own_memory() {
    let (own, other) = (private(2), private(2));
    let refused = pool(&other, Workers::Crew(crew(&own)));
    assert!(matches!(refused, Err(Error::BadPlan(_))), "{refused:?}");
    assert_steps(&mut pool(&other, Workers::Crew(crew(&other))).unwrap());
}

/// Rows whose drop shows that a crew has released them.
#[derive(Debug)]
struct Held(#[expect(dead_code, reason = "held for its drop")] Arc<()>);

impl Shard for Held {
    fn run(&mut self, _task: &mut Task<'_>) -> Report {
        Report::default()
    }

    fn flush(&mut self, _report: Report) {}

    fn close(&mut self) {}
}

#[test]
fn a_crew_that_is_refused_is_ended() {
    let (own, other) = (private(2), private(2));
    let held = Arc::new(());
    let shards = [(); 2].map(|()| Box::new(Held(Arc::clone(&held))) as Box<dyn OwnShard>);
    let settings = CrewSettings { threads: 2, spin: false, affinity_offset: None };
    let crew = Crew::new(own, shards.into(), settings).unwrap();
    assert_eq!(Arc::strong_count(&held), 3);
    assert!(pool(&other, Workers::Crew(crew)).is_err());
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn memory_is_attached_only_with_its_own_shards_and_slabs() {
    let memory = Memory::new(plan(2), Scope::Shared).unwrap();
    let uneven = Plan { shards: vec![0..1, 1..ROWS], ..plan(2) };
    let refused = attached(&memory, uneven);
    assert!(matches!(refused, Err(Error::Mismatch { .. })), "{refused:?}");
    // The slabs of a different memory.
    let other = Memory::new(plan(2), Scope::Shared).unwrap();
    let [control, actions, infos, _] = descriptors(&memory);
    let [.., slabs] = descriptors(&other);
    // SAFETY: only this test knows them.
    let refused = unsafe { Memory::attach(plan(2), [control, actions, infos, slabs]) };
    assert!(matches!(refused, Err(Error::Mismatch { .. })), "{refused:?}");
}

#[test]
fn a_rollout_is_attached_only_in_a_worker_and_under_its_own_number() {
    let memory = Memory::new(plan(1), Scope::Shared).unwrap();
    let worker = attached(&memory, plan(1)).unwrap();
    let mut pool = pool(&memory, inline()).unwrap();
    let [first, second] = [(); 2].map(|()| pool.new_rollout(2).unwrap());
    // SAFETY: they are only attached.
    let [first, second] = [first, second].map(|made| unsafe { made.into_parts() }.1.unwrap());
    let made = attach_rollout(&memory, 1, &first);
    assert!(matches!(made, Err(Error::BadPlan(_))), "{made:?}");
    let wrong = attach_rollout(&worker, 1, &first);
    assert!(matches!(wrong, Err(Error::Mismatch { expected: 1, got: 0, .. })), "{wrong:?}");
    attach_rollout(&worker, 0, &first).unwrap();
    attach_rollout(&worker, 1, &second).unwrap();
}

#[test]
fn a_rollout_is_recorded_once_and_by_its_own_pool() {
    let pools = [(); 2].map(|()| private(1));
    let [mut own, mut other] = pools.map(|memory| pool(&memory, inline()).unwrap());
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
    let memory = private(1);
    let mut pool = pool(&memory, inline()).unwrap();
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
    let (worker, memory) = attach(plan(1));
    serve(&memory, worker, &mut Numbered, false).unwrap();
}

fn start_worker(memory: &Memory) -> (Child, ProcessHandle) {
    let child = worker_process::worker(memory, 0).spawn().unwrap();
    let handle = ProcessHandle::new(child.id()).unwrap();
    (child, handle)
}

#[test]
fn a_dead_worker_process_can_be_replaced_once_its_claim_is_cleared() {
    let memory = Memory::new(plan(1), Scope::Shared).unwrap();
    let (mut first, handle) = start_worker(&memory);
    let mut pool = pool(&memory, Workers::Processes(vec![handle])).unwrap();
    assert_steps(&mut pool);
    let refused = pool.lost(0);
    assert!(matches!(refused, Err(Error::AlreadyServed { worker: 0 })), "{refused:?}");
    first.kill().unwrap();
    first.wait().unwrap();
    pool.begin(Call::Step, 0).unwrap();
    let died = pool.finish(Call::Step, Some(LIMIT), &mut || false);
    assert!(matches!(died, Err(Error::WorkerDied { worker: 0, .. })), "{died:?}");
    // The claim of the dead process is not cleared yet.
    assert_served(serving(&memory, 0).join().unwrap(), 0);
    pool.lost(0).unwrap();
    let (mut second, handle) = start_worker(&memory);
    pool.resume(0, handle);
    let finished = pool.finish(Call::Step, Some(LIMIT), &mut || false).unwrap();
    assert_shows_numbers(finished.lease.as_ref().unwrap());
    assert_served(serving(&memory, 0).join().unwrap(), 0);
    assert_steps(&mut pool);
    assert_eq!(pool.close(LIMIT), [] as [usize; 0]);
    assert!(second.wait().unwrap().success());
}
