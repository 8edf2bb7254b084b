//! `Walker2d`: a flat robot with two legs that walks.
//!
//! Source: Gymnasium 1.4.0, `mujoco/walker2d_v5.py` (T. Erez, Y. Tassa, E. Todorov).
//!
//! | | |
//! |---|---|
//! | action | torques of six joints, −1 to 1; `float32[6]` |
//! | observation | positions without the first, velocities clipped to ±10; `float64[17]` |
//! | reward | (forward velocity + 1 if healthy) − 0.001 × the sum of squared actions |
//! | terminates | outside the healthy ranges of the height and the angle |

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
    /// Healthy heights, m, without the ends.
    _healthy_z_range = healthy_z_range: Range = (0.8, 2.0),
    /// Healthy angles, rad, without the ends.
    _healthy_angle_range = healthy_angle_range: Range = (-1.0, 1.0),
    /// Scale of the noise of initial positions (uniform) and velocities (uniform).
    _reset_noise_scale = reset_noise_scale: NoiseScale = 5e-3,
    /// Whether observations are without the position along the way.
    _exclude_current_positions_from_observation =
        exclude_current_positions_from_observation: Fixed<bool> = true,
}

/// A walker.
#[derive(Debug)]
pub struct Walker2d;

impl Options {
    fn health(&self, stepper: &Stepper) -> Health {
        let is_healthy = self.is_healthy(stepper);
        Health {
            reward: self.healthy_reward.if_numpy(is_healthy),
            terminated: !is_healthy && self.terminate_when_unhealthy,
        }
    }

    fn is_healthy(&self, stepper: &Stepper) -> bool {
        let Options { healthy_z_range, healthy_angle_range, .. } = self;
        let qpos = stepper.qpos();
        healthy_z_range.is_around(qpos[1]) && healthy_angle_range.is_around(qpos[2])
    }
}

impl Robot for Walker2d {
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
