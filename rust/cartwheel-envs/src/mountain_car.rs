//! MountainCar: the engine is too weak for the hill, so the car must swing up.
//!
//! Source: A. W. Moore, "Efficient memory-based learning for robot control" (1990), as in Gymnasium
//! 1.4.0, `classic_control/mountain_car.py`.
//!
//! | | |
//! |---|---|
//! | action | 0: accelerate left, 1: do not accelerate, 2: accelerate right |
//! | observation | position (m), velocity (m/step); `float32[2]` |
//! | reward | −1 for each step |
//! | terminates | position at least 0.5 with a velocity of at least `goal_velocity` |

use std::sync::Arc;

use cartwheel::{Env, Error, Failure, Rng, Space, Spaces, Standard, Transition, Tuned, options};

use crate::interval::interval;
use crate::numeric::{clip, integer};

#[cfg(target_arch = "x86_64")]
mod simd;

options! {
    /// Keywords, the same for both mountain cars.
    #[derive(Copy)]
    pub struct Options {
        /// Minimum velocity of the car at the goal.
        goal_velocity: f64,
    }
}

interval! {
    /// Range of the initial position: `reset(options={"low": …, "high": …})`.
    pub struct Start { of: "initial position", low: -0.6, high: -0.4 }
}

physics! {
    struct Physics {
        min_position: f64 = -1.2,
        max_position: f64 = 0.6,
        max_speed: f64 = 0.07,
        goal_position: f64 = 0.5,
        force: f64 = 0.001,
        gravity: f64 = 0.0025,
    }
}

/// A car in a valley.
#[derive(Debug, Clone)]
pub struct MountainCar {
    /// Position and velocity.
    state: [f64; 2],
    goal_velocity: f64,
    physics: Tuned<Physics>,
}

impl Env for MountainCar {
    type Options = Options;
    type ResetOptions = Start;
    type Action = i64;
    type Observation = [f32; 2];
    type Info = ();
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        let Physics { min_position, max_position, max_speed, .. } = *Physics::STANDARD;
        let observation = Space::float_box(&[min_position, -max_speed], &[max_position, max_speed]);
        Spaces { observation, action: Space::discrete(3) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        let Options { goal_velocity } = *options;
        Ok(Self { state: [0.0; 2], goal_velocity, physics: Tuned::default() })
    }

    #[inline]
    fn reset(&mut self, rng: &mut Rng, start: &Start) -> Result<(), Failure> {
        self.state = [rng.uniform(start.low, start.high), 0.0];
        Ok(())
    }

    #[inline]
    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        let Physics { min_position, max_position, max_speed, goal_position, force, gravity } =
            *self.physics;
        let [mut position, mut velocity] = self.state;
        velocity += integer(action - 1) * force + (3.0 * position).cos() * -gravity;
        velocity = clip(velocity, -max_speed, max_speed);
        position = clip(position + velocity, min_position, max_position);
        #[expect(clippy::float_cmp, reason = "the clipped position is that very number")]
        if position == min_position && velocity < 0.0 {
            velocity = 0.0;
        }
        self.state = [position, velocity];
        let terminated = position >= goal_position && velocity >= self.goal_velocity;
        Ok(Transition { reward: -1.0, terminated, truncated: false })
    }

    in_simd! {}

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "observations are rounded")]
    fn observe(&self, observation: &mut [f32; 2]) {
        *observation = self.state.map(|value| value as f32);
    }

    #[inline]
    fn info(&self) {}

    cartwheel::state! { state, goal_velocity, physics }

    cartwheel::parameters! {
        state: state,
        goal_velocity: goal_velocity,
        min_position: physics.min_position,
        max_position: physics.max_position,
        max_speed: physics.max_speed,
        goal_position: physics.goal_position,
        force: physics.force,
        gravity: physics.gravity,
    }

    fn parameters_changed(&mut self) {
        self.physics.settle();
    }
}
