//! `Humanoid`: a robot with two legs and two arms that walks.
//!
//! Source: Gymnasium 1.4.0, `mujoco/humanoid_v5.py` (Y. Tassa, T. Erez, E. Todorov).
//!
//! | | |
//! |---|---|
//! | action | torques of 17 joints, −0.4 to 0.4; `float32[17]` |
//! | observation | positions without the first two, velocities, inertias and velocities of bodies, forces of actuators, contact forces; `float64[348]` |
//! | reward | (1.25 × forward velocity + 5 if healthy) − (0.1 × the sum of squared controls + 5e-7 × that of contact forces, at most 10) |
//! | terminates | when the height is outside 1 m to 2 m |

use cartwheel::{Error, Failure, FloatsRef};
use cartwheel_envs::numeric::clip;

use crate::body_observation::{body_options, check_body};
use crate::env::{Robot, Step, info};
use crate::model::{Model, Sizes};
use crate::numeric::{sum, sum_of_squares};
use crate::observation::Observation;
use crate::options::{NoiseScale, Range};
use crate::python_number::PythonNumber;
use crate::scalar::{Scalar, float64};
use crate::stepper::{Stepper, VelocityNoise};

body_options! {
    /// Reward for a meter per second.
    _forward_reward_weight = forward_reward_weight: PythonNumber = 1.25,
    /// Cost of the sum of squared controls.
    _ctrl_cost_weight = ctrl_cost_weight: PythonNumber = 0.1,
    /// Cost of the sum of squared contact forces.
    _contact_cost_weight = contact_cost_weight: PythonNumber = 5e-7,
    /// The cost of contacts is clipped to this range.
    _contact_cost_range = contact_cost_range: Range = (f64::NEG_INFINITY, 10.0),
    /// Reward for a healthy step.
    _healthy_reward = healthy_reward: PythonNumber = 5.0,
    /// Whether an episode ends when the robot is unhealthy.
    _terminate_when_unhealthy = terminate_when_unhealthy: bool = true,
    /// Healthy heights, m, without the ends.
    _healthy_z_range = healthy_z_range: Range = (1.0, 2.0),
    /// Scale of the noise of initial positions (uniform) and velocities (uniform).
    _reset_noise_scale = reset_noise_scale: NoiseScale = 1e-2,
}

info! {
    /// The info of a humanoid.
    HumanoidInfo {
        /// Position, m.
        x_position: Scalar,
        /// Position, m.
        y_position: Scalar,
        /// Lengths of the tendons, m.
        tendon_length: Vec<f64>,
        /// Velocities of the tendons, m/s.
        tendon_velocity: Vec<f64>,
        /// Distance from the origin, m.
        distance_from_origin: Scalar,
        /// Velocity of the center of mass, m/s.
        x_velocity: Scalar,
        /// Velocity of the center of mass, m/s.
        y_velocity: Scalar,
        /// Reward for being healthy.
        reward_survive: Scalar,
        /// Reward for the velocity.
        reward_forward: Scalar,
        /// Cost of the controls, negative.
        reward_ctrl: Scalar,
        /// Cost of contacts, negative.
        reward_contact: Scalar,
    }
}

/// A humanoid.
#[derive(Debug)]
pub struct Humanoid;

/// The center of mass in the plane: `mass_center`.
fn mass_center(stepper: &Stepper) -> [f64; 2] {
    let mut moment = [0.0; 2];
    let (positions, _) = stepper.xipos.as_chunks::<3>();
    for (mass, [x, y, _]) in stepper.body_mass.iter().zip(positions) {
        moment[0] += mass * x;
        moment[1] += mass * y;
    }
    let mass = sum(&stepper.body_mass);
    moment.map(|moment| moment / mass)
}

impl Robot for Humanoid {
    type Options = Options;
    type Info = HumanoidInfo;

    fn observation_len(options: &Options, sizes: Sizes) -> usize {
        options.parts().len(sizes)
    }

    fn new(_: &Options, model: &Model) -> Result<Self, Error> {
        check_body(model)?;
        Ok(Self)
    }

    fn reset_noise(options: &Options) -> (f64, VelocityNoise) {
        (*options.reset_noise_scale, VelocityNoise::Uniform)
    }

    fn reset_info(&self, stepper: &Stepper) -> HumanoidInfo {
        let [x, y] = stepper.xy();
        HumanoidInfo {
            x_position: float64(x),
            y_position: float64(y),
            tendon_length: Some(stepper.ten_length.to_vec()),
            tendon_velocity: Some(stepper.ten_velocity.to_vec()),
            distance_from_origin: float64(stepper.norm([x, y])),
            ..Default::default()
        }
    }

    fn step(
        &self,
        options: &Options,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<HumanoidInfo>, Failure> {
        let before = mass_center(stepper);
        stepper.step(action)?;
        let [x_velocity, y_velocity] = stepper.velocity(before, mass_center(stepper));
        let is_healthy = options.healthy_z_range.is_around(stepper.qpos()[2]);
        let forward_reward = *options.forward_reward_weight * x_velocity;
        let healthy_reward = options.healthy_reward.if_numpy(is_healthy);
        let ctrl_cost = *options.ctrl_cost_weight * sum_of_squares(&stepper.ctrl);
        let contact_cost = *options.contact_cost_weight * sum_of_squares(&stepper.cfrc_ext);
        let (low, high) = options.contact_cost_range.ends();
        let contact_cost = clip(contact_cost, low, high);
        let rewards = forward_reward + healthy_reward.wide();
        let info = HumanoidInfo {
            x_velocity: float64(x_velocity),
            y_velocity: float64(y_velocity),
            reward_survive: Some(healthy_reward),
            reward_forward: float64(forward_reward),
            reward_ctrl: float64(-ctrl_cost),
            reward_contact: float64(-contact_cost),
            ..self.reset_info(stepper)
        };
        Ok(Step {
            reward: rewards - (ctrl_cost + contact_cost),
            terminated: !is_healthy && options.terminate_when_unhealthy,
            info,
        })
    }

    fn observe(&self, options: &Options, stepper: &Stepper, observation: Observation<'_>) {
        options.parts().observe(stepper, observation);
    }
}
