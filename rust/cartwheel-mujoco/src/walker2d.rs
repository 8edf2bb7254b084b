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

use crate::env::{Robot, Step, info};
use crate::model::{Model, Sizes};
use crate::observation::Observation;
use crate::options::{Fixed, NoiseScale, Range, Real, options};
use crate::scalar::{Scalar, float64};
use crate::stepper::{Stepper, VelocityNoise};

/// The largest velocity of an observation, and the smallest, negative.
const CLIPPED: (f64, f64) = (-10.0, 10.0);

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

info! {
    /// The info of a walker.
    Walker2dInfo {
        /// Position, m.
        x_position: Scalar,
        /// Height above that of the initial state, m.
        z_distance_from_origin: Scalar,
        /// Velocity, m/s.
        x_velocity: Scalar,
        /// Reward for the velocity.
        reward_forward: Scalar,
        /// Cost of the action, negative.
        reward_ctrl: Scalar,
        /// Reward for being healthy.
        reward_survive: Scalar,
    }
}

/// A walker.
#[derive(Debug)]
pub struct Walker2d {
    options: Options,
}

impl Walker2d {
    fn is_healthy(&self, stepper: &Stepper) -> bool {
        let Options { healthy_z_range, healthy_angle_range, .. } = &self.options;
        let qpos = stepper.qpos();
        healthy_z_range.is_around(qpos[1]) && healthy_angle_range.is_around(qpos[2])
    }
}

impl Robot for Walker2d {
    type Options = Options;
    type Info = Walker2dInfo;

    fn observation_len(options: &Options, Sizes { nq, nv, .. }: Sizes) -> usize {
        nq + nv - usize::from(*options.exclude_current_positions_from_observation)
    }

    fn new(options: &Options, model: &Model) -> Result<Self, Error> {
        model.check_sizes(model.sizes.nq >= 3, "three positions")?;
        Ok(Self { options: options.clone() })
    }

    fn options(&self) -> &Options {
        &self.options
    }

    fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    fn reset(&self, stepper: &mut Stepper, rng: &mut Rng) -> Result<(), Failure> {
        stepper.reset(*self.options.reset_noise_scale, VelocityNoise::Uniform, rng)
    }

    fn reset_info(&self, stepper: &Stepper) -> Walker2dInfo {
        Walker2dInfo {
            x_position: float64(stepper.qpos()[0]),
            z_distance_from_origin: float64(stepper.qpos()[1] - stepper.init_qpos[1]),
            mujoco_warning: stepper.warning(),
            ..Default::default()
        }
    }

    fn step(
        &self,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<Walker2dInfo>, Failure> {
        let options = &self.options;
        let before = stepper.qpos()[0];
        stepper.step(action)?;
        let x_velocity = (stepper.qpos()[0] - before) / stepper.dt();
        let is_healthy = self.is_healthy(stepper);
        let forward_reward = *options.forward_reward_weight * x_velocity;
        let healthy_reward = options.healthy_reward.if_numpy(is_healthy);
        let ctrl_cost = Scalar::sum_of_squares(action).times(options.ctrl_cost_weight);
        let info = Walker2dInfo {
            x_velocity: float64(x_velocity),
            reward_forward: float64(forward_reward),
            reward_ctrl: Some(-ctrl_cost),
            reward_survive: Some(healthy_reward),
            ..self.reset_info(stepper)
        };
        Ok(Step {
            reward: (forward_reward + healthy_reward.wide()) - ctrl_cost.wide(),
            terminated: !is_healthy && options.terminate_when_unhealthy,
            info,
        })
    }

    fn observe(&self, stepper: &Stepper, mut observation: Observation<'_>) {
        let first = usize::from(*self.options.exclude_current_positions_from_observation);
        observation.push(&stepper.qpos()[first..]);
        observation.push_clipped(stepper.qvel(), CLIPPED);
    }
}
