//! `Ant`: a robot with four legs that runs.
//!
//! Source: Gymnasium 1.4.0, `mujoco/ant_v5.py` (J. Schulman, P. Moritz, S. Levine, M. Jordan,
//! P. Abbeel).
//!
//! | | |
//! |---|---|
//! | action | torques of eight joints, −1 to 1; `float32[8]` |
//! | observation | positions without the first two, velocities, contact forces; `float64[105]` |
//! | reward | (forward velocity + 1 if healthy) − (0.5 × the sum of squared actions + 0.0005 × that of clipped contact forces) |
//! | terminates | when the state is not finite, or the height is outside 0.2 m to 1 m |

use cartwheel::{Error, Failure, FloatsRef};
use cartwheel_envs::numeric::clip;

use crate::env::{Robot, Step, info};
use crate::model::{Model, Sizes};
use crate::numeric::sum_of_squares_of;
use crate::observation::Observation;
use crate::options::{Fixed, NoiseScale, Range, options};
use crate::python_number::PythonNumber;
use crate::scalar::{Scalar, float64};
use crate::stepper::{Stepper, VelocityNoise};

options! {
    /// Reward for a meter per second.
    _forward_reward_weight = forward_reward_weight: PythonNumber = 1_i64,
    /// Cost of the sum of squared actions.
    _ctrl_cost_weight = ctrl_cost_weight: PythonNumber = 0.5,
    /// Cost of the sum of squared contact forces.
    _contact_cost_weight = contact_cost_weight: PythonNumber = 5e-4,
    /// Reward for a healthy step.
    _healthy_reward = healthy_reward: PythonNumber = 1.0,
    /// The body whose velocity is rewarded, by its number.
    _main_body = main_body: Fixed<usize> = 1,
    /// Whether an episode ends when the robot is unhealthy.
    _terminate_when_unhealthy = terminate_when_unhealthy: bool = true,
    /// Healthy heights, m, with the ends.
    _healthy_z_range = healthy_z_range: Range = (0.2, 1.0),
    /// Contact forces are clipped to this range.
    _contact_force_range = contact_force_range: Range = (-1.0, 1.0),
    /// Scale of the noise of initial positions (uniform) and velocities (normal).
    _reset_noise_scale = reset_noise_scale: NoiseScale = 0.1,
    /// Whether observations are without the position in the plane.
    _exclude_current_positions_from_observation =
        exclude_current_positions_from_observation: Fixed<bool> = true,
    /// Whether observations have the contact forces.
    _include_cfrc_ext_in_observation = include_cfrc_ext_in_observation: Fixed<bool> = true,
}

info! {
    /// The info of an ant.
    AntInfo {
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
        /// Cost of contacts, negative.
        reward_contact: Scalar,
        /// Reward for being healthy.
        reward_survive: Scalar,
    }
}

/// An ant.
#[derive(Debug)]
pub struct Ant;

impl Options {
    fn is_healthy(&self, stepper: &Stepper) -> bool {
        let (low, high) = self.healthy_z_range.ends();
        let (qpos, qvel) = (stepper.qpos(), stepper.qvel());
        qpos.iter().chain(qvel).all(|value| value.is_finite()) && low <= qpos[2] && qpos[2] <= high
    }

    /// Position of the main body in the plane.
    fn body_xy(&self, stepper: &Stepper) -> [f64; 2] {
        let [x, y, _] = stepper.body_position(*self.main_body);
        [x, y]
    }
}

impl Robot for Ant {
    type Options = Options;
    type Info = AntInfo;

    fn hidden(options: &Options) -> usize {
        2 * usize::from(*options.exclude_current_positions_from_observation)
    }

    fn observation_len(options: &Options, Sizes { nq, nv, nbody, .. }: Sizes) -> usize {
        let forces = if *options.include_cfrc_ext_in_observation { 6 * (nbody - 1) } else { 0 };
        nq + nv + forces - Self::hidden(options)
    }

    fn new(options: &Options, model: &Model) -> Result<Self, Error> {
        let Sizes { nq, nbody, .. } = model.sizes;
        model.check_sizes(nq >= 3 && nbody >= 1, "three positions and a body")?;
        if *options.main_body >= nbody {
            return Err(Error::bad_options(format!(
                "main_body must be below {nbody}, the number of bodies, got {}",
                *options.main_body
            )));
        }
        Ok(Self)
    }

    fn reset_noise(options: &Options) -> (f64, VelocityNoise) {
        (*options.reset_noise_scale, VelocityNoise::Normal)
    }

    fn reset_info(&self, stepper: &Stepper) -> AntInfo {
        let [x, y] = stepper.xy();
        AntInfo {
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
    ) -> Result<Step<AntInfo>, Failure> {
        let before = options.body_xy(stepper);
        stepper.step(action)?;
        let [x_velocity, y_velocity] = stepper.velocity(before, options.body_xy(stepper));
        let is_healthy = options.is_healthy(stepper);
        let forward_reward = x_velocity * *options.forward_reward_weight;
        let healthy_reward = options.healthy_reward.if_numpy(is_healthy);
        let ctrl_cost = Scalar::sum_of_squares(action).times(options.ctrl_cost_weight);
        let (low, high) = options.contact_force_range.ends();
        let forces = sum_of_squares_of(&stepper.cfrc_ext, |force| clip(force, low, high));
        let contact_cost = *options.contact_cost_weight * forces;
        let rewards = forward_reward + healthy_reward.wide();
        let info = AntInfo {
            x_velocity: float64(x_velocity),
            y_velocity: float64(y_velocity),
            reward_forward: float64(forward_reward),
            reward_ctrl: Some(-ctrl_cost),
            reward_contact: float64(-contact_cost),
            reward_survive: Some(healthy_reward),
            ..self.reset_info(stepper)
        };
        Ok(Step {
            reward: rewards - (ctrl_cost.wide() + contact_cost),
            terminated: !is_healthy && options.terminate_when_unhealthy,
            info,
        })
    }

    fn observe(&self, options: &Options, stepper: &Stepper, mut observation: Observation<'_>) {
        observation.push(&stepper.qpos()[Self::hidden(options)..]);
        observation.push(stepper.qvel());
        if *options.include_cfrc_ext_in_observation {
            observation.push_clipped(&stepper.cfrc_ext[6..], options.contact_force_range.ends());
        }
    }
}
