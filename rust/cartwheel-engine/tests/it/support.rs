//! A pool of native environments for tests: the calls that a binding makes.

use std::ops::Range;
use std::sync::Arc;

use cartwheel_core::schedule::{fine_shards, shards};
use cartwheel_engine::autoreset::{AutoresetMode, OnDone, Rules};
use cartwheel_engine::memory::{InfosAt, Lease, Plan};
use cartwheel_engine::native::{
    Answer, Fault, Mailbox, NativeShard, Request, RowReset, RowState, ShardSettings,
};
use cartwheel_engine::plugin::{EnvKind, ResetOptions, find, register};
use cartwheel_engine::pool::{Event, Policy, Pool, Workers};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::space::{ActionTag, DType};
use cartwheel_engine::wake::Scope;
use cartwheel_engine::worker::{Report, Shard, Task, ThreadPool, ThreadPoolSettings, serve};
use cartwheel_engine::{Call, Error, PhaseTag, Transition};

/// The kind of an environment in a table, with these options.
pub(crate) fn kind(
    plugin: &'static cartwheel_abi::Plugin,
    id: &str,
    options: &str,
) -> Result<Arc<EnvKind>, Error> {
    register_table(plugin, "test")?;
    EnvKind::new(&find(id)?, options)
}

/// Registers a table that keeps the contract, or breaks it without touching other memory.
#[expect(
    unsafe_code,
    reason = "the code that registers a table promises that it keeps the contract"
)]
pub(crate) fn register_table(
    plugin: &'static cartwheel_abi::Plugin,
    source: &str,
) -> Result<Vec<String>, Error> {
    // SAFETY: a static table of these tests.
    unsafe { register(plugin, source) }
}

/// Rows with nothing but transitions.
#[derive(Debug)]
pub(crate) struct Plain;

impl Shard for Plain {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        for row in task.slab.rows() {
            task.slab.write_transition(row, &Transition::RESET, PhaseTag::Running);
        }
        Report::default()
    }
}

/// A pool whose rows the calling thread steps.
pub(crate) fn inline(plan: Plan, scope: Scope, shard: Box<dyn Shard>, policy: Policy) -> Pool {
    let (_, mut tokens) = Memory::new(plan, scope).unwrap();
    Pool::new(tokens.pool, Workers::Inline(tokens.workers.remove(0), shard), policy).unwrap()
}

/// A pool whose rows a thread pool steps, of so many threads, the calling one included.
pub(crate) fn thread_pool(
    plan: Plan,
    threads: usize,
    shards: impl Iterator<Item = Box<dyn Shard>>,
    policy: Policy,
) -> Pool {
    let (_, tokens) = Memory::new(plan, Scope::Private).unwrap();
    let settings = ThreadPoolSettings { threads, spin: policy.spin, affinity_offset: None };
    let thread_pool = ThreadPool::new(tokens.workers, shards.collect(), settings).unwrap();
    Pool::new(tokens.pool, Workers::ThreadPool(thread_pool), policy).unwrap()
}

/// The elements of an array, as they lie in memory.
pub(crate) fn bytes_of(integers: &[i64]) -> Vec<u8> {
    integers.iter().flat_map(|integer| integer.to_ne_bytes()).collect()
}

/// Environments in a pool.
pub(crate) struct Envs {
    pub(crate) pool: Pool,
    pub(crate) mailboxes: Vec<Arc<Mailbox>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// A batch that was stepped or reset.
pub(crate) struct Batch {
    pub(crate) lease: Lease,
    pub(crate) faults: Vec<Fault>,
    /// The info streams of all shards.
    pub(crate) infos: Vec<u8>,
}

pub(crate) fn settings(autoreset: AutoresetMode) -> ShardSettings {
    ShardSettings {
        autoreset,
        on_done: OnDone::Freeze,
        rules: Rules::default(),
        replacements: 0,
        dense_finals: false,
        is_checked: false,
        has_external_rewards: false,
        external_resets: None,
    }
}

pub(crate) fn limited(autoreset: AutoresetMode, steps: u32) -> ShardSettings {
    ShardSettings { rules: Rules::limited(steps), ..settings(autoreset) }
}

/// The plan of rows of a kind.
fn plan(kind: &EnvKind, shards: Vec<Range<usize>>, settings: ShardSettings) -> Plan {
    Plan {
        observations: kind.spaces().observation.leaves(),
        actions: kind.spaces().action.leaves(),
        info_bytes: 1 << 12,
        dense_finals: settings.dense_finals,
        ..Plan::new(shards)
    }
}

impl Envs {
    /// `workers` threads, or the calling thread if there are none.
    pub(crate) fn new(
        kind: &Arc<EnvKind>,
        rows: usize,
        workers: usize,
        settings: ShardSettings,
    ) -> Self {
        Self::with_batches(kind, rows, workers, settings, rows)
    }

    /// The same, received in batches of `batch_size` rows.
    pub(crate) fn with_batches(
        kind: &Arc<EnvKind>,
        rows: usize,
        workers: usize,
        settings: ShardSettings,
        batch_size: usize,
    ) -> Self {
        Self::with_slabs(kind, rows, workers, settings, batch_size, 8 + rows)
    }

    /// The same, with at most `max_slabs` slabs.
    pub(crate) fn with_slabs(
        kind: &Arc<EnvKind>,
        rows: usize,
        workers: usize,
        settings: ShardSettings,
        batch_size: usize,
        max_slabs: usize,
    ) -> Self {
        let shards = shards(rows, workers.max(1));
        let plan = Plan { batch_size, max_slabs, ..plan(kind, shards, settings) };
        let made: Vec<_> =
            plan.shards.iter().map(|shard| NativeShard::new(kind, shard.len(), settings)).collect();
        let (_, tokens) = Memory::new(plan, Scope::Private).unwrap();
        let (mut mailboxes, mut threads, mut own) = (Vec::new(), Vec::new(), None);
        for (token, made) in tokens.workers.into_iter().zip(made) {
            let (mut shard, mailbox) = made.unwrap();
            mailboxes.push(mailbox);
            if workers == 0 {
                own = Some(Workers::Inline(token, Box::new(shard)));
            } else {
                threads.push(std::thread::spawn(move || serve(token, &mut shard, false)));
            }
        }
        let workers = own.unwrap_or(Workers::Threads);
        let policy = Policy {
            refuse_unstarted: true,
            has_external_rewards: settings.has_external_rewards,
            ..Policy::default()
        };
        Self { pool: Pool::new(tokens.pool, workers, policy).unwrap(), mailboxes, threads }
    }

    /// Stepped by a thread pool of `threads` threads, the calling one included.
    pub(crate) fn of_thread_pool(
        kind: &Arc<EnvKind>,
        rows: usize,
        threads: usize,
        settings: ShardSettings,
        batch_size: usize,
    ) -> Self {
        let shards = fine_shards(rows, threads, 1);
        let plan = Plan { batch_size, max_slabs: 8 + rows, ..plan(kind, shards, settings) };
        let (mut mailboxes, mut own): (_, Vec<Box<dyn Shard>>) = (Vec::new(), Vec::new());
        for shard in &plan.shards {
            let (shard, mailbox) = NativeShard::new(kind, shard.len(), settings).unwrap();
            mailboxes.push(mailbox);
            own.push(Box::new(shard));
        }
        let policy = Policy { refuse_unstarted: true, spin: true, ..Policy::default() };
        let pool = thread_pool(plan, threads, own.into_iter(), policy);
        Self { pool, mailboxes, threads: Vec::new() }
    }

    pub(crate) fn call(&mut self, call: Call, flags: u32) -> Result<Batch, Error> {
        self.pool.begin(call, flags)?;
        let finished = self.pool.finish(call, None, &mut || false)?;
        let (mut faults, mut infos) = (Vec::new(), Vec::new());
        let mut stream = Vec::new();
        for event in finished.events() {
            let (Event::Failed(row) | Event::Infos(row, _)) = event;
            let mailbox = &self.mailboxes[self.pool.shard_of(row)];
            match event {
                Event::Failed(_) => faults.extend(mailbox.take_faults()),
                Event::Infos(_, InfosAt::Channel) => {
                    infos.extend(mailbox.take_spilled(row).unwrap());
                }
                Event::Infos(_, InfosAt::Memory(bytes)) => {
                    self.pool.load_infos(row, bytes, &mut stream);
                    infos.extend_from_slice(&stream);
                }
            }
        }
        Ok(Batch { lease: finished.lease.unwrap(), faults, infos })
    }

    pub(crate) fn step(&mut self, actions: &[i64]) -> Result<Batch, Error> {
        store_actions(&mut self.pool, 0, ActionTag::Array(DType::I64), &bytes_of(actions))?;
        self.call(Call::Step, 0)
    }

    /// Row `i` is reset with `seed + i`.
    pub(crate) fn seed(&mut self, seed: u128) -> Batch {
        let rows = 0..self.pool.shards().last().unwrap().end as u128;
        self.reset(rows.map(|row| RowReset::Seed(seed + row)).collect(), None)
    }

    pub(crate) fn reset(&mut self, how: Vec<RowReset>, options: Option<ResetOptions>) -> Batch {
        self.reset_with_flags(how, options, 0)
    }

    /// The same, with flags of the task.
    pub(crate) fn reset_with_flags(
        &mut self,
        how: Vec<RowReset>,
        options: Option<ResetOptions>,
        flags: u32,
    ) -> Batch {
        let mut how = how.into_iter();
        for (shard, mailbox) in self.pool.shards().iter().zip(&self.mailboxes) {
            let rows = how.by_ref().take(shard.len()).collect();
            mailbox.post_reset(rows, options.clone().into());
        }
        self.call(Call::Reset, flags).unwrap()
    }

    /// Continues rows from states.
    pub(crate) fn restore(&mut self, kind: &EnvKind, states: &[Option<Vec<u8>>]) -> Batch {
        let how = states.iter().map(|state| match state {
            None => RowReset::Leave,
            Some(state) => RowReset::Restore(Box::new(RowState::read(kind, state).unwrap())),
        });
        self.reset(how.collect(), None)
    }

    /// The states of all rows of the only shard.
    pub(crate) fn save(&mut self) -> Vec<Vec<u8>> {
        let rows = 0..self.pool.shards()[0].end;
        let Ok(Answer::States(states)) = self.ask(Request::Save(rows.collect())) else {
            panic!("states")
        };
        states
    }

    /// The answer of the only shard.
    pub(crate) fn ask(&mut self, request: Request) -> Result<Answer, Error> {
        let [mailbox] = self.mailboxes.as_slice() else { panic!("one shard") };
        mailbox.post_request(request);
        self.pool.begin(Call::Call, 0).unwrap();
        self.pool.finish(Call::Call, None, &mut || false).unwrap();
        self.mailboxes[0].take_answer().unwrap()
    }
}

/// Stores elements for the next step of all rows, one leaf at a time.
pub(crate) fn store_actions(
    pool: &mut Pool,
    leaf: usize,
    tag: ActionTag,
    elements: &[u8],
) -> Result<(), Error> {
    pool.sending(Call::Step, None)?.fill_actions(leaf, tag, |_, room| {
        room.copy_from_slice(elements);
        Ok(())
    })
}

impl Drop for Envs {
    fn drop(&mut self) {
        self.pool.close(std::time::Duration::from_secs(5));
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

impl Batch {
    fn bytes(&self, offset: usize, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.lease.read(offset, &mut bytes);
        bytes
    }

    fn rows(&self) -> usize {
        self.lease.layout().rows()
    }

    /// The bytes of one leaf.
    pub(crate) fn leaf(&self, leaf: usize) -> Vec<u8> {
        let layout = self.lease.layout();
        self.bytes(layout.leaf_offset(leaf), layout.leaf(leaf).row_bytes() * self.rows())
    }

    /// One leaf of `int64`.
    pub(crate) fn integers(&self, leaf: usize) -> Vec<i64> {
        let bytes = self.leaf(leaf);
        bytes.chunks(8).map(|bytes| i64::from_ne_bytes(bytes.try_into().unwrap())).collect()
    }

    /// The final observations of one leaf of `int64`, and which rows ended.
    pub(crate) fn finals(&self, leaf: usize) -> (Vec<i64>, Vec<bool>) {
        let layout = self.lease.layout();
        let ended = self.bytes(layout.ended_offset().expect("dense"), self.rows());
        (self.integers(layout.num_leaves() + leaf), ended.into_iter().map(|b| b != 0).collect())
    }

    pub(crate) fn rewards(&self) -> Vec<f64> {
        let bytes = self.bytes(self.lease.layout().rewards_offset(), 8 * self.rows());
        bytes.chunks(8).map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap())).collect()
    }

    pub(crate) fn terminations(&self) -> Vec<bool> {
        let bytes = self.bytes(self.lease.layout().terminations_offset(), self.rows());
        bytes.into_iter().map(|byte| byte != 0).collect()
    }

    pub(crate) fn truncations(&self) -> Vec<bool> {
        let bytes = self.bytes(self.lease.layout().truncations_offset(), self.rows());
        bytes.into_iter().map(|byte| byte != 0).collect()
    }

    /// Everything of the batch that a user sees, as bytes.
    pub(crate) fn everything(&self) -> Vec<u8> {
        let layout = self.lease.layout();
        let mut all: Vec<u8> = (0..layout.num_leaves()).flat_map(|leaf| self.leaf(leaf)).collect();
        all.extend(self.bytes(layout.rewards_offset(), 8 * self.rows()));
        all.extend(self.bytes(layout.terminations_offset(), self.rows()));
        all.extend(self.bytes(layout.truncations_offset(), self.rows()));
        all.extend(&self.infos);
        all
    }
}
