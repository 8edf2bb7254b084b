//! Every wait ends, with the event that it waits for or with an error.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cartwheel_core::schedule::shards;
use cartwheel_engine::memory::{ActionRows, Plan};
use cartwheel_engine::pool::{OnDeath, Policy, Pool, Received, RecvOrder, Workers};
use cartwheel_engine::protocol::{Counters, Memory, QueuedRows};
use cartwheel_engine::wake::Scope;
use cartwheel_engine::worker::{ProcessHandle, Report, Shard, Task, serve};
use cartwheel_engine::{Call, Error};
use rustix::process::{Signal, getpid, kill_process};

use crate::support::{self, Plain};
use crate::worker_process;

const ROWS: usize = 6;
/// A test that takes longer counts as hung.
const LIMIT: Duration = Duration::from_secs(30);

/// `ROWS` rows without observations, in `num_shards` shards, received in batches of `batch_size`.
fn plan(num_shards: usize, batch_size: usize) -> Plan {
    Plan { batch_size, max_slabs: 2 + ROWS, ..Plan::new(shards(ROWS, num_shards)) }
}

/// A pool of the shards that `make` returns, and the threads that serve it.
struct Running {
    pool: Pool,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    fn inline(batch_size: usize, make: impl Fn() -> Box<dyn Shard>) -> Self {
        let plan = plan(1, batch_size);
        let pool = support::inline(plan, Scope::Private, make(), Policy::default());
        Self { pool, threads: Vec::new() }
    }

    /// A thread pool of the calling thread and `others`.
    fn thread_pool(others: usize, batch_size: usize, make: impl Fn() -> Box<dyn Shard>) -> Self {
        let shards = (0..3).map(|_| make());
        let plan = plan(3, batch_size);
        let pool = support::thread_pool(plan, 1 + others, shards, Policy::default());
        Self { pool, threads: Vec::new() }
    }

    /// With workers of each kind, in batches of all rows.
    fn every_kind(make: &dyn Fn() -> Box<dyn Shard>) -> [Self; 4] {
        [
            Self::inline(ROWS, make),
            Self::threads(ROWS, make),
            Self::thread_pool(0, ROWS, make),
            Self::thread_pool(1, ROWS, make),
        ]
    }

    fn threads(batch_size: usize, make: impl Fn() -> Box<dyn Shard>) -> Self {
        let (_, tokens) = Memory::new(plan(3, batch_size), Scope::Private).unwrap();
        let threads = tokens.workers.into_iter().map(|token| {
            let mut shard = make();
            std::thread::spawn(move || serve(token, shard.as_mut(), false))
        });
        let threads = threads.collect();
        Self { pool: Pool::new(tokens.pool, Workers::Threads, Policy::default()).unwrap(), threads }
    }

    /// Closes the pool, whose threads end by themselves.
    fn close(mut self) {
        assert_eq!(self.pool.close(LIMIT), [] as [usize; 0]);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

fn send(pool: &mut Pool, call: Call) {
    let rows: Vec<usize> = (0..ROWS).collect();
    pool.sending(call, Some(&rows)).unwrap().send(0).unwrap();
}

/// Receives all rows, which are in flight, with a zero timeout; returns the number of calls.
fn poll(pool: &mut Pool) -> usize {
    let (mut received, mut polls, start) = (Vec::new(), 0, Instant::now());
    while received.len() < ROWS {
        assert!(start.elapsed() < LIMIT, "{received:?} of {ROWS} rows after {polls} calls");
        polls += 1;
        match pool.receive(Some(Duration::ZERO), &mut || false) {
            Ok(batch) => received.extend(batch.rows.iter()),
            Err(Error::Timeout { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    received.sort_unstable();
    assert_eq!(received, (0..ROWS).collect::<Vec<_>>());
    polls
}

#[test]
fn a_wait_alone_hands_out_nothing() {
    let plain = || Box::new(Plain) as Box<dyn Shard>;
    for mut running in Running::every_kind(&plain) {
        let pool = &mut running.pool;
        let (mut received, never) = (Received::default(), &mut || false);
        pool.begin(Call::Reset, 0).unwrap();
        for _ in 0..2 {
            pool.await_call(Call::Reset, Some(LIMIT), never).unwrap();
            assert_eq!(pool.pending(), Some(Call::Reset));
        }
        pool.take(&mut received).unwrap();
        assert_eq!((pool.pending(), received.rows.iter().len()), (None, ROWS));
        received.lease = None;
        pool.sending(Call::Step, Some(&[0, 1])).unwrap().send(0).unwrap();
        for _ in 0..2 {
            pool.await_rows(2, 2, Some(LIMIT), never).unwrap();
            assert_eq!(pool.in_flight(), [0, 1]);
        }
        pool.take(&mut received).unwrap();
        assert_eq!((pool.in_flight().len(), received.rows.sent()), (0, Some(&[0, 1][..])));
        running.close();
    }
}

#[test]
fn polling_with_a_zero_timeout_eventually_receives_every_row() {
    let plain = || Box::new(Plain) as Box<dyn Shard>;
    for batch_size in [1, 4, ROWS] {
        for (mut running, alone) in [
            (Running::inline(batch_size, plain), true),
            (Running::thread_pool(0, batch_size, plain), true),
            (Running::thread_pool(1, batch_size, plain), false),
        ] {
            for call in [Call::Reset, Call::Step, Call::Step] {
                send(&mut running.pool, call);
                let polls = poll(&mut running.pool);
                // Every call steps a row, or has a batch to return. Another thread may be slower.
                assert!(!alone || polls <= 2 * ROWS, "{polls} calls for {ROWS} rows");
            }
            running.close();
        }
    }
}

/// Rows that announce a message, and tell that they panic when they should send it.
#[derive(Debug)]
struct Unsendable(Sender<()>);

impl Shard for Unsendable {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        Plain.run(task);
        Report { spilled: true, ..Report::default() }
    }

    fn flush(&mut self, _: Report) {
        self.0.send(()).unwrap();
        panic!("no way to send it");
    }
}

#[test]
fn a_panic_while_a_message_is_sent_hangs_no_call() {
    let (tell, panicked) = channel();
    for mut running in Running::every_kind(&|| Box::new(Unsendable(tell.clone()))) {
        for _ in 0..3 {
            running.pool.begin(Call::Step, 0).unwrap();
            running.pool.finish(Call::Step, Some(LIMIT), &mut || false).unwrap();
            send(&mut running.pool, Call::Step);
            running.pool.receive(Some(LIMIT), &mut || false).unwrap();
            // One message for the task of each shard, and one for each row.
            for _ in 0..running.pool.shards().len() + ROWS {
                panicked.recv_timeout(LIMIT).unwrap();
            }
        }
        running.close();
    }
}

/// A payload whose destructor panics with another one.
struct Endless;

impl Drop for Endless {
    fn drop(&mut self) {
        resume_unwind(Box::new(Self));
    }
}

/// Rows that panic with such a payload.
#[derive(Debug)]
struct Panicking;

impl Shard for Panicking {
    fn run(&mut self, _: &mut Task<'_>) -> Report {
        resume_unwind(Box::new(Endless));
    }

    fn flush(&mut self, _: Report) {
        resume_unwind(Box::new(Endless));
    }

    fn close(&mut self) {
        resume_unwind(Box::new(Endless));
    }
}

#[test]
fn a_panic_with_any_payload_hangs_no_call() {
    for mut running in Running::every_kind(&|| Box::new(Panicking)) {
        for _ in 0..2 {
            running.pool.begin(Call::Reset, 0).unwrap();
            let reset = running.pool.finish(Call::Reset, Some(LIMIT), &mut || false).unwrap();
            assert_eq!(reset.failed.len(), running.pool.shards().len());
            send(&mut running.pool, Call::Reset);
            let sent = running.pool.receive(Some(LIMIT), &mut || false).unwrap();
            assert_eq!(sent.failed, (0..ROWS).collect::<Vec<_>>());
        }
        running.close();
    }
}

/// The moment at which a process dies: with its first rows, before or after they have places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    BeforePlaces,
    WithPlaces,
}

/// Rows that a process takes several at a time.
#[derive(Debug)]
struct Several {
    death: Option<Death>,
}

impl Shard for Several {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        if self.death == Some(Death::WithPlaces) {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        Plain.run(task)
    }

    fn prepare(&mut self, _: &QueuedRows, _: usize, _: &ActionRows<'_>, _: Counters<'_>) {
        if self.death == Some(Death::BeforePlaces) {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    }

    fn batch_of_sent(&self) -> usize {
        4
    }
}

/// Environment variables of a worker process: the number of shards, the batch size, and whether the
/// process dies: before its rows have places, or empty for after that.
const SHARDS: &str = "CARTWHEEL_TEST_SHARDS";
const BATCH_SIZE: &str = "CARTWHEEL_TEST_BATCH_SIZE";
const DIES: &str = "CARTWHEEL_TEST_DIES";

#[test]
#[ignore = "a worker process of other tests"]
fn a_worker() {
    let batch_size = std::env::var(BATCH_SIZE).unwrap().parse().unwrap();
    let num_shards = std::env::var(SHARDS).map_or(1, |shards| shards.parse().unwrap());
    let token = worker_process::attach(plan(num_shards, batch_size));
    let death = std::env::var(DIES)
        .ok()
        .map(|before| if before.is_empty() { Death::WithPlaces } else { Death::BeforePlaces });
    let mut shard = Several { death };
    serve(token, &mut shard, false);
}

#[test]
fn sent_rows_of_a_dead_process_are_finished_by_its_replacement() {
    for batch_size in [1, 4, ROWS] {
        let (memory, tokens) = Memory::new(plan(1, batch_size), Scope::Shared).unwrap();
        let start = || {
            let mut process = worker_process::worker("waits::a_worker", &memory, 0);
            process.env(BATCH_SIZE, batch_size.to_string());
            process
        };
        let mut dying = start().env(DIES, "").spawn().unwrap();
        let workers = Workers::Processes(vec![ProcessHandle::new(dying.id()).unwrap()]);
        let policy = Policy { on_death: OnDeath::Resume, ..Policy::default() };
        let mut pool = Pool::new(tokens.pool, workers, policy).unwrap();
        send(&mut pool, Call::Step);
        let died = pool.receive(Some(LIMIT), &mut || false);
        assert!(matches!(died, Err(Error::WorkerDied { worker: 0, .. })), "{died:?}");
        pool.lost(0);
        dying.wait().unwrap();
        let mut next = start().spawn().unwrap();
        pool.resume(0, ProcessHandle::new(next.id()).unwrap());
        let mut received = Vec::new();
        while received.len() < ROWS {
            received.extend(pool.receive(Some(LIMIT), &mut || false).unwrap().rows.iter());
        }
        received.sort_unstable();
        assert_eq!(received, (0..ROWS).collect::<Vec<_>>());
        assert_eq!(pool.close(LIMIT), [] as [usize; 0]);
        next.wait().unwrap();
    }
}

/// The next ready rows, in ascending order.
fn ready(pool: &mut Pool, count: usize) -> Vec<usize> {
    let mut rows = Vec::new();
    while rows.len() < count {
        let received = pool.receive_ready(Some(LIMIT), &mut || false).unwrap();
        rows.extend(received.expect("rows in time").rows.iter());
    }
    rows.sort_unstable();
    rows
}

/// Rows that wait until the sender of the gate is dropped.
#[derive(Debug)]
struct Gated(Receiver<()>);

impl Shard for Gated {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        let _ = self.0.recv();
        Plain.run(task)
    }
}

#[test]
fn ready_rows_come_in_every_executor() {
    let plain = || Box::new(Plain) as Box<dyn Shard>;
    for batch_size in [1, 4, ROWS] {
        for mut running in [
            Running::inline(batch_size, plain),
            Running::thread_pool(0, batch_size, plain),
            Running::thread_pool(1, batch_size, plain),
            Running::threads(batch_size, plain),
        ] {
            send(&mut running.pool, Call::Step);
            assert_eq!(ready(&mut running.pool, ROWS), (0..ROWS).collect::<Vec<_>>());
            let none = running.pool.receive_ready(Some(Duration::ZERO), &mut || false).unwrap();
            assert!(none.is_none(), "nothing is in flight");
            running.close();
        }
    }
}

#[test]
fn a_wake_up_from_another_thread_ends_a_wait_for_ready_rows() {
    let gates = RefCell::new(Vec::new());
    let mut running = Running::threads(ROWS, || {
        let (gate, waiting) = channel();
        gates.borrow_mut().push(gate);
        Box::new(Gated(waiting))
    });
    let pool = &mut running.pool;
    pool.set_recv_order(RecvOrder::Done);
    let waker = Arc::clone(pool.waker());
    waker.wake(); // before the wait
    assert!(pool.receive_ready(None, &mut || false).unwrap().is_none());
    for in_flight in [false, true] {
        if in_flight {
            send(pool, Call::Step);
        }
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
            assert!(pool.receive_ready(None, &mut || false).unwrap().is_none());
        });
        let none = pool.receive_ready(Some(Duration::ZERO), &mut || false).unwrap();
        assert!(none.is_none(), "the wake-up was used up");
    }
    gates.take();
    assert_eq!(ready(pool, ROWS), (0..ROWS).collect::<Vec<_>>());
    running.close();
}

#[test]
fn a_death_is_reported_after_the_batches_that_were_whole_when_it_was_noticed() {
    let (memory, tokens) = Memory::new(plan(2, 1), Scope::Shared).unwrap();
    let mut process = worker_process::worker("waits::a_worker", &memory, 0);
    let mut other = process.env(BATCH_SIZE, "1").env(SHARDS, "2").spawn().unwrap();
    let handles = vec![ProcessHandle::new(other.id()).unwrap(), ProcessHandle::absent()];
    let mut pool = Pool::new(tokens.pool, Workers::Processes(handles), Policy::default()).unwrap();
    let send = |pool: &mut Pool, rows: &[usize], steps: [u64; 3]| {
        pool.sending(Call::Step, Some(rows)).unwrap().send(0).unwrap();
        let arrived = |pool: &Pool| [0, 1, 2].map(|row| pool.meter().read().rows[row].steps);
        let start = Instant::now();
        while arrived(pool) != steps {
            assert!(start.elapsed() < LIMIT, "{:?}", arrived(pool));
            std::thread::yield_now();
        }
    };
    send(&mut pool, &[0, 1, 2, 3], [1; 3]);
    std::thread::sleep(Duration::from_millis(50)); // the time between two looks at the workers
    let receive = |pool: &mut Pool| pool.receive(Some(LIMIT), &mut || false);
    let first = receive(&mut pool).unwrap().rows.at(0); // now the death is noticed
    let mut again = [1; 3];
    again[first] = 2;
    send(&mut pool, &[first], again);
    for _ in 0..2 {
        receive(&mut pool).unwrap();
    }
    let died = receive(&mut pool);
    assert!(matches!(died, Err(Error::WorkerDied { worker: 1, .. })), "{died:?}");
    pool.close(LIMIT);
    other.wait().unwrap();
}

#[test]
fn rows_of_other_workers_are_received_while_one_is_dead_or_not_started() {
    let (memory, tokens) = Memory::new(plan(2, ROWS), Scope::Shared).unwrap();
    let start = |worker: usize, dies: bool| {
        let mut process = worker_process::worker("waits::a_worker", &memory, worker);
        process.env(BATCH_SIZE, ROWS.to_string()).env(SHARDS, "2");
        if dies {
            process.env(DIES, "before");
        }
        process.spawn().unwrap()
    };
    let mut first = start(0, false);
    let handles = vec![ProcessHandle::new(first.id()).unwrap(), ProcessHandle::absent()];
    let policy = Policy { on_death: OnDeath::Defer, ..Policy::default() };
    let mut pool = Pool::new(tokens.pool, Workers::Processes(handles), policy).unwrap();
    pool.set_recv_order(RecvOrder::Done);
    assert_eq!(pool.dead_workers(), [1]);
    send(&mut pool, Call::Step);
    assert_eq!(ready(&mut pool, ROWS / 2), [0, 1, 2]);
    pool.lost(1);
    let mut dying = start(1, true);
    pool.resume(1, ProcessHandle::new(dying.id()).unwrap());
    let died = pool.receive_ready(Some(LIMIT), &mut || false);
    assert!(matches!(died, Err(Error::WorkerDied { worker: 1, .. })), "{died:?}");
    assert_eq!(pool.dead_workers(), [1]);
    // It is reported once, and the rows of the other worker go on.
    pool.sending(Call::Step, Some(&[2, 0])).unwrap().send(0).unwrap();
    assert_eq!(ready(&mut pool, 2), [0, 2]);
    dying.wait().unwrap();
    pool.lost(1);
    let mut next = start(1, false);
    pool.resume(1, ProcessHandle::new(next.id()).unwrap());
    assert_eq!(ready(&mut pool, ROWS / 2), [3, 4, 5]);
    assert_eq!(pool.close(LIMIT), [] as [usize; 0]);
    first.wait().unwrap();
    next.wait().unwrap();
}
