//! `InvertedPendulum`: a pole on a cart, to be balanced.
//!
//! Source: Gymnasium 1.4.0, `mujoco/inverted_pendulum_v5.py` (Barto, Sutton and Anderson's cart-pole).
//!
//! | | |
//! |---|---|
//! | action | force on the cart, −3 to 3; `float32[1]` |
//! | observation | positions, velocities; `float64[4]` |
//! | reward | 1, or 0 when it ends |
//! | terminates | when an observation is not finite, or the angle is beyond ±0.2 |

use cartwheel::{Error, Failure, FloatsRef};

use crate::env::{Robot, Step, info};
use crate::model::{Model, Sizes};
use crate::options::{NoiseScale, options};
use crate::scalar::Scalar;
use crate::stepper::{Stepper, VelocityNoise};

options! {
    /// Scale of the noise of initial positions (uniform) and velocities (uniform).
    _reset_noise_scale = reset_noise_scale: NoiseScale = 0.01,
}

info! {
    /// The info of an inverted pendulum.
    InvertedPendulumInfo {
        /// The reward.
        reward_survive: Scalar,
    }
}

/// An inverted pendulum.
#[derive(Debug)]
pub struct InvertedPendulum;

impl Robot for InvertedPendulum {
    type Options = Options;
    type Info = InvertedPendulumInfo;

    fn new(_: &Options, model: &Model) -> Result<Self, Error> {
        let Sizes { nq, nv, .. } = model.sizes;
        model.check_sizes(nq + nv == 4, "four positions and velocities")?;
        Ok(Self)
    }

    fn reset_noise(options: &Options) -> (f64, VelocityNoise) {
        (*options.reset_noise_scale, VelocityNoise::Uniform)
    }

    fn step(
        &self,
        _: &Options,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<InvertedPendulumInfo>, Failure> {
        stepper.step(action)?;
        let mut all = stepper.qpos().iter().chain(stepper.qvel());
        let second = *all.clone().nth(1).expect("there are four");
        let terminated = !all.all(|value| value.is_finite()) || second.abs() > 0.2;
        let reward = i64::from(!terminated);
        let info = InvertedPendulumInfo {
            reward_survive: Some(Scalar::Int(reward)),
            ..self.reset_info(stepper)
        };
        Ok(Step { reward: Scalar::Int(reward).wide(), terminated, info })
    }
}
