//! Poles stepped with vector instructions equal poles stepped one at a time, to the last bit.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../cartwheel/tests/support/mod.rs"]
mod support;

use std::sync::Arc;

use cartwheel::{Env, InfoWriter, Parameter, ParameterValue, Rng, Transition};
use cartwheel_abi as abi;
use cartwheel_envs::{CartPole, PLUGIN};
use support::{Kind, Rows, find};

/// Two whole groups of lanes, a smaller one and a rest, in blocks of 64.
const ROWS: usize = 64 + 32 + 8 + 3;

/// What happens to rows that are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// They are reset instead of the next step.
    NextStep,
    /// They are left alone, among rows that step.
    Disabled,
}

/// Sets a parameter in every row; returns whether no row refused its value.
fn set(rows: &mut Rows<'_>, name: &str, value: impl Fn(usize) -> ParameterValue) -> bool {
    let mut all = true;
    for row in 0..ROWS {
        let mut bytes = InfoWriter::new();
        value(row).write(&mut bytes);
        all &= rows.set(row, name, bytes.stream()).is_ok();
    }
    all
}

/// The same rows, stepped by [`Env::step`] alone.
struct Singles {
    envs: Vec<(CartPole, Rng)>,
    over: [bool; ROWS],
    observations: [[f32; 4]; ROWS],
    mode: Mode,
}

impl Singles {
    fn new(mode: Mode) -> Self {
        let row = |row: usize| {
            let mut rng = Rng::from_seed(row as u64);
            let mut env =
                CartPole::new(&<CartPole as Env>::Options::default(), &Arc::new(())).unwrap();
            env.reset(&mut rng, &<CartPole as Env>::ResetOptions::default()).unwrap();
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
                (Mode::Disabled, true) => {
                    self.over[row] = true;
                    continue; // it repeats its last observation
                }
                (Mode::NextStep, true) => env.reset(rng, &start).unwrap(),
                (_, false) => {
                    transition = env.step(actions[row], rng).unwrap();
                    self.over[row] = transition.terminated;
                }
            }
            env.observe(&mut self.observations[row]);
            rewards[row] = transition.reward;
        }
        let observations = self.observations.as_flattened().iter().flat_map(|n| n.to_ne_bytes());
        observations.chain(rewards.iter().flat_map(|n| n.to_ne_bytes())).collect()
    }
}

#[test]
fn lanes_and_single_rows_agree_in_every_mode() {
    let float = ParameterValue::Float;
    for mode in [Mode::NextStep, Mode::Disabled] {
        let kind = Kind::with_defaults(find(&PLUGIN, "CartPole-v1"), "").unwrap();
        let mut rows = Rows::new(&kind, ROWS).unwrap();
        rows.all(abi::RESET);
        let (mut singles, mut rng) = (Singles::new(mode), Rng::from_seed(9));
        for step in 0..3000 {
            if step == 1000 {
                // Some rows get other constants, and some get angles that end an episode.
                let gravity = |row| if row % 17 == 3 { 4.9 } else { 9.8 };
                let tilted = |row| [0.1, 0.0, if row % 19 == 5 { 2.0 } else { -0.01 }, 0.3];
                assert!(set(&mut rows, "gravity", |row| float(gravity(row))));
                assert!(set(&mut rows, "state", |row| tilted(row).get()));
                for (row, (env, _)) in singles.envs.iter_mut().enumerate() {
                    let mut set = |name: &str, value| {
                        Parameter::set(env.parameter_mut(name).unwrap(), value).unwrap();
                    };
                    set("gravity", float(gravity(row)));
                    set("state", tilted(row).get());
                }
            }
            if step == 2000 {
                // All rows get the standard constants again, and a value that is refused changes nothing.
                assert!(set(&mut rows, "gravity", |_| float(9.8)));
                assert!(!set(&mut rows, "gravity", |_| ParameterValue::Text("9.8".to_owned())));
                for (env, _) in &mut singles.envs {
                    let gravity = env.parameter_mut("gravity").unwrap();
                    Parameter::set(gravity, float(9.8)).unwrap();
                }
            }
            let mut actions = [0; ROWS];
            rng.fill_integers(0..2, &mut actions);
            rows.actions.store(0, actions.map(i64::to_ne_bytes).as_flattened());
            for row in 0..ROWS {
                rows.commands[row] = match (mode, singles.over[row]) {
                    (_, false) => abi::STEP,
                    (Mode::NextStep, true) => abi::RESET,
                    (Mode::Disabled, true) => abi::LEAVE,
                };
                if rows.commands[row] == abi::LEAVE {
                    rows.rewards[row] = 0.0; // the host's, as for every row that is left alone
                }
            }
            rows.run();
            let rewards: Vec<u8> = rows.rewards.iter().flat_map(|n| n.to_ne_bytes()).collect();
            let bits = [rows.observations.leaf(0), rewards].concat();
            assert!(bits == singles.step(&actions), "step {step} in {mode:?}");
        }
    }
}
