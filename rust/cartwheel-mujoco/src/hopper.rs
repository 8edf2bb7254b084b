//! `Hopper`: a flat robot with one leg that hops.
//!
//! Source: Gymnasium 1.4.0, `mujoco/hopper_v5.py` (T. Erez, Y. Tassa, E. Todorov).
//!
//! | | |
//! |---|---|
//! | action | torques of three joints, −1 to 1; `float32[3]` |
//! | observation | positions without the first, velocities clipped to ±10; `float64[11]` |
//! | reward | (forward velocity + 1 if healthy) − 0.001 × the sum of squared actions |
//! | terminates | outside the healthy ranges of the state, the height and the angle |

use cartwheel::{Error, Failure, FloatsRef, Rng};

use crate::env::{Robot, Step};
use crate::model::{Model, Sizes};
use crate::observation::Observation;
use crate::options::{Fixed, NoiseScale, Range, Real, options};
use crate::planar::{self, Health, PlanarInfo};
use crate::stepper::{Stepper, VelocityNoise};

options! {
    /// Reward for a metre per second.
    _forward_reward_weight = forward_reward_weight: Real = 1.0,
    /// Cost of the sum of squared actions.
    _ctrl_cost_weight = ctrl_cost_weight: Real = 1e-3,
    /// Reward for a healthy step.
    _healthy_reward = healthy_reward: Real = 1.0,
    /// Whether an episode ends when the robot is unhealthy.
    _terminate_when_unhealthy = terminate_when_unhealthy: bool = true,
    /// Healthy values of all positions and velocities but the first two, without the ends.
    _healthy_state_range = healthy_state_range: Range = (-100.0, 100.0),
    /// Healthy heights, m, without the ends.
    _healthy_z_range = healthy_z_range: Range = (0.7, f64::INFINITY),
    /// Healthy angles, rad, without the ends.
    _healthy_angle_range = healthy_angle_range: Range = (-0.2, 0.2),
    /// Scale of the noise of initial positions (uniform) and velocities (uniform).
    _reset_noise_scale = reset_noise_scale: NoiseScale = 5e-3,
    /// Whether observations are without the position along the way.
    _exclude_current_positions_from_observation =
        exclude_current_positions_from_observation: Fixed<bool> = true,
}

/// A hopper.
#[derive(Debug)]
pub struct Hopper;

impl Options {
    fn health(&self, stepper: &Stepper) -> Health {
        let is_healthy = self.is_healthy(stepper);
        Health {
            reward: self.healthy_reward.if_python(is_healthy),
            terminated: !is_healthy && self.terminate_when_unhealthy,
        }
    }

    fn is_healthy(&self, stepper: &Stepper) -> bool {
        let Options { healthy_state_range, healthy_z_range, healthy_angle_range, .. } = self;
        let (qpos, qvel) = (stepper.qpos(), stepper.qvel());
        let mut state = qpos[2..].iter().chain(qvel);
        state.all(|&value| healthy_state_range.is_around(value))
            && healthy_z_range.is_around(qpos[1])
            && healthy_angle_range.is_around(qpos[2])
    }
}

impl Robot for Hopper {
    type Options = Options;
    type Info = PlanarInfo;

    fn observation_len(options: &Options, Sizes { nq, nv, .. }: Sizes) -> usize {
        nq + nv - usize::from(*options.exclude_current_positions_from_observation)
    }

    fn new(_: &Options, model: &Model) -> Result<Self, Error> {
        model.check_sizes(model.sizes.nq >= 3, "three positions")?;
        Ok(Self)
    }

    fn reset(
        &self,
        options: &Options,
        stepper: &mut Stepper,
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        stepper.reset(*options.reset_noise_scale, VelocityNoise::Uniform, rng)
    }

    fn reset_info(&self, stepper: &Stepper) -> PlanarInfo {
        planar::reset_info(stepper)
    }

    fn step(
        &self,
        options: &Options,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<PlanarInfo>, Failure> {
        let weights = [options.forward_reward_weight, options.ctrl_cost_weight];
        planar::step(stepper, action, weights, |stepper| options.health(stepper))
    }

    fn observe(&self, options: &Options, stepper: &Stepper, observation: Observation<'_>) {
        let first = usize::from(*options.exclude_current_positions_from_observation);
        planar::observe(first, stepper, observation);
    }
}
