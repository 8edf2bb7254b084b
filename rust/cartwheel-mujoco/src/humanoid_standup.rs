//! `HumanoidStandup`: a robot with two legs and two arms that lies, and stands up.
//!
//! Source: Gymnasium 1.4.0, `mujoco/humanoidstandup_v5.py` (Y. Tassa, T. Erez, E. Todorov).
//!
//! | | |
//! |---|---|
//! | action | torques of 17 joints, −0.4 to 0.4; `float32[17]` |
//! | observation | as that of `Humanoid`; `float64[348]` |
//! | reward | height / seconds of a `mj_step` − 0.1 × the sum of squared controls − 5e-7 × that of contact forces, at most 10, + 1 |
//! | terminates | never |

use cartwheel::{Error, Failure, FloatsRef};
use cartwheel_envs::numeric::clip;

use crate::body_observation::{body_options, check_body};
use crate::env::{Robot, Step, info};
use crate::model::{Model, Sizes};
use crate::numeric::sum_of_squares;
use crate::observation::Observation;
use crate::options::{NoiseScale, Range};
use crate::python_number::PythonNumber;
use crate::scalar::{Scalar, float64};
use crate::stepper::{Stepper, VelocityNoise};

body_options! {
    /// Weight of the reward for the height, which Gymnasium keeps and does not use.
    _uph_cost_weight = uph_cost_weight: PythonNumber = 1_i64,
    /// Cost of the sum of squared controls.
    _ctrl_cost_weight = ctrl_cost_weight: PythonNumber = 0.1,
    /// Cost of the sum of squared contact forces.
    _impact_cost_weight = impact_cost_weight: PythonNumber = 0.5e-6,
    /// The cost of contacts is clipped to this range.
    _impact_cost_range = impact_cost_range: Range = (f64::NEG_INFINITY, 10.0),
    /// Scale of the noise of initial positions (uniform) and velocities (uniform).
    _reset_noise_scale = reset_noise_scale: NoiseScale = 1e-2,
}

info! {
    /// The info of a humanoid that stands up.
    HumanoidStandupInfo {
        /// Position, m.
        x_position: Scalar,
        /// Position, m.
        y_position: Scalar,
        /// Height above that of the initial state, m.
        z_distance_from_origin: Scalar,
        /// Lengths of the tendons, m.
        tendon_length: Vec<f64>,
        /// Velocities of the tendons, m/s.
        tendon_velocity: Vec<f64>,
        /// Reward for the height.
        reward_linup: Scalar,
        /// Cost of the controls, negative.
        reward_quadctrl: Scalar,
        /// Cost of contacts, negative.
        reward_impact: Scalar,
    }
}

/// A humanoid that stands up.
#[derive(Debug)]
pub struct HumanoidStandup;

impl Robot for HumanoidStandup {
    type Options = Options;
    type Info = HumanoidStandupInfo;

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

    fn reset_info(&self, stepper: &Stepper) -> HumanoidStandupInfo {
        let [x, y] = stepper.xy();
        HumanoidStandupInfo {
            x_position: float64(x),
            y_position: float64(y),
            z_distance_from_origin: float64(stepper.qpos()[2] - stepper.init_qpos[2]),
            tendon_length: Some(stepper.ten_length.to_vec()),
            tendon_velocity: Some(stepper.ten_velocity.to_vec()),
            ..Default::default()
        }
    }

    fn step(
        &self,
        options: &Options,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<HumanoidStandupInfo>, Failure> {
        stepper.step(action)?;
        let height_reward = stepper.qpos()[2] / stepper.timestep();
        let ctrl_cost = *options.ctrl_cost_weight * sum_of_squares(&stepper.ctrl);
        let impact_cost = *options.impact_cost_weight * sum_of_squares(&stepper.cfrc_ext);
        let (low, high) = options.impact_cost_range.ends();
        let impact_cost = clip(impact_cost, low, high);
        let info = HumanoidStandupInfo {
            reward_linup: float64(height_reward),
            reward_quadctrl: float64(-ctrl_cost),
            reward_impact: float64(-impact_cost),
            ..self.reset_info(stepper)
        };
        let reward = height_reward - ctrl_cost - impact_cost + 1.0;
        Ok(Step { reward, terminated: false, info })
    }

    fn observe(&self, options: &Options, stepper: &Stepper, observation: Observation<'_>) {
        options.parts().observe(stepper, observation);
    }
}
