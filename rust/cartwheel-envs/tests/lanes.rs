//! Poles stepped with vector instructions equal poles stepped one at a time, to the last bit.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use cartwheel_engine::autoreset::{AutoresetMode, OnDone};
use cartwheel_engine::env::{Env, Parameter, ParameterValue};
use cartwheel_engine::memory::{Lease, Plan, bytes_of};
use cartwheel_engine::native::{AnyRecipe, Mailbox, Recipe, Request, RowReset, ShardSettings};
use cartwheel_engine::pool::{OnDeath, Policy, Pool, Workers};
use cartwheel_engine::protocol::Memory;
use cartwheel_engine::rng::Rng;
use cartwheel_engine::space::{ActionTag, DType};
use cartwheel_engine::wake::Scope;
use cartwheel_engine::{Call, Transition};
use cartwheel_envs::CartPole;

/// Two whole groups of lanes, a smaller one and a rest, in blocks of 64.
const ROWS: usize = 64 + 32 + 8 + 3;
const MODES: [AutoresetMode; 3] =
    [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled];

fn pool(autoreset: AutoresetMode) -> (Pool, Arc<Mailbox>) {
    let recipe = Recipe::<CartPole>::new("").unwrap();
    let settings = ShardSettings {
        autoreset,
        on_done: OnDone::Freeze,
        max_episode_steps: None,
        replacements: 0,
    };
    let (shard, mailbox) = recipe.shard(ROWS, settings).unwrap();
    let plan = Plan {
        observations: recipe.spaces().observation.leaves(),
        actions: recipe.spaces().action.leaves(),
        shards: vec![0..ROWS; 1],
        batch_size: ROWS,
        max_slabs: 2,
        info_bytes: 1 << 12,
    };
    let memory = Memory::new(plan, Scope::Private).unwrap();
    let policy = Policy {
        refuse_over: false,
        refuse_unstarted: true,
        on_death: OnDeath::Break,
        spin: false,
    };
    (Pool::new(memory, Workers::Inline(shard), policy).unwrap(), mailbox)
}

fn call(pool: &mut Pool, call: Call) -> Option<Lease> {
    pool.begin(call, 0).unwrap();
    pool.finish(call, None, &mut || false).unwrap().lease
}

fn set(pool: &mut Pool, mailbox: &Mailbox, name: &str, values: Vec<ParameterValue>) {
    mailbox.post_request(Request::Set(name.to_owned(), values));
    call(pool, Call::Call);
    mailbox.take_answer().unwrap().unwrap();
}

/// Observations and rewards of a batch, as bits.
fn bits(lease: &Lease) -> Vec<u8> {
    let layout = lease.layout();
    let mut observations = vec![0; 16 * ROWS];
    lease.read(layout.leaf_offset(0), &mut observations);
    let mut rewards = vec![0; 8 * ROWS];
    lease.read(layout.rewards_offset(), &mut rewards);
    [observations, rewards].concat()
}

/// The same rows, stepped by [`Env::step`] alone.
struct Singles {
    envs: Vec<(CartPole, Rng)>,
    over: [bool; ROWS],
    observations: [[f32; 4]; ROWS],
    mode: AutoresetMode,
}

impl Singles {
    fn new(mode: AutoresetMode) -> Self {
        let row = |row: usize| {
            let mut rng = Rng::from_seed(row as u64);
            let mut env = CartPole::new(&<CartPole as Env>::Options::default()).unwrap();
            env.reset(&mut rng, &<CartPole as Env>::ResetOptions::default());
            (env, rng)
        };
        let (over, observations) = ([false; ROWS], [[0.0; 4]; ROWS]);
        Self { envs: (0..ROWS).map(row).collect(), over, observations, mode }
    }

    fn step(&mut self, actions: &[i64]) -> Vec<u8> {
        let start = <CartPole as Env>::ResetOptions::default();
        let mut rewards = [0.0; ROWS];
        for (row, (env, rng)) in self.envs.iter_mut().enumerate() {
            let mut transition = Transition::RESET;
            match (self.mode, std::mem::take(&mut self.over[row])) {
                (AutoresetMode::Disabled, true) => {
                    self.over[row] = true;
                    continue; // it repeats its last observation
                }
                (_, true) => env.reset(rng, &start),
                (mode, false) => {
                    transition = env.step(actions[row], rng);
                    match mode {
                        AutoresetMode::SameStep if transition.terminated => env.reset(rng, &start),
                        _ => self.over[row] = transition.terminated,
                    }
                }
            }
            env.observe(&mut self.observations[row]);
            rewards[row] = transition.reward;
        }
        [bytes_of(&self.observations), bytes_of(&rewards)].concat()
    }
}

#[test]
fn lanes_and_single_rows_agree_in_every_mode() {
    for mode in MODES {
        let (mut pool, mailbox) = pool(mode);
        mailbox.post_reset((0..ROWS as u128).map(RowReset::Seed).collect(), None);
        call(&mut pool, Call::Reset);
        let (mut singles, mut rng) = (Singles::new(mode), Rng::from_seed(9));
        for step in 0..3000 {
            if step == 1000 {
                // Some rows get other constants, and some get angles that end an episode.
                let gravity = |row| if row % 17 == 3 { 4.9 } else { 9.8 };
                let tilted = |row| vec![0.1, 0.0, if row % 19 == 5 { 2.0 } else { -0.01 }, 0.3];
                let gravities = (0..ROWS).map(|row| ParameterValue::Float(gravity(row))).collect();
                set(&mut pool, &mailbox, "gravity", gravities);
                let states = (0..ROWS).map(|row| ParameterValue::Floats(tilted(row))).collect();
                set(&mut pool, &mailbox, "state", states);
                for (row, (env, _)) in singles.envs.iter_mut().enumerate() {
                    let mut set = |name: &str, value| {
                        Parameter::set(env.parameter_mut(name).unwrap(), value).unwrap();
                    };
                    set("gravity", ParameterValue::Float(gravity(row)));
                    set("state", ParameterValue::Floats(tilted(row)));
                }
            }
            if step == 2000 {
                // All rows get the standard constants again, and a value that is refused changes nothing.
                set(&mut pool, &mailbox, "gravity", vec![ParameterValue::Float(9.8); ROWS]);
                let refused = vec![ParameterValue::Text("9.8".to_owned()); ROWS];
                mailbox.post_request(Request::Set("gravity".to_owned(), refused));
                call(&mut pool, Call::Call);
                assert!(mailbox.take_answer().unwrap().is_err());
                for (env, _) in &mut singles.envs {
                    let gravity = env.parameter_mut("gravity").unwrap();
                    Parameter::set(gravity, ParameterValue::Float(9.8)).unwrap();
                }
            }
            let mut actions = [0; ROWS];
            rng.fill_integers(0..2, &mut actions);
            let stored =
                pool.store_actions(0, ActionTag::Array(DType::I64), bytes_of(&actions[..]));
            stored.unwrap();
            let lease = call(&mut pool, Call::Step).unwrap();
            assert!(bits(&lease) == singles.step(&actions), "step {step} in {mode:?}");
        }
    }
}
