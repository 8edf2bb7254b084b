//! With faults in its own protocol a pool never hangs and never returns a half-written row.
//!
//! Failpoints are read from the environment variables of a process. So each test runs one of the ignored
//! tests of this file in separate processes, and kills them after a time limit.
#![cfg(feature = "failpoints")]

use std::ops::Range;
use std::process::Child;
use std::time::{Duration, Instant};

use cartwheel_core::schedule::shards;
use cartwheel_engine::memory::{Lease, Plan};
use cartwheel_engine::pool::{Lost, OnDeath, Policy, Pool, Received, Workers};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::space::{ActionTag, DType, Leaf};
use cartwheel_engine::wake::{Op, Scope};
use cartwheel_engine::worker::{ProcessHandle, Report, Shard, Task, serve};
use cartwheel_engine::{Call, Error, PhaseTag, Transition};
use rustix::process::{Pid, Signal, kill_process};

use crate::worker_process::{self, attach, ignored_test};

const ROWS: usize = 4;
/// With which all rows are sent for a reset, also to the successor of a dead worker.
const RESET_FLAGS: u32 = 6;
/// A test that takes longer counts as hung.
const LIMIT: Duration = Duration::from_secs(30);
const FAILPOINTS: &str = "CARTWHEEL_FAILPOINTS";
/// The environment variable with the batch size for worker processes.
const BATCH_SIZE: &str = "CARTWHEEL_TEST_BATCH_SIZE";

/// Rows whose observations are their number, the action and their sum; for a reset, its flags are the action. Odd
/// actions end the episode.
#[derive(Debug)]
struct Adding;

impl Shard for Adding {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        let rows = task.slab.rows();
        let mut actions = vec![0; rows.len() * 8];
        if task.op == Op::Step {
            task.actions.load(0, ActionTag::Integers, task.rows.clone(), &mut actions);
        }
        for (place, action) in rows.clone().zip(actions.as_chunks::<8>().0) {
            let row = i64::try_from(task.rows.start + place - rows.start).unwrap();
            let action = match task.op {
                Op::Step => i64::from_ne_bytes(*action),
                _ => task.flags.into(),
            };
            task.slab.write(0, place, &bytes(&[row, action, row + action]));
            let terminated = is_last(action);
            let transition = Transition { reward: 0.0, terminated, truncated: false };
            let phase = if terminated { PhaseTag::Over } else { PhaseTag::Running };
            task.slab.write_transition(place, &transition, phase);
        }
        Report::default()
    }
}

fn is_last(action: i64) -> bool {
    action % 2 == 1
}

fn bytes(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// The batch size is in an environment variable, so worker processes make the same plan.
fn plan() -> Plan {
    let batch_size = std::env::var(BATCH_SIZE).map_or(ROWS, |rows| rows.parse().unwrap());
    plan_of(batch_size)
}

fn plan_of(batch_size: usize) -> Plan {
    Plan {
        observations: vec![Leaf { dtype: DType::I64, shape: vec![3] }],
        actions: vec![Leaf { dtype: DType::I64, shape: vec![] }],
        batch_size,
        max_slabs: 32,
        ..Plan::new(shards(ROWS, 2))
    }
}

fn policy(on_death: OnDeath) -> Policy {
    // No waiter polls before it sleeps: every hand-over needs a wake-up.
    Policy { on_death, ..Policy::default() }
}

fn finish(pool: &mut Pool, call: Call) -> Result<Received, Error> {
    pool.finish(call, Some(Duration::from_secs(10)), &mut || false)
}

/// Begins the step with these actions.
fn begin(pool: &mut Pool, actions: &[i64; ROWS]) {
    send(pool, None, actions);
}

/// Sends rows, of which these are the actions; `None`: all of them, as a task.
fn send(pool: &mut Pool, rows: Option<&[usize]>, actions: &[i64; ROWS]) {
    let mut sending = pool.sending(Call::Step, rows).unwrap();
    let fill = |sent: Range<usize>, room: &mut [u8]| {
        room.copy_from_slice(&bytes(&actions[sent]));
        Ok(())
    };
    sending.fill_actions(0, ActionTag::Integers, fill).unwrap();
    sending.send(0).unwrap();
}

fn assert_shows(lease: &Lease, actions: &[i64; ROWS]) {
    assert_shows_rows(lease, &[0, 1, 2, 3], actions);
}

/// The first places of the batch hold `rows`, after a step with `actions` of all rows.
fn assert_shows_rows(lease: &Lease, rows: &[usize], actions: &[i64; ROWS]) {
    let mut shown = vec![0; rows.len() * 24];
    lease.read(lease.layout().leaf_offset(0), &mut shown);
    let row = |&row: &usize| {
        let (number, action) = (i64::try_from(row).unwrap(), actions[row]);
        [number, action, number + action]
    };
    let expected: Vec<i64> = rows.iter().flat_map(row).collect();
    assert_eq!(shown, bytes(&expected));
}

// Processes

/// Runs an ignored test of this file in a process, with failpoints.
fn start(test: &str, failpoints: &str) -> Child {
    ignored_test(&format!("failpoints::{test}")).env(FAILPOINTS, failpoints).spawn().unwrap()
}

/// Whether the process ended within the time limit, and without an error.
fn ends_well(mut child: Child) -> bool {
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

fn start_worker(memory: &Memory, worker: usize, failpoints: &str) -> Child {
    let mut process = worker_process::worker("failpoints::a_worker", memory, worker);
    process.env(FAILPOINTS, failpoints).env(BATCH_SIZE, memory.plan().batch_size.to_string());
    process.spawn().unwrap()
}

#[test]
#[ignore = "a worker process of other tests"]
fn a_worker() {
    serve(attach(plan()), &mut Adding, false);
}

// Wake-ups

/// Steps two threads, with pauses so that every wait sleeps, and returns the longest step.
fn step_threads() -> Duration {
    let (_, tokens) = Memory::new(plan(), Scope::Private).unwrap();
    let threads = tokens.workers.into_iter();
    let threads = threads.map(|token| std::thread::spawn(move || serve(token, &mut Adding, false)));
    let threads: Vec<_> = threads.collect();
    let mut pool = Pool::new(tokens.pool, Workers::Threads, policy(OnDeath::Break)).unwrap();
    let mut longest = Duration::ZERO;
    for step in 0..20 {
        std::thread::sleep(Duration::from_millis(3)); // workers fall asleep
        let actions = [step, step + 1, 2 * step, -step];
        let start = Instant::now();
        begin(&mut pool, &actions);
        let finished = finish(&mut pool, Call::Step).expect("no slice is as long as the time-out");
        longest = longest.max(start.elapsed());
        assert_shows(&finished.lease.unwrap(), &actions);
    }
    assert_eq!(pool.close(Duration::from_secs(10)), Vec::<usize>::new(), "every worker closes");
    for thread in threads {
        thread.join().unwrap();
    }
    longest
}

#[test]
#[ignore = "needs a failpoint, which another test sets"]
fn steps_with_late_wake_ups() {
    assert!(step_threads() >= Duration::from_millis(5), "the failpoint was not reached");
}

#[test]
#[ignore = "needs a failpoint, which another test sets"]
fn steps_with_spurious_wake_ups() {
    step_threads();
}

#[test]
fn a_late_wake_up_only_delays_the_step() {
    assert!(ends_well(start("steps_with_late_wake_ups", "delay_wake")));
}

#[test]
fn a_lost_wake_up_hangs_no_call() {
    // Where no thread has to be woken, no step is late.
    let is_polled = cfg!(any(not(target_os = "linux"), feature = "portable"));
    let steps = if is_polled { "steps_with_spurious_wake_ups" } else { "steps_with_late_wake_ups" };
    assert!(ends_well(start(steps, "drop_wake")));
}

#[test]
fn a_spurious_wake_up_does_no_harm() {
    assert!(ends_well(start("steps_with_spurious_wake_ups", "spurious_wake")));
    assert!(ends_well(start("steps_with_late_wake_ups", "spurious_wake=50,delay_wake")));
}

// Deaths

/// Two worker processes.
struct Processes {
    pool: Pool,
    memory: Memory,
    children: Vec<Child>,
}

impl Processes {
    fn new(failpoints: &str, on_death: OnDeath) -> Self {
        Self::with_failpoints(ROWS, ["", failpoints], on_death)
    }

    /// Each worker has its failpoints.
    fn with_failpoints(batch_size: usize, failpoints: [&str; 2], on_death: OnDeath) -> Self {
        let (memory, tokens) = Memory::new(plan_of(batch_size), Scope::Shared).unwrap();
        let [first, second] = failpoints;
        let children = vec![start_worker(&memory, 0, first), start_worker(&memory, 1, second)];
        let handles = children.iter().map(|child| ProcessHandle::new(child.id()).unwrap());
        let workers = Workers::Processes(handles.collect());
        let pool = Pool::new(tokens.pool, workers, policy(on_death)).unwrap();
        Self { pool, memory, children }
    }

    /// Steps until a worker dies, at most three times; returns the batches before its death.
    fn step_until_death(&mut self) -> Vec<(Lease, [i64; ROWS])> {
        let mut before = Vec::new();
        for step in 1..=3 {
            let actions = [step, 10 * step, 100 * step, 1000 * step];
            begin(&mut self.pool, &actions);
            match finish(&mut self.pool, Call::Step) {
                Ok(finished) => before.push((finished.lease.unwrap(), actions)),
                Err(Error::WorkerDied { worker, pid, rows }) => {
                    assert_eq!((worker, pid, rows), (1, self.children[1].id(), 2..4));
                    return before;
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("no worker died");
    }

    /// Starts a process in the place of a worker that died; returns what was lost.
    fn follow(&mut self, worker: usize) -> Lost {
        self.children[worker].wait().unwrap();
        let lost = self.pool.lost(worker);
        self.children[worker] = start_worker(&self.memory, worker, "");
        self.pool.resume(worker, ProcessHandle::new(self.children[worker].id()).unwrap());
        lost
    }

    fn close(mut self) {
        self.pool.close(Duration::from_secs(10));
        for mut child in self.children {
            child.wait().unwrap();
        }
    }
}

#[test]
fn a_worker_that_dies_during_a_step_is_named_and_earlier_batches_stay() {
    // A worker writes two rows a step: the third row that it writes is in the second step.
    for failpoints in ["die_before_ack=2", "die_mid_row=3", "die_mid_row=4"] {
        let mut envs = Processes::new(failpoints, OnDeath::Break);
        let before = envs.step_until_death();
        assert_eq!(before.len(), 1, "{failpoints}");
        for (lease, actions) in &before {
            assert_shows(lease, actions);
        }
        let again = envs.pool.begin(Call::Reset, 0);
        assert!(matches!(again, Err(Error::WorkerDied { worker: 1, .. })), "{again:?}");
        envs.close();
    }
}

#[test]
fn the_replacement_of_a_dead_worker_repeats_the_whole_step() {
    for failpoints in ["die_before_ack=2", "die_mid_row=3", "die_mid_row=4"] {
        let mut envs = Processes::new(failpoints, OnDeath::Resume);
        let before = envs.step_until_death();
        envs.follow(1);
        let finished = finish(&mut envs.pool, Call::Step).unwrap();
        assert_shows(&finished.lease.unwrap(), &[2, 20, 200, 2000]);
        for (lease, actions) in &before {
            assert_shows(lease, actions);
        }
        envs.close();
    }
}

#[test]
fn a_worker_that_dies_before_it_counts_itself_has_done_its_step_and_is_reported_in_the_next() {
    for on_death in [OnDeath::Break, OnDeath::Resume] {
        let mut envs = Processes::new("die_before_count=2", on_death);
        let before = envs.step_until_death();
        assert_eq!(before.len(), 2, "the second step is found finished although no worker rings");
        for (lease, actions) in &before {
            assert_shows(lease, actions);
        }
        if on_death == OnDeath::Resume {
            envs.follow(1);
            let finished = finish(&mut envs.pool, Call::Step).unwrap();
            assert_shows(&finished.lease.unwrap(), &[3, 30, 300, 3000]);
        }
        envs.close();
    }
}

/// The fate of a pool whose worker may die.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Lived,
    Followed,
}

/// Steps all rows three times: they are sent twice, then stepped as one task. Every row arrives once each
/// time, and a received batch never changes.
fn step_thrice(batch_size: usize, failpoints: [&str; 2]) -> Fate {
    let mut envs = Processes::with_failpoints(batch_size, failpoints, OnDeath::Resume);
    let (mut fate, mut held) = (Fate::Lived, Vec::new());
    for actions in [[1, 2, 3, 4], [10, 20, 30, 40]] {
        send(&mut envs.pool, Some(&[0, 1, 2, 3]), &actions);
        let mut arrived: Vec<usize> = Vec::new();
        while envs.pool.is_flying() {
            match envs.pool.receive(Some(Duration::from_secs(10)), &mut || false) {
                Ok(received) => {
                    arrived.extend(received.rows.iter());
                    held.push((received, actions));
                }
                Err(Error::WorkerDied { worker, .. }) if envs.pool.can_resume() => {
                    let Lost { over, filled, .. } = envs.follow(worker);
                    for row in filled {
                        let first = envs.pool.shards()[worker].start;
                        assert_eq!(over[row - first], is_last(actions[row]), "{failpoints:?}");
                    }
                    fate = Fate::Followed;
                }
                Err(error) => panic!("{failpoints:?}: {error}"),
            }
        }
        arrived.sort_unstable();
        assert_eq!(arrived, [0, 1, 2, 3], "{failpoints:?}");
    }
    if batch_size == ROWS {
        let actions = [5, 6, 7, 8];
        begin(&mut envs.pool, &actions);
        let mut finished = finish(&mut envs.pool, Call::Step);
        while let Err(Error::WorkerDied { worker, .. }) = finished {
            envs.follow(worker);
            fate = Fate::Followed;
            finished = finish(&mut envs.pool, Call::Step);
        }
        held.push((finished.unwrap(), actions));
    }
    for (received, actions) in &held {
        let rows: Vec<usize> = received.rows.iter().collect();
        assert_shows_rows(received.lease.as_ref().unwrap(), &rows, actions);
    }
    envs.close();
    fate
}

#[test]
fn every_row_arrives_once_before_whichever_access_its_worker_dies() {
    for batch_size in [ROWS, 2, 1] {
        let fates = (1..)
            .map(|access| step_thrice(batch_size, ["", &format!("die_before_access={access}")]));
        let deaths = fates.take_while(|fate| *fate == Fate::Followed).count();
        assert!(deaths > 20, "{deaths} deaths while rows are sent");
    }
}

#[test]
fn every_row_arrives_once_before_whichever_access_both_workers_die() {
    for batch_size in [ROWS, 2, 1] {
        for access in 1..30 {
            let dies = format!("die_before_access={access}");
            assert_eq!(step_thrice(batch_size, [&dies; 2]), Fate::Followed, "{dies}");
        }
    }
}

/// Worker 0 stops before an access, and worker 1 dies before the same one. The pool needs no worker
/// but the dead one to know what that one left.
fn step_next_to_a_stopped_worker(batch_size: usize, access: u32) -> Fate {
    let failpoints = ["stop", "die"].map(|failpoint| format!("{failpoint}_before_access={access}"));
    let failpoints = failpoints.each_ref().map(String::as_str);
    let mut envs = Processes::with_failpoints(batch_size, failpoints, OnDeath::Resume);
    let [stopping, dying] =
        [0, 1].map(|worker| Pid::from_raw(envs.children[worker].id().cast_signed()).unwrap());
    let has_died =
        || std::fs::read_to_string(format!("/proc/{dying}/stat")).unwrap().contains(") Z ");
    envs.pool.sending(Call::Reset, Some(&[0, 1, 2, 3])).unwrap().send(RESET_FLAGS).unwrap();
    let (mut arrived, mut fate, mut was_dead) = (Vec::new(), Fate::Lived, false);
    while envs.pool.is_flying() {
        // Long enough to notice a death.
        match envs.pool.receive(Some(Duration::from_millis(200)), &mut || false) {
            Ok(received) => {
                let rows: Vec<usize> = received.rows.iter().collect();
                let shown = [RESET_FLAGS.into(); ROWS];
                assert_shows_rows(received.lease.as_ref().unwrap(), &rows, &shown);
                arrived.extend(rows);
            }
            Err(Error::WorkerDied { worker: 1, .. }) => {
                envs.follow(1);
                fate = Fate::Followed;
            }
            Err(Error::Timeout { rows, .. }) => {
                let owes = rows.iter().any(|rows| rows.start >= 2);
                let is_dead = fate == Fate::Lived && owes && has_died();
                assert!(!(is_dead && was_dead), "access {access}: the pool waits for worker 0");
                was_dead = is_dead;
                if !is_dead {
                    kill_process(stopping, Signal::CONT).unwrap();
                }
            }
            Err(error) => panic!("access {access}: {error}"),
        }
    }
    arrived.sort_unstable();
    assert_eq!(arrived, [0, 1, 2, 3], "access {access}");
    kill_process(stopping, Signal::CONT).unwrap();
    envs.close();
    fate
}

#[test]
fn a_death_is_settled_while_the_worker_next_to_it_is_stopped() {
    let deaths = |batch_size| {
        let fates = (1..35).map(|access| step_next_to_a_stopped_worker(batch_size, access));
        fates.filter(|fate| *fate == Fate::Followed).count()
    };
    for deaths in [2, ROWS].map(|batch_size| std::thread::spawn(move || deaths(batch_size))) {
        assert!(deaths.join().unwrap() > 10, "no worker died before its rows had arrived");
    }
}

#[test]
fn a_worker_that_dies_before_it_counts_a_sent_row_is_named() {
    let mut envs = Processes::new("die_before_ack=3", OnDeath::Break);
    let mut send_and_receive = || {
        send(&mut envs.pool, Some(&[0, 1, 2, 3]), &[0; ROWS]);
        envs.pool.receive(Some(Duration::from_secs(10)), &mut || false)
    };
    drop(send_and_receive().unwrap());
    let died = send_and_receive();
    assert!(matches!(died, Err(Error::WorkerDied { worker: 1, .. })), "{died:?}");
    envs.close();
}
