//! A pool over threads and over the calling thread: the same results, bounded waits, safe leases.
#![expect(unsafe_code, reason = "shares memory with worker processes")]

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cartwheel_core::schedule::{fine_shards, shards};
use cartwheel_engine::memory::{InfosAt, Plan};
use cartwheel_engine::pool::{DroppedRow, Policy, Pool, Received, Workers};
use cartwheel_engine::protocol::{Memory, WorkerToken};
use cartwheel_engine::space::{ActionTag, DType, Leaf};
use cartwheel_engine::wake::{Op, Scope};
use cartwheel_engine::worker::{Report, Shard, Task, ThreadPool, ThreadPoolSettings, serve};
use cartwheel_engine::{Call, Error, PhaseTag, Transition};

use crate::support::{Plain, inline, thread_pool};

/// Rows that count their steps: observation `[row, steps, last action]`, over after three steps.
#[derive(Debug)]
struct Counting {
    steps: Vec<i64>,
    /// If there is a gate, a step reports that it has begun and blocks until a message comes.
    gate: Option<(Sender<()>, Receiver<()>)>,
}

impl Shard for Counting {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        if let (Op::Step, Some((enter, gate))) = (task.op, &self.gate) {
            let _ = enter.send(());
            let _ = gate.recv();
        }
        let rows = task.slab.rows();
        let mut actions = vec![0; rows.len() * 8];
        if task.op == Op::Step {
            task.actions.load(0, ActionTag::Integers, rows.clone(), &mut actions);
        }
        let (actions, _) = actions.as_chunks::<8>();
        for ((row, steps), action) in rows.zip(&mut self.steps).zip(actions) {
            *steps = if task.op == Op::Reset { 0 } else { *steps + 1 };
            let observation = [i64::try_from(row).unwrap(), *steps, i64::from_ne_bytes(*action)];
            let bytes: Vec<u8> = observation.iter().flat_map(|n| n.to_ne_bytes()).collect();
            task.slab.write(0, row, &bytes);
            let over = *steps >= 3;
            let transition = Transition { reward: 0.5, terminated: over, truncated: false };
            let phase = if over { PhaseTag::Over } else { PhaseTag::Running };
            task.slab.write_transition(row, &transition, phase);
        }
        let stored = task.store_infos(&self.steps[0].to_le_bytes());
        assert!(stored, "eight bytes fit");
        Report::default()
    }
}

struct Fixture {
    pool: Pool,
    threads: Vec<JoinHandle<()>>,
    gates: Vec<Sender<()>>,
    entered: Vec<Receiver<()>>,
}

fn spinning() -> Policy {
    Policy { spin: true, ..Policy::default() }
}

fn plan(shards: Vec<Range<usize>>, max_slabs: usize) -> Plan {
    Plan {
        observations: vec![Leaf { dtype: DType::I64, shape: vec![3] }],
        actions: vec![Leaf { dtype: DType::I64, shape: vec![] }],
        max_slabs,
        ..Plan::new(shards)
    }
}

impl Fixture {
    /// `workers = 0` steps inline.
    fn new(rows: usize, workers: usize, blocking: bool, max_slabs: usize) -> Self {
        let plan = plan(shards(rows, workers.max(1)), max_slabs);
        if workers == 0 {
            let shard = Box::new(Counting { steps: vec![0; rows], gate: None });
            return Self::of(inline(plan, Scope::Private, shard, spinning()));
        }
        let (memory, tokens) = Memory::new(plan, Scope::Private).unwrap();
        let (mut threads, mut open, mut entered) = (Vec::new(), Vec::new(), Vec::new());
        for (token, rows) in tokens.workers.into_iter().zip(&memory.plan().shards) {
            let (open_gate, gate) = channel();
            let (enter, has_entered) = channel();
            open.push(open_gate);
            entered.push(has_entered);
            let gate = blocking.then_some((enter, gate));
            let mut shard = Counting { steps: vec![0; rows.len()], gate };
            threads.push(std::thread::spawn(move || serve(token, &mut shard, true)));
        }
        let pool = Pool::new(tokens.pool, Workers::Threads, spinning()).unwrap();
        Self { pool, threads, gates: open, entered }
    }

    /// A thread pool of this many threads, the calling one included.
    fn thread_pool(rows: usize, threads: usize) -> Self {
        let plan = plan(fine_shards(rows, threads, 1), 4);
        let (memory, tokens) = Memory::new(plan, Scope::Private).unwrap();
        let shard = |rows: &Range<usize>| -> Box<dyn Shard> {
            Box::new(Counting { steps: vec![0; rows.len()], gate: None })
        };
        let shards = memory.plan().shards.iter().map(shard).collect();
        let settings = ThreadPoolSettings { threads, spin: true, affinity_offset: Some(0) };
        let thread_pool = ThreadPool::new(tokens.workers, shards, settings).unwrap();
        Self::of(Pool::new(tokens.pool, Workers::ThreadPool(thread_pool), spinning()).unwrap())
    }

    /// Without threads of its own.
    fn of(pool: Pool) -> Self {
        Self { pool, threads: Vec::new(), gates: Vec::new(), entered: Vec::new() }
    }

    fn finish(&mut self, call: Call) -> Received {
        self.pool.finish(call, Some(Duration::from_secs(30)), &mut || false).unwrap()
    }

    fn reset(&mut self) -> Received {
        self.pool.begin(Call::Reset, 0).unwrap();
        self.finish(Call::Reset)
    }

    fn begin_step(&mut self, actions: &[i64]) {
        let bytes: Vec<u8> = actions.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let mut sending = self.pool.sending(Call::Step, None).unwrap();
        let fill = |_, room: &mut [u8]| {
            room.copy_from_slice(&bytes);
            Ok(())
        };
        sending.fill_actions(0, ActionTag::Integers, fill).unwrap();
        sending.send(0).unwrap();
    }

    fn step(&mut self, actions: &[i64]) -> Received {
        self.begin_step(actions);
        self.finish(Call::Step)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.gates.clear(); // opens them all
        self.pool.close(Duration::from_secs(30));
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

fn observations(finished: &Received) -> Vec<u8> {
    let lease = finished.lease.as_ref().unwrap();
    let mut bytes = vec![0; lease.layout().rows() * 24];
    lease.read(lease.layout().leaf_offset(0), &mut bytes);
    bytes
}

#[test]
fn results_do_not_depend_on_the_number_of_workers() {
    let run = |mut fixture: Fixture| {
        let mut seen = vec![observations(&fixture.reset())];
        for step in 0..200 {
            seen.push(observations(&fixture.step(&[step, 1, 2, 3, -step])));
        }
        seen
    };
    let expected = run(Fixture::new(5, 0, false, 4));
    for workers in [1, 2, 5, 7] {
        assert_eq!(run(Fixture::new(5, workers, false, 4)), expected, "{workers} workers");
        assert_eq!(run(Fixture::thread_pool(5, workers)), expected, "a thread pool of {workers}");
    }
}

#[test]
fn of_a_dropped_reset_only_rows_that_it_reset_are_noted() {
    let mut fixture = Fixture::new(3, 0, false, 4);
    let reset = fixture.reset();
    fixture.pool.drop_results(&reset, Some(&|row| row == 1));
    let row = |row, was_reset| DroppedRow { row, was_reset, over: false };
    assert_eq!(fixture.pool.dropped_since(0, 1), (1, vec![row(1, true)]));
    let step = fixture.step(&[0; 3]);
    fixture.pool.drop_results(&step, None);
    let all = [0, 1, 2].map(|number| row(number, false)).to_vec();
    assert_eq!(fixture.pool.dropped_since(1, 1), (2, all));
    assert_eq!(fixture.pool.dropped_since(0, 0), (2, vec![]), "the pool itself");
}

#[test]
fn a_kept_lease_never_changes_and_a_released_one_is_used_again() {
    let mut fixture = Fixture::new(3, 2, false, 8);
    fixture.reset();
    let kept = fixture.step(&[1, 2, 3]);
    let before = observations(&kept);
    for step in 0..50 {
        fixture.step(&[step, step, step]);
        assert_eq!(observations(&kept), before);
    }
    assert_eq!(fixture.pool.slabs().reserved(), 3, "scratch, kept and reused");
}

#[test]
fn when_every_slab_is_leased_the_scratch_slab_is_used_and_must_be_copied() {
    let mut fixture = Fixture::new(2, 1, false, 3);
    let kept = [fixture.reset(), fixture.step(&[1, 1])];
    let before: Vec<_> = kept.iter().map(observations).collect();
    for step in 0..5 {
        let scratch = fixture.step(&[step, step]).lease.unwrap();
        assert!(scratch.must_copy());
        fixture.pool.end_copied(scratch); // it is not what the pool keeps: another slab may be free by then
    }
    assert_eq!(kept.iter().map(observations).collect::<Vec<_>>(), before);
    drop(kept);
    assert!(!fixture.step(&[0, 0]).lease.unwrap().must_copy());
}

#[test]
fn a_timeout_names_the_late_rows_and_loses_nothing() {
    let mut fixture = Fixture::new(4, 2, true, 4);
    fixture.reset();
    fixture.begin_step(&[9, 9, 9, 9]);
    fixture.gates[0].send(()).unwrap();
    let outcome = fixture.pool.finish(Call::Step, Some(Duration::from_millis(30)), &mut || false);
    let Err(Error::Timeout { rows, .. }) = outcome else { panic!("no time-out: {outcome:?}") };
    assert!(rows.contains(&(2..4)), "{rows:?}");
    assert!(matches!(
        fixture.pool.begin(Call::Step, 0),
        Err(Error::AlreadyPending { pending: Call::Step, .. })
    ));
    fixture.gates[1].send(()).unwrap();
    let finished = fixture.finish(Call::Step);
    let expected: Vec<u8> =
        (0..4).flat_map(|row| [row, 1, 9]).flat_map(|n: i64| n.to_ne_bytes()).collect();
    assert_eq!(observations(&finished), expected);
}

#[test]
fn an_interrupt_ends_the_wait_and_leaves_the_call_pending() {
    let mut fixture = Fixture::new(2, 1, true, 4);
    fixture.begin_step(&[0, 0]);
    let outcome = fixture.pool.finish(Call::Step, None, &mut || true);
    assert!(matches!(outcome, Err(Error::Interrupted)));
    assert_eq!(fixture.pool.pending(), Some(Call::Step));
    fixture.gates[0].send(()).unwrap();
    fixture.finish(Call::Step);
}

#[test]
fn closing_is_bounded_while_a_worker_hangs_and_names_the_worker() {
    let mut fixture = Fixture::new(4, 2, true, 4);
    fixture.begin_step(&[0; 4]);
    fixture.entered[1].recv().unwrap(); // `close` would cancel a step that has not begun
    fixture.gates[0].send(()).unwrap();
    let start = Instant::now();
    // Long enough for the other worker to get a processor.
    assert_eq!(fixture.pool.close(Duration::from_secs(2)), [1]);
    assert!(start.elapsed() < Duration::from_secs(60));
    assert!(fixture.pool.close(Duration::ZERO).is_empty(), "idempotent");
    assert!(matches!(fixture.pool.begin(Call::Reset, 0), Err(Error::Closed)));
}

#[test]
fn a_limit_that_is_too_long_to_be_a_time_is_no_limit() {
    for mut fixture in
        [Fixture::new(4, 0, false, 4), Fixture::new(4, 2, false, 4), Fixture::thread_pool(4, 2)]
    {
        fixture.begin_step(&[0; 4]);
        fixture.pool.finish(Call::Step, Some(Duration::MAX), &mut || false).unwrap();
        assert!(fixture.pool.close(Duration::MAX).is_empty(), "every worker ends");
    }
}

#[test]
fn calls_out_of_order_are_errors_and_change_nothing() {
    let mut fixture = Fixture::new(2, 1, false, 4);
    let outcome = fixture.pool.finish(Call::Step, None, &mut || false);
    assert!(matches!(outcome, Err(Error::NotPending { expected: Call::Step })));
    fixture.begin_step(&[0, 0]);
    let outcome = fixture.pool.finish(Call::Reset, None, &mut || false);
    assert!(matches!(outcome, Err(Error::NotPending { expected: Call::Reset })));
    fixture.finish(Call::Step);
}

/// Two rows, the second of which is over after every task.
#[derive(Debug)]
struct Over;
impl Shard for Over {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        for row in task.slab.rows() {
            let over = row == 1;
            let phase = if over { PhaseTag::Over } else { PhaseTag::Running };
            let transition = Transition { reward: 0.0, terminated: over, truncated: false };
            task.slab.write_transition(row, &transition, phase);
        }
        Report::default()
    }
}

#[test]
fn rows_that_are_over_are_refused_before_anything_is_published() {
    let plan = Plan {
        actions: vec![Leaf { dtype: DType::I64, shape: vec![] }],
        ..Plan::new(shards(2, 1))
    };
    let policy = Policy { refuse_over: true, ..Policy::default() };
    let mut pool = inline(plan, Scope::Private, Box::new(Over), policy);
    pool.begin(Call::Step, 0).unwrap();
    drop(pool.finish(Call::Step, None, &mut || false).unwrap());
    let outcome = pool.begin(Call::Step, 0);
    assert!(matches!(&outcome, Err(Error::EpisodeOver { rows }) if rows == &[1]), "{outcome:?}");
    assert_eq!(pool.pending(), None);
}

#[test]
fn a_step_while_the_scratch_slab_is_held_is_refused_and_steps_nothing() {
    let mut fixture = Fixture::new(2, 1, false, 3);
    let kept = [fixture.reset(), fixture.step(&[1, 1])];
    let scratch = fixture.step(&[2, 2]).lease.unwrap();
    assert!(scratch.must_copy());
    for call in [Call::Reset, Call::Step] {
        let refused = fixture.pool.begin(call, 0).unwrap_err();
        assert!(matches!(refused, Error::SlabsHeld { slabs: 3 }), "{refused}");
        assert_eq!(fixture.pool.pending(), None);
    }
    drop(scratch);
    let after = observations(&fixture.step(&[3, 3]));
    let third: Vec<u8> = [0, 3, 3, 1, 3, 3_i64].iter().flat_map(|n| n.to_ne_bytes()).collect();
    assert_eq!(after, third, "the third step of both rows");
    drop(kept);
}

#[test]
#[should_panic(expected = "24 bytes from 18446744073709551608 on are not in a slab of 4096 bytes")]
fn a_read_whose_end_wraps_is_refused() {
    let lease = Fixture::new(1, 0, false, 4).reset().lease.unwrap();
    lease.read(usize::MAX - 7, &mut [0; 24]);
}

#[test]
#[should_panic(expected = "18446744073709551608..16 is not in a slab of 4096 bytes")]
fn an_address_whose_start_wraps_is_refused() {
    let lease = Fixture::new(1, 0, false, 4).reset().lease.unwrap();
    #[expect(clippy::reversed_empty_ranges, reason = "wrapped, it is a range of two slabs")]
    lease.at(usize::MAX - 7..16);
}

/// A row whose episode ends, and which then panics.
#[derive(Debug, Default)]
struct EndsOnce {
    has_ended: bool,
}

impl Shard for EndsOnce {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        assert!(!std::mem::replace(&mut self.has_ended, true), "it has ended");
        task.slab.write(0, 0, &[7]);
        task.slab.write_final(0, Some(&[9]));
        task.slab.write_transition(0, &Transition::CUT, PhaseTag::Running);
        Report::default()
    }
}

#[test]
fn a_row_that_failed_has_no_final_observation_of_the_batch_before() {
    let plan = Plan {
        observations: vec![Leaf { dtype: DType::U8, shape: vec![] }],
        dense_finals: true,
        ..Plan::new(shards(1, 1))
    };
    let mut pool = inline(plan, Scope::Private, Box::<EndsOnce>::default(), Policy::default());
    let mut step = || {
        pool.begin(Call::Step, 0).unwrap();
        let lease = pool.finish(Call::Step, None, &mut || false).unwrap().lease.unwrap();
        let layout = lease.layout();
        let ended = layout.ended_offset().unwrap();
        let shown = [layout.leaf_offset(0), layout.leaf_offset(1), ended].map(|offset| {
            let mut byte = [0];
            lease.read(offset, &mut byte);
            byte[0]
        });
        (shown, lease.at(0..1))
    };
    let ((ended, slab), (failed, other)) = (step(), step());
    assert_eq!(slab, other, "the second batch is in the memory of the first");
    assert_eq!((ended, failed), ([7, 9, 1], [0, 0, 0]));
}

#[test]
fn infos_travel_with_their_shard() {
    let mut fixture = Fixture::new(3, 3, false, 4);
    fixture.reset();
    let infos = fixture.step(&[0; 3]).infos;
    assert_eq!(infos, [0, 1, 2].map(|first| (first, InfosAt::Memory(8))));
    for (first, _) in infos {
        let mut stream = vec![1, 2, 3];
        fixture.pool.load_infos(first, 8, &mut stream);
        assert_eq!(stream, 1_i64.to_le_bytes());
    }
}

#[test]
#[should_panic(expected = "infos are those of rows that arrived")]
fn infos_are_not_read_while_a_call_is_pending() {
    let mut fixture = Fixture::new(1, 0, false, 4);
    fixture.reset();
    fixture.pool.begin(Call::Step, 0).unwrap();
    fixture.pool.load_infos(0, 8, &mut Vec::new());
}

#[test]
fn shared_memory_is_attached_only_with_its_own_plan() {
    let plan = |rows| Plan {
        observations: vec![Leaf { dtype: DType::U8, shape: vec![4] }],
        ..Plan::new(shards(rows, 2))
    };
    let (memory, _) = Memory::new(plan(600), Scope::Shared).unwrap();
    let attached = |plan| {
        // SAFETY: they are only attached.
        let descriptors = unsafe { memory.descriptors() }.unwrap();
        let descriptors = descriptors.map(|descriptor| descriptor.try_clone_to_owned().unwrap());
        // SAFETY: they are those of one memory, and the token is not used.
        unsafe { WorkerToken::attach(plan, descriptors, 0) }
    };
    assert!(attached(plan(600)).is_ok());
    assert!(matches!(attached(plan(6000)), Err(Error::Mismatch { .. })));
}

/// A row whose step panics outside the code that catches panics of environments.
#[derive(Debug)]
struct Broken;

impl Shard for Broken {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        assert!(task.op != Op::Step || task.rows.start != 1, "not this row");
        Plain.run(task)
    }

    fn close(&mut self) {
        panic!("not this one either");
    }
}

#[test]
fn a_panic_fails_its_rows_and_hangs_no_call_with_any_kind_of_workers() {
    for threads in [None, Some(1), Some(2)] {
        let plan = Plan::new(shards(4, 4));
        let mut serving = Vec::new();
        let mut pool = if let Some(threads) = threads {
            let own = (0..4).map(|_| Box::new(Broken) as Box<dyn Shard>);
            thread_pool(plan, threads, own, spinning())
        } else {
            let (_, tokens) = Memory::new(plan, Scope::Private).unwrap();
            let threads = tokens.workers.into_iter();
            let serve = |token| std::thread::spawn(move || serve(token, &mut Broken, false));
            serving.extend(threads.map(serve));
            Pool::new(tokens.pool, Workers::Threads, spinning()).unwrap()
        };
        for _ in 0..3 {
            for call in [Call::Reset, Call::Step] {
                pool.begin(call, 0).unwrap();
                let limit = Some(Duration::from_secs(30));
                let finished = pool.finish(call, limit, &mut || false).unwrap();
                let expected: &[usize] = if call == Call::Step { &[1] } else { &[] };
                assert_eq!(finished.failed, expected);
            }
            let refused = pool.begin(Call::Step, 0);
            assert!(matches!(&refused, Err(Error::NeedsReset { rows }) if rows == &[1]));
        }
        assert_eq!(pool.close(Duration::from_secs(30)), [] as [usize; 0]);
        for thread in serving {
            thread.join().unwrap();
        }
    }
}
