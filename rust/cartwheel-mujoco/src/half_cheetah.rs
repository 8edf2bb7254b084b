//! `HalfCheetah`: a flat robot with two legs that runs.
//!
//! Source: Gymnasium 1.4.0, `mujoco/half_cheetah_v5.py` (P. Wawrzyński).
//!
//! | | |
//! |---|---|
//! | action | torques of six joints, −1 to 1; `float32[6]` |
//! | observation | positions without the first, velocities; `float64[17]` |
//! | reward | forward velocity − 0.1 × the sum of squared actions |
//! | terminates | never |

use cartwheel::{Error, Failure, FloatsRef};

use crate::env::{Robot, Step, info};
use crate::model::Model;
use crate::options::{Fixed, NoiseScale, options};
use crate::python_number::PythonNumber;
use crate::scalar::{Scalar, float64};
use crate::stepper::{Stepper, VelocityNoise};

options! {
    /// Reward for a meter per second.
    _forward_reward_weight = forward_reward_weight: PythonNumber = 1.0,
    /// Cost of the sum of squared actions.
    _ctrl_cost_weight = ctrl_cost_weight: PythonNumber = 0.1,
    /// Scale of the noise of initial positions (uniform) and velocities (normal).
    _reset_noise_scale = reset_noise_scale: NoiseScale = 0.1,
    /// Whether observations are without the position along the way.
    _exclude_current_positions_from_observation =
        exclude_current_positions_from_observation: Fixed<bool> = true,
}

info! {
    /// The info of a half cheetah.
    HalfCheetahInfo {
        /// Position, m.
        x_position: Scalar,
        /// Velocity, m/s.
        x_velocity: Scalar,
        /// Reward for the velocity.
        reward_forward: Scalar,
        /// Cost of the action, negative.
        reward_ctrl: Scalar,
    }
}

/// A half cheetah.
#[derive(Debug)]
pub struct HalfCheetah;

impl Robot for HalfCheetah {
    type Options = Options;
    type Info = HalfCheetahInfo;

    fn hidden(options: &Options) -> usize {
        usize::from(*options.exclude_current_positions_from_observation)
    }

    fn new(_: &Options, model: &Model) -> Result<Self, Error> {
        model.check_sizes(model.sizes.nq >= 1, "a position")?;
        Ok(Self)
    }

    fn reset_noise(options: &Options) -> (f64, VelocityNoise) {
        (*options.reset_noise_scale, VelocityNoise::Normal)
    }

    fn reset_info(&self, stepper: &Stepper) -> HalfCheetahInfo {
        HalfCheetahInfo { x_position: float64(stepper.qpos()[0]), ..Default::default() }
    }

    fn step(
        &self,
        options: &Options,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<HalfCheetahInfo>, Failure> {
        let before = stepper.qpos()[0];
        stepper.step(action)?;
        let x_velocity = (stepper.qpos()[0] - before) / stepper.dt();
        let forward_reward = *options.forward_reward_weight * x_velocity;
        let ctrl_cost = Scalar::sum_of_squares(action).times(options.ctrl_cost_weight);
        let info = HalfCheetahInfo {
            x_velocity: float64(x_velocity),
            reward_forward: float64(forward_reward),
            reward_ctrl: Some(-ctrl_cost),
            ..self.reset_info(stepper)
        };
        Ok(Step { reward: forward_reward - ctrl_cost.wide(), terminated: false, info })
    }
}
