//! `Pusher`: an arm that pushes an object to a goal.
//!
//! Source: Gymnasium 1.4.0, `mujoco/pusher_v5.py`.
//!
//! | | |
//! |---|---|
//! | action | torques of seven joints, −2 to 2; `float32[7]` |
//! | observation | positions and velocities of the arm, positions of its tip, the object and the goal; `float64[23]` |
//! | reward | (−distance of object and goal − 0.1 × the sum of squared actions) − 0.5 × distance of object and tip |
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

/// Joints of the arm.
const ARM: usize = 7;
/// Positions of the object and the goal: the last ones.
const OBJECTS: usize = 4;

options! {
    /// Cost of the distance between the object and the tip of the arm, 1/m.
    _reward_near_weight = reward_near_weight: PythonNumber = 0.5,
    /// Cost of the distance between the object and the goal, 1/m.
    _reward_dist_weight = reward_dist_weight: PythonNumber = 1_i64,
    /// Cost of the sum of squared actions.
    _reward_control_weight = reward_control_weight: PythonNumber = 0.1,
}

info! {
    /// The info of a pusher.
    PusherInfo {
        /// Cost of the distance between the object and the goal, negative.
        reward_dist: Scalar,
        /// Cost of the action, negative.
        reward_ctrl: Scalar,
        /// Cost of the distance between the object and the tip of the arm, negative.
        reward_near: Scalar,
    }
}

/// A pusher.
#[derive(Debug)]
pub struct Pusher {
    /// Numbers of bodies.
    tip: usize,
    object: usize,
    goal: usize,
}

impl Robot for Pusher {
    type Options = Options;
    type Info = PusherInfo;

    fn observation_len(_: &Options, _: Sizes) -> usize {
        2 * ARM + 3 * 3
    }

    fn new(_: &Options, model: &Model) -> Result<Self, Error> {
        let Sizes { nq, nv, .. } = model.sizes;
        model.check_sizes(nq >= ARM && nv >= ARM, "seven positions and seven velocities")?;
        Ok(Self {
            tip: model.body("tips_arm")?,
            object: model.body("object")?,
            goal: model.body("goal")?,
        })
    }

    fn reset(&self, _: &Options, stepper: &mut Stepper, rng: &mut Rng) -> Result<(), Failure> {
        stepper.clear()?;
        let [x, y] = loop {
            let place = [rng.uniform(-0.3, 0.0), rng.uniform(-0.2, 0.2)];
            if stepper.norm(place) > 0.17 {
                break place;
            }
        };
        let first = stepper.init_qpos.len() - OBJECTS;
        stepper.init_qpos[first..].copy_from_slice(&[x, y, 0.0, 0.0]); // as Gymnasium does
        stepper.set_initial_positions();
        stepper.reset_arm_velocities(OBJECTS, rng);
        stepper.forward()
    }

    fn step(
        &self,
        options: &Options,
        stepper: &mut Stepper,
        action: FloatsRef<'_>,
    ) -> Result<Step<PusherInfo>, Failure> {
        stepper.step(action)?;
        let [tip, object, goal] =
            [self.tip, self.object, self.goal].map(|body| stepper.body_position(body));
        let reward_near = -stepper.norm(difference(object, tip)) * *options.reward_near_weight;
        let reward_dist = -stepper.norm(difference(object, goal)) * *options.reward_dist_weight;
        let reward_ctrl = (-Scalar::sum_of_squares(action)).times(options.reward_control_weight);
        let info = PusherInfo {
            reward_dist: float64(reward_dist),
            reward_ctrl: Some(reward_ctrl),
            reward_near: float64(reward_near),
            ..self.reset_info(stepper)
        };
        let reward = reward_dist + reward_ctrl.wide() + reward_near;
        Ok(Step { reward, terminated: false, info })
    }

    fn observe(&self, _: &Options, stepper: &Stepper, mut observation: Observation<'_>) {
        observation.push(&stepper.qpos()[..ARM]);
        observation.push(&stepper.qvel()[..ARM]);
        for body in [self.tip, self.object, self.goal] {
            observation.push(&stepper.body_position(body));
        }
    }
}
