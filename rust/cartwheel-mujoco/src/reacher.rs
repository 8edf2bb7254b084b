//! `Reacher`: an arm with two joints that reaches for a target, in the plane.
//!
//! Source: Gymnasium 1.4.0, `mujoco/reacher_v5.py`.
//!
//! | | |
//! |---|---|
//! | action | torques of two joints, −1 to 1; `float32[2]` |
//! | observation | cosines and sines of the angles, position of the target, velocities of the arm, the way from the target to the fingertip; `float64[10]` |
//! | reward | −distance of fingertip and target − the sum of squared actions |
//! | terminates | never |

use cartwheel::{Error, Failure, FloatsRef, Rng};

use crate::env::{Robot, Step, info};
use crate::model::{Model, Sizes};
use crate::numeric::difference;
use crate::observation::Observation;
use crate::options::options;
use crate::python_number::PythonNumber;
use crate::scalar::{Scalar, float64};
use crate::stepper::Stepper;

/// Joints of the arm, and coordinates of the target, which are the last positions.
const PLANE: usize = 2;

options! {
    /// Cost of the distance between fingertip and target, 1/m.
    _reward_dist_weight = reward_dist_weight: PythonNumber = 1_i64,
    /// Cost of the sum of squared actions.
    _reward_control_weight = reward_control_weight: PythonNumber = 1_i64,
}

info! {
    /// The info of a reacher.
    ReacherInfo {
        /// Cost of the distance between fingertip and target, negative.
        reward_dist: Scalar,
        /// Cost of the action, negative.
        reward_ctrl: Scalar,
    }
}

/// A reacher.
#[derive(Debug)]
pub struct Reacher {
    /// Numbers of bodies.
    fingertip: usize,
    target: usize,
}

impl Reacher {
    /// The way from the target to the fingertip.
    fn way(&self, stepper: &Stepper) -> [f64; 3] {
        difference(stepper.body_position(self.fingertip), stepper.body_position(self.target))
    }
}

impl Robot for Reacher {
    type Options = Options;
    type Info = ReacherInfo;

    fn observation_len(_: &Options, _: Sizes) -> usize {
        10
    }

    fn new(_: &Options, model: &Model) -> Result<Self, Error> {
        let Sizes { nq, nv, .. } = model.sizes;
        model.check_sizes(nq == 4 && nv >= PLANE, "four positions and two velocities")?;
        Ok(Self { fingertip: model.body("fingertip")?, target: model.body("target")? })
    }

    fn reset(&self, _: &Options, stepper: &mut Stepper, rng: &mut Rng) -> Result<(), Failure> {
        stepper.clear()?;
        for at in 0..stepper.init_qpos.len() {
            stepper.qpos_mut()[at] = rng.uniform(-0.1, 0.1) + stepper.init_qpos[at];
        }
        let target = loop {
            let place: [f64; PLANE] = rng.uniform_array(-0.2, 0.2);
            if stepper.norm(place) < 0.2 {
                break place;
            }
        };
        let arm = stepper.init_qpos.len() - PLANE;
        stepper.qpos_mut()[arm..].copy_from_slice(&target);
        stepper.reset_arm_velocities(PLANE, rng);
        stepper.forward()
    }

    fn step(
        &self,
        options: &Options,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<ReacherInfo>, Failure> {
        stepper.step(action)?;
        let reward_dist = -stepper.norm(self.way(stepper)) * *options.reward_dist_weight;
        let reward_ctrl = (-Scalar::sum_of_squares(action)).times(options.reward_control_weight);
        let info = ReacherInfo {
            reward_dist: float64(reward_dist),
            reward_ctrl: Some(reward_ctrl),
            ..self.reset_info(stepper)
        };
        Ok(Step { reward: reward_dist + reward_ctrl.wide(), terminated: false, info })
    }

    fn observe(&self, _: &Options, stepper: &Stepper, mut observation: Observation<'_>) {
        let (angles, target) = stepper.qpos().split_at(PLANE);
        observation.push_each(angles, f64::cos);
        observation.push_each(angles, f64::sin);
        observation.push(target);
        observation.push(&stepper.qvel()[..PLANE]);
        observation.push(&self.way(stepper)[..PLANE]);
    }
}
