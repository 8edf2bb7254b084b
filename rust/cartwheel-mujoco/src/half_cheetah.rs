//! `HalfCheetah`: a flat two-legged robot that runs.
//!
//! Source: Gymnasium 1.4.0, `mujoco/half_cheetah_v5.py` (P. Wawrzyński 2009).
//!
//! | | |
//! |---|---|
//! | action | torques of six joints, −1 to 1; `float32[6]` |
//! | observation | positions without the first, velocities; `float64[17]` |
//! | reward | forward velocity − 0.1 × the sum of squared actions |
//! | terminates | never |

use cartwheel::{Error, Failure, Rng, Transition};

use crate::env::{Robot, robot};
use crate::model::Sizes;
use crate::observation::Observation;
use crate::options::{Fixed, NoiseScale, Real, options};
use crate::scalar::Scalar;
use crate::stepper::{Stepper, VelocityNoise};

options! {
    /// Reward for a metre per second.
    forward_reward_weight: Real = 1.0,
    /// Cost of the sum of squared actions.
    ctrl_cost_weight: Real = 0.1,
    /// Scale of the noise of initial positions (uniform) and velocities (normal).
    reset_noise_scale: NoiseScale = 0.1,
    /// Whether observations are without the position along the way.
    exclude_current_positions_from_observation: Fixed<bool> = true,
}

cartwheel::info! {
    /// The info of a half cheetah.
    pub struct HalfCheetahInfo {
        /// Position, m.
        x_position: Scalar,
        /// Velocity, m/s.
        x_velocity: Option<Scalar>,
        /// Weighted velocity.
        reward_forward: Option<Scalar>,
        /// Weighted cost of the action, negative.
        reward_ctrl: Option<Scalar>,
        /// What MuJoCo warned of.
        mujoco_warning: Option<String>,
    }
}

/// What the last step gave.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    x_velocity: f64,
    forward_reward: f64,
    ctrl_cost: Scalar,
}

cartwheel::state! { impl State for Outcome { x_velocity, forward_reward, ctrl_cost } }

/// A half cheetah.
#[derive(Debug)]
pub struct HalfCheetah {
    options: Options,
    outcome: Option<Outcome>,
}

impl Robot for HalfCheetah {
    type Options = Options;
    type Info = HalfCheetahInfo;

    fn observation_len(options: &Options, Sizes { nq, nv, .. }: Sizes) -> usize {
        nq + nv - usize::from(*options.exclude_current_positions_from_observation)
    }

    fn new(options: &Options, stepper: &Stepper) -> Result<Self, Error> {
        stepper.check_least(1, 0)?;
        Ok(Self { options: options.clone(), outcome: None })
    }

    fn reset(&mut self, stepper: &mut Stepper, rng: &mut Rng) -> Result<(), Failure> {
        self.outcome = None;
        stepper.reset(*self.options.reset_noise_scale, VelocityNoise::Normal, rng)
    }

    fn step(&mut self, stepper: &mut Stepper, action: &[f32]) -> Result<Transition, Failure> {
        let before = stepper.qpos()[0];
        stepper.step(action)?;
        let x_velocity = (stepper.qpos()[0] - before) / stepper.dt();
        let forward_reward = *self.options.forward_reward_weight * x_velocity;
        let ctrl_cost = Scalar::sum_of_squares(action).times(self.options.ctrl_cost_weight);
        self.outcome = Some(Outcome { x_velocity, forward_reward, ctrl_cost });
        let reward = forward_reward - ctrl_cost.wide();
        Ok(Transition { reward, terminated: false, truncated: false })
    }

    fn observe(&self, stepper: &Stepper, mut observation: Observation<'_>) {
        let first = usize::from(*self.options.exclude_current_positions_from_observation);
        observation.push(&stepper.qpos()[first..]);
        observation.push(stepper.qvel());
    }

    fn info(&self, stepper: &Stepper) -> HalfCheetahInfo {
        let outcome = self.outcome;
        HalfCheetahInfo {
            x_position: Scalar::F64(stepper.qpos()[0]),
            x_velocity: outcome.map(|outcome| Scalar::F64(outcome.x_velocity)),
            reward_forward: outcome.map(|outcome| Scalar::F64(outcome.forward_reward)),
            reward_ctrl: outcome.map(|outcome| -outcome.ctrl_cost),
            mujoco_warning: stepper.warning(),
        }
    }

    robot! {
        state { outcome }
        parameters {
            _forward_reward_weight: forward_reward_weight,
            _ctrl_cost_weight: ctrl_cost_weight,
            _reset_noise_scale: reset_noise_scale,
            _exclude_current_positions_from_observation:
                exclude_current_positions_from_observation,
        }
    }
}
