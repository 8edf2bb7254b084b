//! `InvertedDoublePendulum`: two poles on a cart, one on the other, to be balanced.
//!
//! Source: Gymnasium 1.4.0, `mujoco/inverted_double_pendulum_v5.py` (Barto, Sutton and Anderson's
//! cart-pole, with a second pole).
//!
//! | | |
//! |---|---|
//! | action | force on the cart, −1 to 1; `float32[1]` |
//! | observation | position of the cart, sines and cosines of the angles, velocities and the constraint's force on the cart, both clipped to ±10; `float64[9]` |
//! | reward | 10 unless it fell − (0.01 × x² + (y − 2)²) − (0.001 × ω₁² + 0.005 × ω₂²), x and y of the tip |
//! | terminates | when the tip is not above 1 m |

use cartwheel::{Error, Failure, FloatsRef};
use cartwheel_envs::libm::square;

use crate::env::{Robot, Step, info};
use crate::model::{Model, Sizes};
use crate::observation::Observation;
use crate::options::{NoiseScale, options};
use crate::python_number::PythonNumber;
use crate::scalar::{Scalar, float64};
use crate::stepper::{Stepper, VelocityNoise};

/// The range to which velocities and forces are clipped.
const CLIPPED: (f64, f64) = (-10.0, 10.0);

options! {
    /// Reward for a step after which it has not fallen.
    _healthy_reward = healthy_reward: PythonNumber = 10.0,
    /// Scale of the noise of initial positions (uniform) and velocities (normal).
    _reset_noise_scale = reset_noise_scale: NoiseScale = 0.1,
}

info! {
    /// The info of an inverted double pendulum.
    InvertedDoublePendulumInfo {
        /// Reward for not having fallen.
        reward_survive: Scalar,
        /// Cost of the distance from the upright position, negative.
        distance_penalty: Scalar,
        /// Cost of the velocities, negative.
        velocity_penalty: Scalar,
    }
}

/// An inverted double pendulum.
#[derive(Debug)]
pub struct InvertedDoublePendulum;

impl Robot for InvertedDoublePendulum {
    type Options = Options;
    type Info = InvertedDoublePendulumInfo;

    fn observation_len(_: &Options, _: Sizes) -> usize {
        9
    }

    fn new(_: &Options, model: &Model) -> Result<Self, Error> {
        let Sizes { nq, nv, nsite, .. } = model.sizes;
        let fits = nq == 3 && nv == 3 && nsite >= 1;
        model.check_sizes(fits, "three positions, three velocities and a site")?;
        Ok(Self)
    }

    fn reset_noise(options: &Options) -> (f64, VelocityNoise) {
        (*options.reset_noise_scale, VelocityNoise::Normal)
    }

    fn step(
        &self,
        options: &Options,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<InvertedDoublePendulumInfo>, Failure> {
        stepper.step(action)?;
        let (x, y) = (stepper.site_xpos[0], stepper.site_xpos[2]);
        let (v1, v2) = (stepper.qvel()[1], stepper.qvel()[2]);
        let terminated = y <= 1.0;
        let distance_penalty = 0.01 * square(x) + square(y - 2.0);
        let velocity_penalty = 1e-3 * square(v1) + 5e-3 * square(v2);
        let alive_bonus = options.healthy_reward.if_python(!terminated);
        let info = InvertedDoublePendulumInfo {
            reward_survive: Some(alive_bonus),
            distance_penalty: float64(-distance_penalty),
            velocity_penalty: float64(-velocity_penalty),
            ..self.reset_info(stepper)
        };
        let reward = alive_bonus.wide() - distance_penalty - velocity_penalty;
        Ok(Step { reward, terminated, info })
    }

    fn observe(&self, _: &Options, stepper: &Stepper, mut observation: Observation<'_>) {
        let (cart, angles) = stepper.qpos().split_at(1);
        observation.push(cart);
        observation.push_each(angles, f64::sin);
        observation.push_each(angles, f64::cos);
        observation.push_clipped(stepper.qvel(), CLIPPED);
        observation.push_clipped(&stepper.qfrc_constraint[..1], CLIPPED);
    }
}
