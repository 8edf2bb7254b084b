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

use crate::planar::{Planar, planar_options};
use crate::stepper::Stepper;

planar_options! {
    reward: if_python,
    ranges: {
        /// Healthy values of all positions and velocities but the first two, without the ends.
        _healthy_state_range = healthy_state_range: Range = (-100.0, 100.0),
        /// Healthy heights, m, without the ends.
        _healthy_z_range = healthy_z_range: Range = (0.7, f64::INFINITY),
        /// Healthy angles, rad, without the ends.
        _healthy_angle_range = healthy_angle_range: Range = (-0.2, 0.2),
    }
}

/// A hopper.
pub type Hopper = Planar<Options>;

impl Options {
    fn is_healthy(&self, stepper: &Stepper) -> bool {
        let Options { healthy_state_range, healthy_z_range, healthy_angle_range, .. } = self;
        let (qpos, qvel) = (stepper.qpos(), stepper.qvel());
        let mut state = qpos[2..].iter().chain(qvel);
        state.all(|&value| healthy_state_range.is_around(value))
            && healthy_z_range.is_around(qpos[1])
            && healthy_angle_range.is_around(qpos[2])
    }
}
