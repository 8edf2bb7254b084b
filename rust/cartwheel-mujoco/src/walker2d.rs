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

use crate::planar::{Planar, planar_options};
use crate::stepper::Stepper;

planar_options! {
    reward: if_numpy,
    ranges: {
        /// Healthy heights, m, without the ends.
        _healthy_z_range = healthy_z_range: Range = (0.8, 2.0),
        /// Healthy angles, rad, without the ends.
        _healthy_angle_range = healthy_angle_range: Range = (-1.0, 1.0),
    }
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
