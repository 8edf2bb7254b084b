//! How fast an environment is on one core: a plain loop over its rows, and the same through a pool.
//!
//! ```text
//! cargo run --release -p cartwheel-envs --example plain_loop [id] [seconds a measurement]
//! ```
//!
//! The plain loop is the ceiling: it steps, resets what is over and stores observations, rewards and
//! flags, with no interface at all; row by row, and in blocks where the environment has them. The pool
//! does the same in its inline executor, with slabs, leases, autoreset machine and acknowledgements.
//! All in turns, medians of seven rounds.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::hint::black_box;
use std::num::NonZero;
use std::time::{Duration, Instant};

use cartwheel_engine::Call;
use cartwheel_engine::autoreset::{AutoresetMode, OnDone};
use cartwheel_engine::memory::Plan;
use cartwheel_engine::native::{AnyRecipe, ShardSettings};
use cartwheel_engine::plain_loop::PlainLoops;
use cartwheel_engine::pool::{OnDeath, Policy, Pool, Workers};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::rng::Rng;
use cartwheel_engine::space::{ActionTag, Leaf};
use cartwheel_engine::wake::Scope;
use cartwheel_envs::find;

const ROUNDS: usize = 7;
const ACTION_BATCHES: usize = 64;

/// A pool of one shard, stepped by the calling thread, and random actions for it.
struct Stepped {
    pool: Pool,
    rows: usize,
    /// The leaves of an action, each with the elements of all batches.
    actions: Vec<(Leaf, Vec<u8>)>,
}

impl Stepped {
    fn new(recipe: &dyn AnyRecipe, rows: usize, max_episode_steps: Option<NonZero<u32>>) -> Self {
        let (autoreset, on_done) = (AutoresetMode::NextStep, OnDone::Raise);
        let settings = ShardSettings { autoreset, on_done, max_episode_steps, replacements: 0 };
        let (shard, _) = recipe.shard(rows, settings).expect("a shard");
        let space = &recipe.spaces().action;
        let plan = Plan {
            observations: recipe.spaces().observation.leaves(),
            actions: space.leaves(),
            shards: vec![0..rows; 1],
            batch_size: rows,
            max_slabs: 8,
            info_bytes: 1 << 16,
        };
        let memory = Memory::new(plan, Scope::Private).expect("memory");
        let policy = Policy {
            refuse_over: false,
            refuse_unstarted: true,
            on_death: OnDeath::Break,
            spin: false,
        };
        let pool = Pool::new(memory, Workers::Inline(shard), policy).expect("a pool");
        let mut rng = Rng::from_seed(7);
        let leaves = space.leaves().into_iter().enumerate();
        let actions = leaves
            .map(|(number, leaf)| (leaf, space.sample(number, rows * ACTION_BATCHES, &mut rng)));
        let actions = actions.collect();
        let mut stepped = Self { pool, rows, actions };
        stepped.call(Call::Reset);
        stepped
    }

    fn call(&mut self, call: Call) {
        self.pool.begin(call, 0).expect("nothing is pending");
        let finished = self.pool.finish(call, None, &mut || false);
        drop(black_box(finished.expect("rows never fail")));
    }

    fn step(&mut self, batch: usize) {
        for (number, (leaf, elements)) in self.actions.iter().enumerate() {
            let bytes = leaf.row_bytes() * self.rows;
            let batch = &elements[batch * bytes..(batch + 1) * bytes];
            let stored = self.pool.store_actions(number, ActionTag::Array(leaf.dtype), batch);
            stored.expect("nothing is pending");
        }
        self.call(Call::Step);
    }

    /// Environment steps a second.
    #[expect(clippy::cast_precision_loss, reason = "counts of steps")]
    fn rate(&mut self, duration: Duration) -> f64 {
        let (start, mut batches) = (Instant::now(), 0);
        while start.elapsed() < duration {
            (0..ACTION_BATCHES).for_each(|batch| self.step(batch));
            batches += ACTION_BATCHES;
        }
        (batches * self.rows) as f64 / start.elapsed().as_secs_f64()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let id = arguments.next().unwrap_or_else(|| "CartPole-v1".to_owned());
    let seconds = arguments.next().map_or(0.5, |text| text.parse().expect("seconds"));
    let duration = Duration::from_secs_f64(seconds);
    let entry = find(&id).expect("a native environment");
    let recipe = entry.recipe("").expect("valid options");
    let max_episode_steps = entry.max_episode_steps;
    let columns = ["rows", "plain, steps/s", "in blocks", "pool", "of plain", "of blocks"];
    println!(
        "{:>6} {:>16} {:>16} {:>16} {:>9} {:>9}",
        columns[0], columns[1], columns[2], columns[3], columns[4], columns[5]
    );
    for rows in [1, 8, 64, 1024, 4096] {
        let plain = |blocks| {
            let loops = PlainLoops { rows, threads: 1, duration, max_episode_steps, blocks };
            entry.run_plain_loops("", &loops).expect("memory")
        };
        let mut pool = Stepped::new(recipe.as_ref(), rows, max_episode_steps);
        let mut rates = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            rates[0].push(plain(false));
            rates[1].push(plain(true));
            rates[2].push(pool.rate(duration));
        }
        let [plain, blocks, pool] = rates.map(median);
        print!("{rows:>6} {plain:>16.0} {blocks:>16.0} {pool:>16.0} ");
        println!("{:>9.2} {:>9.2}", pool / plain, pool / blocks);
    }
}
