//! What `Hopper` and `Walker2d` share: rewards, infos and observations of flat robots.

use cartwheel::{Failure, FloatsRef};

use crate::env::{Step, info};
use crate::observation::Observation;
use crate::options::Real;
use crate::scalar::{Scalar, float64};
use crate::stepper::Stepper;

/// The largest velocity of an observation, and the smallest, negative.
const CLIPPED: (f64, f64) = (-10.0, 10.0);

info! {
    /// The info of a flat robot.
    PlanarInfo {
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

/// `_get_reset_info`.
pub(crate) fn reset_info(stepper: &Stepper) -> PlanarInfo {
    PlanarInfo {
        x_position: float64(stepper.qpos()[0]),
        z_distance_from_origin: float64(stepper.qpos()[1] - stepper.init_qpos[1]),
        ..Default::default()
    }
}

/// Whether the robot is healthy after a step, and what it gets for it.
pub(crate) struct Health {
    pub(crate) reward: Scalar,
    pub(crate) terminated: bool,
}

/// `step`.
///
/// # Errors
///
/// MuJoCo's.
pub(crate) fn step(
    stepper: &mut Stepper,
    action: FloatsRef<'_>,
    [forward_reward_weight, ctrl_cost_weight]: [Real; 2],
    health: impl FnOnce(&Stepper) -> Health,
) -> Result<Step<PlanarInfo>, Failure> {
    let before = stepper.qpos()[0];
    stepper.step(action)?;
    let x_velocity = (stepper.qpos()[0] - before) / stepper.dt();
    let Health { reward: healthy_reward, terminated } = health(stepper);
    let forward_reward = *forward_reward_weight * x_velocity;
    let ctrl_cost = Scalar::sum_of_squares(action).times(ctrl_cost_weight);
    let info = PlanarInfo {
        x_velocity: float64(x_velocity),
        reward_forward: float64(forward_reward),
        reward_ctrl: Some(-ctrl_cost),
        reward_survive: Some(healthy_reward),
        ..reset_info(stepper)
    };
    let reward = (forward_reward + healthy_reward.wide()) - ctrl_cost.wide();
    Ok(Step { reward, terminated, info })
}

/// `_get_obs`: the positions from this one on, and the velocities.
pub(crate) fn observe(first: usize, stepper: &Stepper, mut observation: Observation<'_>) {
    observation.push(&stepper.qpos()[first..]);
    observation.push_clipped(stepper.qvel(), CLIPPED);
}
