//! `Swimmer`: a chain of rods in a thick fluid, in the plane.
//!
//! Source: Gymnasium 1.4.0, `mujoco/swimmer_v5.py` (R. Coulom).
//!
//! | | |
//! |---|---|
//! | action | torques of two joints, −1 to 1; `float32[2]` |
//! | observation | positions without the first two, velocities; `float64[8]` |
//! | reward | forward velocity − 0.0001 × the sum of squared actions |
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
    _ctrl_cost_weight = ctrl_cost_weight: PythonNumber = 1e-4,
    /// Scale of the noise of initial positions (uniform) and velocities (uniform).
    _reset_noise_scale = reset_noise_scale: NoiseScale = 0.1,
    /// Whether observations are without the position in the plane.
    _exclude_current_positions_from_observation =
        exclude_current_positions_from_observation: Fixed<bool> = true,
}

info! {
    /// The info of a swimmer.
    SwimmerInfo {
        /// Position, m.
        x_position: Scalar,
        /// Position, m.
        y_position: Scalar,
        /// Distance from the origin, m.
        distance_from_origin: Scalar,
        /// Velocity, m/s.
        x_velocity: Scalar,
        /// Velocity, m/s.
        y_velocity: Scalar,
        /// Reward for the velocity.
        reward_forward: Scalar,
        /// Cost of the action, negative.
        reward_ctrl: Scalar,
    }
}

/// A swimmer.
#[derive(Debug)]
pub struct Swimmer;

impl Robot for Swimmer {
    type Options = Options;
    type Info = SwimmerInfo;

    fn hidden(options: &Options) -> usize {
        2 * usize::from(*options.exclude_current_positions_from_observation)
    }

    fn new(_: &Options, model: &Model) -> Result<Self, Error> {
        model.check_sizes(model.sizes.nq >= 2, "two positions")?;
        Ok(Self)
    }

    fn reset_noise(options: &Options) -> (f64, VelocityNoise) {
        (*options.reset_noise_scale, VelocityNoise::Uniform)
    }

    fn reset_info(&self, stepper: &Stepper) -> SwimmerInfo {
        let [x, y] = stepper.xy();
        SwimmerInfo {
            x_position: float64(x),
            y_position: float64(y),
            distance_from_origin: float64(stepper.norm([x, y])),
            ..Default::default()
        }
    }

    fn step(
        &self,
        options: &Options,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<SwimmerInfo>, Failure> {
        let before = stepper.xy();
        stepper.step(action)?;
        let [x_velocity, y_velocity] = stepper.velocity(before, stepper.xy());
        let forward_reward = *options.forward_reward_weight * x_velocity;
        let ctrl_cost = Scalar::sum_of_squares(action).times(options.ctrl_cost_weight);
        let info = SwimmerInfo {
            x_velocity: float64(x_velocity),
            y_velocity: float64(y_velocity),
            reward_forward: float64(forward_reward),
            reward_ctrl: Some(-ctrl_cost),
            ..self.reset_info(stepper)
        };
        Ok(Step { reward: forward_reward - ctrl_cost.wide(), terminated: false, info })
    }
}
