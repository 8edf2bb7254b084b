//! How fast `CartPole` is on one core: a plain loop over environments, and the same through a pool.
//!
//! ```text
//! cargo run --release -p cartwheel-envs --example plain_loop [seconds a measurement]
//! ```
//!
//! The plain loop is the ceiling: it steps, resets what is over and stores observations, rewards and
//! flags in vectors, with no interface at all. The pool does the same in its inline executor, with
//! slabs, leases, autoreset machine and acknowledgements. Both in turns, medians of seven rounds.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::hint::black_box;
use std::num::NonZero;
use std::time::{Duration, Instant};

use cartwheel::autoreset::{AutoresetMode, OnDone};
use cartwheel::env::Env;
use cartwheel::error::Call;
use cartwheel::memory::{ActionTag, Memory, Plan, Scope, bytes_of};
use cartwheel::native::{AnyRecipe, Recipe, Settings};
use cartwheel::pool::{Policy, Pool, Workers};
use cartwheel::rng::Rng;
use cartwheel::space::DType;
use cartwheel_envs::CartPole;

const LIMIT: u32 = 500;
const ROUNDS: usize = 7;

/// Actions without a pattern, one batch after another.
fn actions(rows: usize) -> Vec<i64> {
    let mut rng = Rng::from_seed(7);
    (0..rows * 64).map(|_| rng.integers(0..2)).collect()
}

struct Plain {
    envs: Vec<(CartPole, u32)>,
    rngs: Vec<Rng>,
    observations: Vec<[f32; 4]>,
    rewards: Vec<f64>,
    flags: Vec<[bool; 2]>,
}

impl Plain {
    fn new(rows: usize) -> Self {
        let env = CartPole::new(&<CartPole as Env>::Options::default()).expect("valid options");
        let mut rngs: Vec<_> = (0..rows as u64).map(Rng::from_seed).collect();
        let mut envs = vec![(env, 0); rows];
        for ((env, _), rng) in envs.iter_mut().zip(&mut rngs) {
            env.reset(rng, &<CartPole as Env>::ResetOptions::default());
        }
        let (rewards, flags) = (vec![0.0; rows], vec![[false; 2]; rows]);
        Self { envs, rngs, observations: vec![[0.0; 4]; rows], rewards, flags }
    }

    fn step(&mut self, actions: &[i64]) {
        let start = <CartPole as Env>::ResetOptions::default();
        let rows = self.envs.iter_mut().zip(&mut self.rngs).zip(actions);
        let places = self.observations.iter_mut().zip(&mut self.rewards).zip(&mut self.flags);
        for ((((env, steps), rng), &action), ((observation, reward), flags)) in rows.zip(places) {
            let transition = env.step(action, rng);
            *steps += 1;
            *reward = transition.reward;
            *flags = [transition.terminated, *steps >= LIMIT];
            if transition.terminated || *steps >= LIMIT {
                env.reset(rng, &start);
                *steps = 0;
            }
            env.observe(observation);
        }
        black_box(&mut self.observations);
    }
}

fn pool(rows: usize) -> Pool {
    let recipe = Recipe::<CartPole>::new("").expect("valid options");
    let autoreset = AutoresetMode::NextStep;
    let settings =
        Settings { autoreset, on_done: OnDone::Raise, max_episode_steps: NonZero::new(LIMIT) };
    let (shard, _) = recipe.shard(rows, settings).expect("a shard");
    let plan = Plan {
        observations: recipe.spaces().observation.leaves(),
        actions: recipe.spaces().action.leaves(),
        shards: vec![0..rows; 1],
        batch_size: rows,
        max_slabs: 8,
        info_bytes: 1 << 16,
    };
    let memory = Memory::new(plan, Scope::Private).expect("memory");
    let policy = Policy { refuse_over: false, spin: false };
    let mut pool = Pool::new(memory, Workers::Inline(shard), policy).expect("a pool");
    call(&mut pool, Call::Reset);
    pool
}

fn call(pool: &mut Pool, call: Call) {
    pool.begin(call, 0).expect("nothing is pending");
    drop(black_box(pool.finish(call, None, &mut || false).expect("rows never fail")));
}

/// Steps a second of `step`, which takes the number of the batch of actions.
#[expect(clippy::cast_precision_loss, reason = "counts of steps")]
fn measure(rows: usize, duration: Duration, mut step: impl FnMut(usize)) -> f64 {
    let (start, mut batches) = (Instant::now(), 0);
    while start.elapsed() < duration {
        (0..64).for_each(&mut step);
        batches += 64;
    }
    (batches * rows) as f64 / start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(0.5, |text| text.parse().expect("seconds"));
    let duration = Duration::from_secs_f64(seconds);
    println!("{:>6} {:>16} {:>16} {:>7}", "rows", "plain, steps/s", "pool, steps/s", "ratio");
    for rows in [1, 8, 64, 1024, 4096] {
        let actions = actions(rows);
        let (mut plain, mut pool) = (Plain::new(rows), pool(rows));
        let (mut plain_speeds, mut pool_speeds) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            plain_speeds.push(measure(rows, duration, |batch| {
                plain.step(&actions[batch * rows..(batch + 1) * rows]);
            }));
            pool_speeds.push(measure(rows, duration, |batch| {
                let batch = bytes_of(&actions[batch * rows..(batch + 1) * rows]);
                let stored = pool.store_actions(0, ActionTag::Array(DType::I64), batch);
                stored.expect("nothing is pending");
                call(&mut pool, Call::Step);
            }));
        }
        let (plain, pool) = (median(plain_speeds), median(pool_speeds));
        println!("{rows:>6} {plain:>16.0} {pool:>16.0} {:>7.2}", pool / plain);
    }
}
