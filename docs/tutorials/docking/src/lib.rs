//! A boat that docks against the wind.

use std::sync::Arc;

use cartwheel::{Env, Error, Failure, NoOptions, Rng, Space, Spaces, Transition};

cartwheel::options! {
    /// Keywords of `make_vec`.
    pub struct Options {
        /// The force of the wind, in newtons.
        wind: f32 = 0.3,
    }
}

/// Come to rest at the dock, against a wind that changes with every episode.
pub struct Docking {
    strength: f32,
    wind: f32,
    position: f32,
    speed: f32,
}

impl Env for Docking {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Shared = ();
    type Action = i64;
    type Observation = [f32; 3];
    type Info = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        let infinite = [f64::INFINITY; 3];
        Spaces { observation: Space::symmetric_box(&infinite), action: Space::discrete(3) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        if options.wind < 0.0 {
            return Err(Error::bad_options(format!("`wind` is negative: {}", options.wind)));
        }
        Ok(Self { strength: options.wind, wind: 0.0, position: 0.0, speed: 0.0 })
    }

    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.wind = self.strength * (2.0 * rng.random_f32() - 1.0);
        self.position = 2.0 * rng.random_f32() - 1.0;
        self.speed = 0.0;
        Ok(())
    }

    /// Backs, drifts or goes ahead, for a tenth of a second.
    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        self.speed += 0.1 * ((action - 1) as f32 + self.wind);
        self.position += 0.1 * self.speed;
        let docked = self.position.abs() < 0.05 && self.speed.abs() < 0.1;
        let reward = if docked { 0.0 } else { -1.0 };
        Ok(Transition { reward, terminated: docked, truncated: false })
    }

    fn observe(&self, observation: &mut [f32; 3]) {
        *observation = [self.position, self.speed, self.wind];
    }

    fn info(&self) {}

    cartwheel::state! { wind, position, speed }
}

cartwheel::plugin! { docking {
    "docking/Docking-v0" => Docking { max_episode_steps: 200 },
} }
