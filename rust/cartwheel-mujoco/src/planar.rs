//! Flat robots that are rewarded for being healthy: `Hopper` and `Walker2d`.

use std::fmt::Debug;
use std::marker::PhantomData;

use cartwheel::{Error, Failure, FloatsRef};

use crate::env::{Robot, Step, info};
use crate::model::Model;
use crate::observation::Observation;
use crate::options::RobotOptions;
use crate::python_number::PythonNumber;
use crate::scalar::{Scalar, float64};
use crate::stepper::{Stepper, VelocityNoise};

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

/// Whether the robot is healthy after a step, and what it gets for it.
#[derive(Debug)]
pub struct Health {
    pub(crate) reward: Scalar,
    pub(crate) terminated: bool,
}

/// The keywords of a flat robot, and what it is healthy by.
pub trait PlanarOptions: RobotOptions {
    /// The weights of the velocity and of the controls.
    fn weights(&self) -> [PythonNumber; 2];

    /// Number of positions that an observation leaves out.
    fn hidden(&self) -> usize;

    /// The scale of the noise of initial positions and velocities.
    fn noise_scale(&self) -> f64;

    /// Its health after a step.
    fn health(&self, stepper: &Stepper) -> Health;
}

/// Makes the keywords of a flat robot: the ranges by which `Options::is_healthy` decides, and those that
/// all have. `reward` is the product of [`PythonNumber`] that the reward for being healthy is.
macro_rules! planar_options {
    (reward: $reward:ident, ranges: { $($ranges:tt)* }) => {
        use $crate::options::{Fixed, NoiseScale, Range};
        use $crate::python_number::PythonNumber;

        $crate::options::options! {
            /// Reward for a meter per second.
            _forward_reward_weight = forward_reward_weight: PythonNumber = 1.0,
            /// Cost of the sum of squared actions.
            _ctrl_cost_weight = ctrl_cost_weight: PythonNumber = 1e-3,
            /// Reward for a healthy step.
            _healthy_reward = healthy_reward: PythonNumber = 1.0,
            /// Whether an episode ends when the robot is unhealthy.
            _terminate_when_unhealthy = terminate_when_unhealthy: bool = true,
            $($ranges)*
            /// Scale of the noise of initial positions (uniform) and velocities (uniform).
            _reset_noise_scale = reset_noise_scale: NoiseScale = 5e-3,
            /// Whether observations are without the position along the way.
            _exclude_current_positions_from_observation =
                exclude_current_positions_from_observation: Fixed<bool> = true,
        }

        impl $crate::planar::PlanarOptions for Options {
            fn weights(&self) -> [PythonNumber; 2] {
                [self.forward_reward_weight, self.ctrl_cost_weight]
            }

            fn hidden(&self) -> usize {
                usize::from(*self.exclude_current_positions_from_observation)
            }

            fn noise_scale(&self) -> f64 {
                *self.reset_noise_scale
            }

            fn health(&self, stepper: &$crate::stepper::Stepper) -> $crate::planar::Health {
                let is_healthy = self.is_healthy(stepper);
                $crate::planar::Health {
                    reward: self.healthy_reward.$reward(is_healthy),
                    terminated: !is_healthy && self.terminate_when_unhealthy,
                }
            }
        }
    };
}

pub(crate) use planar_options;

/// A flat robot with these keywords.
#[derive(Debug)]
pub struct Planar<O>(PhantomData<O>);

impl<O: PlanarOptions> Robot for Planar<O> {
    type Options = O;
    type Info = PlanarInfo;

    fn hidden(options: &O) -> usize {
        options.hidden()
    }

    fn new(_: &O, model: &Model) -> Result<Self, Error> {
        model.check_sizes(model.sizes.nq >= 3, "three positions")?;
        Ok(Self(PhantomData))
    }

    fn reset_noise(options: &O) -> (f64, VelocityNoise) {
        (options.noise_scale(), VelocityNoise::Uniform)
    }

    fn reset_info(&self, stepper: &Stepper) -> PlanarInfo {
        PlanarInfo {
            x_position: float64(stepper.qpos()[0]),
            z_distance_from_origin: float64(stepper.qpos()[1] - stepper.init_qpos[1]),
            ..Default::default()
        }
    }

    fn step(
        &self,
        options: &O,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<PlanarInfo>, Failure> {
        let [forward_reward_weight, ctrl_cost_weight] = options.weights();
        let before = stepper.qpos()[0];
        stepper.step(action)?;
        let x_velocity = (stepper.qpos()[0] - before) / stepper.dt();
        let Health { reward: healthy_reward, terminated } = options.health(stepper);
        let forward_reward = *forward_reward_weight * x_velocity;
        let ctrl_cost = Scalar::sum_of_squares(action).times(ctrl_cost_weight);
        let info = PlanarInfo {
            x_velocity: float64(x_velocity),
            reward_forward: float64(forward_reward),
            reward_ctrl: Some(-ctrl_cost),
            reward_survive: Some(healthy_reward),
            ..self.reset_info(stepper)
        };
        let reward = (forward_reward + healthy_reward.wide()) - ctrl_cost.wide();
        Ok(Step { reward, terminated, info })
    }

    fn observe(&self, options: &O, stepper: &Stepper, mut observation: Observation<'_>) {
        observation.push(&stepper.qpos()[options.hidden()..]);
        observation.push_clipped(stepper.qvel(), CLIPPED);
    }
}
