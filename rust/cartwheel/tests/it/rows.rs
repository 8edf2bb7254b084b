//! A simple environment through its table.

use std::sync::Arc;

use cartwheel::{Env, Error, Failure, NoOptions, Rng, Space, Spaces, Transition};

use crate::support::{HostKind, HostRows, find};

struct Corridor {
    length: f32,
    position: f32,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Options {
    extra: f32,
}

impl cartwheel::EnvOptions for Options {}

impl Env for Corridor {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = [f32; 1];
    type Info = ();
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        let observation = Space::float_box(&[0.0], &[f64::INFINITY]);
        Spaces { observation, action: Space::discrete(2) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self { length: 3.0 + options.extra, position: 0.0 })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.position = rng.random_f32();
        Ok(())
    }

    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.position += if action == 1 { 1.0 } else { -1.0 };
        let terminated = self.position >= self.length;
        Ok(Transition { reward: -1.0, terminated, truncated: false })
    }

    fn observe(&self, observation: &mut [f32; 1]) {
        observation[0] = self.position;
    }

    fn info(&self) {}
}

cartwheel::table! {
    static PLUGIN {
        "simple/Corridor-v0" => Corridor { max_episode_steps: 7 },
    }
}

#[test]
fn rows_step_reset_show_and_stay() {
    let kind = HostKind::new(find(&PLUGIN, "simple/Corridor-v0"), "{}").unwrap();
    let mut rows = HostRows::new(&kind, 3).unwrap();
    rows.all(cartwheel_abi::RESET);
    let positions = |rows: &HostRows<'_>| -> Vec<f32> {
        rows.observations
            .leaf(0)
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_ne_bytes(*b))
            .collect()
    };
    let starts: Vec<f32> = (0..3).map(|seed| Rng::from_seed(seed).random_f32()).collect();
    assert_eq!(positions(&rows), starts);
    assert_eq!(
        (rows.rewards.as_slice(), rows.terminations.as_slice()),
        ([0.0; 3].as_slice(), [0; 3].as_slice())
    );
    rows.actions.store(0, &[1_i64, 0, 1].map(i64::to_ne_bytes).concat());
    rows.observations.fill(0x5a);
    rows.commands = vec![cartwheel_abi::STEP, cartwheel_abi::SHOW, cartwheel_abi::LEAVE];
    rows.run();
    let untouched = f32::from_ne_bytes([0x5a; 4]);
    assert_eq!(positions(&rows), [starts[0] + 1.0, starts[1], untouched]);
    assert_eq!(rows.rewards, [-1.0, 0.0, 0.0]);
}
