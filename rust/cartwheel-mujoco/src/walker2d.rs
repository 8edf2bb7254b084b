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

use crate::options::{Fixed, NoiseScale, Range, options};
use crate::planar::{Health, Planar, PlanarOptions};
use crate::python_number::PythonNumber;
use crate::stepper::Stepper;

options! {
    /// Reward for a meter per second.
    _forward_reward_weight = forward_reward_weight: PythonNumber = 1.0,
    /// Cost of the sum of squared actions.
    _ctrl_cost_weight = ctrl_cost_weight: PythonNumber = 1e-3,
    /// Reward for a healthy step.
    _healthy_reward = healthy_reward: PythonNumber = 1.0,
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
pub type Walker2d = Planar<Options>;

impl Options {
    fn is_healthy(&self, stepper: &Stepper) -> bool {
        let Options { healthy_z_range, healthy_angle_range, .. } = self;
        let qpos = stepper.qpos();
        healthy_z_range.is_around(qpos[1]) && healthy_angle_range.is_around(qpos[2])
    }
}

impl PlanarOptions for Options {
    fn weights(&self) -> [PythonNumber; 2] {
        [self.forward_reward_weight, self.ctrl_cost_weight]
    }

    fn hidden(&self) -> usize {
        usize::from(*self.exclude_current_positions_from_observation)
    }

    fn noise_scale(&self) -> f64 {
        *self.reset_noise_scale
    }

    fn health(&self, stepper: &Stepper) -> Health {
        let is_healthy = self.is_healthy(stepper);
        Health {
            reward: self.healthy_reward.if_numpy(is_healthy),
            terminated: !is_healthy && self.terminate_when_unhealthy,
        }
    }
}
