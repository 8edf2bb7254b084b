//! CartPole: keep a pole on a cart upright by pushing the cart left or right.
//!
//! Source: A. G. Barto, R. S. Sutton, C. W. Anderson, "Neuronlike adaptive elements that can solve
//! difficult learning control problems" (1983), as in Gymnasium 1.4.0, `classic_control/cartpole.py`.
//!
//! | | |
//! |---|---|
//! | action | 0: push left, 1: push right, with 10 N |
//! | observation | cart position (m), its velocity (m/s), pole angle (rad), its velocity (rad/s); `float32[4]` |
//! | reward | 1 for each step; with `sutton_barto_reward` 0, and −1 when the pole falls |
//! | terminates | position beyond ±2.4 m, or angle beyond ±12° |

use std::sync::Arc;

use cartwheel::{
    Env, Error, Failure, Parameter, ParameterValue, Rng, Space, Spaces, Standard, Transition,
    Tuned, options, wrong,
};

use crate::interval::interval;

#[cfg(target_arch = "x86_64")]
mod simd;

options! {
    /// Keywords.
    #[derive(Copy)]
    pub struct Options {
        /// Reward 0 for each step and -1 for the fall, instead of 1 for each step.
        sutton_barto_reward: bool,
    }
}

interval! {
    /// Range of all four numbers of an initial state: `reset(options={"low": …, "high": …})`.
    pub struct Start { of: "value of each number of the initial state", low: -0.05, high: 0.05 }
}

/// The integrator of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Integrator {
    /// Positions advance with the old velocities.
    Euler,
    /// Positions advance with the new velocities. Gymnasium uses this for any other name.
    SemiImplicit(String),
}

impl Parameter for Integrator {
    fn get(&self) -> ParameterValue {
        ParameterValue::Text(match self {
            Self::Euler => "euler".to_owned(),
            Self::SemiImplicit(name) => name.clone(),
        })
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        *self = match value {
            ParameterValue::Text(name) if name == "euler" => Self::Euler,
            ParameterValue::Text(name) => Self::SemiImplicit(name),
            got => return Err(wrong("the name of an integrator", &got)),
        };
        Ok(())
    }
}

impl cartwheel::State for Integrator {
    fn save(&self, state: &mut Vec<u8>) {
        let name = match self {
            Self::Euler => None,
            Self::SemiImplicit(name) => Some(name.clone()),
        };
        name.save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let name = <Option<String> as cartwheel::State>::load(state)?;
        Ok(name.map_or(Self::Euler, Self::SemiImplicit))
    }
}

/// A pole on a cart.
#[derive(Debug, Clone)]
pub struct CartPole {
    state: [f64; 4],
    /// Whether the pole has fallen since the last reset.
    fallen: bool,
    sutton_barto_reward: bool,
    physics: Tuned<Physics>,
}

physics! {
    /// Constants, in SI units, with Gymnasium's names. As in Gymnasium, setting one does not change the
    /// others.
    struct Physics {
        gravity: f64 = 9.8,
        masscart: f64 = 1.0,
        masspole: f64 = 0.1,
        total_mass: f64 = 0.1 + 1.0,
        /// Half the pole's length.
        length: f64 = 0.5,
        polemass_length: f64 = 0.1 * 0.5,
        force_mag: f64 = 10.0,
        /// Seconds for each step.
        tau: f64 = 0.02,
        theta_threshold_radians: f64 = 12.0 * 2.0 * std::f64::consts::PI / 360.0,
        x_threshold: f64 = 2.4,
        kinematics_integrator: Integrator = Integrator::Euler,
    }
}

impl CartPole {
    /// The transition of a step that ended in this state.
    #[inline]
    fn outcome(&mut self, terminated: bool) -> Transition {
        let reward = match (self.sutton_barto_reward, terminated) {
            (true, true) => -1.0,
            (true, false) => 0.0,
            (false, true) if self.fallen => 0.0,
            (false, _) => 1.0,
        };
        self.fallen |= terminated;
        Transition { reward, terminated, truncated: false }
    }
}

impl Env for CartPole {
    type Options = Options;
    type ResetOptions = Start;
    type Action = i64;
    type Observation = [f32; 4];
    type Info = ();
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        let Physics { x_threshold, theta_threshold_radians, .. } = *Physics::STANDARD;
        let (x, theta) = (x_threshold * 2.0, theta_threshold_radians * 2.0);
        let observation = Space::symmetric_box(&[x, f64::INFINITY, theta, f64::INFINITY]);
        Spaces { observation, action: Space::discrete(2) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        Ok(Self {
            state: [0.0; 4],
            fallen: false,
            sutton_barto_reward: options.sutton_barto_reward,
            physics: Tuned::default(),
        })
    }

    #[inline]
    fn reset(&mut self, rng: &mut Rng, start: &Start) -> Result<(), Failure> {
        self.state = rng.uniform_array(start.low, start.high);
        self.fallen = false;
        Ok(())
    }

    #[inline]
    fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
        let [x, x_dot, theta, theta_dot] = self.state;
        let (sin, cos) = (theta.sin(), theta.cos());
        // Constants are read after the calls, because a call preserves no register.
        let Physics {
            gravity,
            masspole,
            total_mass,
            length,
            polemass_length,
            force_mag,
            tau,
            theta_threshold_radians,
            x_threshold,
            ref kinematics_integrator,
            ..
        } = *self.physics;
        let force = if action == 1 { force_mag } else { -force_mag };
        let temp = (force + polemass_length * (theta_dot * theta_dot) * sin) / total_mass;
        let theta_acc = (gravity * sin - cos * temp)
            / (length * (4.0 / 3.0 - masspole * (cos * cos) / total_mass));
        let x_acc = temp - polemass_length * theta_acc * cos / total_mass;
        let (new_x_dot, new_theta_dot) = (x_dot + tau * x_acc, theta_dot + tau * theta_acc);
        let (x_speed, theta_speed) = match kinematics_integrator {
            Integrator::Euler => (x_dot, theta_dot),
            Integrator::SemiImplicit(_) => (new_x_dot, new_theta_dot),
        };
        let (x, theta) = (x + tau * x_speed, theta + tau * theta_speed);
        self.state = [x, new_x_dot, theta, new_theta_dot];

        let terminated = x < -x_threshold
            || x > x_threshold
            || theta < -theta_threshold_radians
            || theta > theta_threshold_radians;
        Ok(self.outcome(terminated))
    }

    in_simd! {}

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "observations are rounded")]
    fn observe(&self, observation: &mut [f32; 4]) {
        *observation = self.state.map(|value| value as f32);
    }

    #[inline]
    fn info(&self) {}

    cartwheel::state! { state, fallen, physics }

    cartwheel::parameters! {
        state: state,
        gravity: physics.gravity,
        masscart: physics.masscart,
        masspole: physics.masspole,
        total_mass: physics.total_mass,
        length: physics.length,
        polemass_length: physics.polemass_length,
        force_mag: physics.force_mag,
        tau: physics.tau,
        theta_threshold_radians: physics.theta_threshold_radians,
        x_threshold: physics.x_threshold,
        kinematics_integrator: physics.kinematics_integrator,
    }

    fn parameters_changed(&mut self) {
        self.physics.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_shared_again_once_they_are_the_standard_ones() {
        let mut env =
            CartPole::new(&Options::default(), &Arc::new(())).expect("no options can be wrong");
        let mut set = |name, value| {
            let set = env.parameter_mut(name).expect("a parameter").set(value);
            env.parameters_changed();
            (set.is_ok(), env.physics.is_standard())
        };
        assert_eq!(set("gravity", ParameterValue::Float(4.9)), (true, false));
        assert_eq!(set("gravity", ParameterValue::Text("none".to_owned())), (false, false));
        assert_eq!(set("gravity", ParameterValue::Float(9.8)), (true, true));
        assert_eq!(set("gravity", ParameterValue::Text("none".to_owned())), (false, true));
        assert_eq!(set("state", [0.0; 4].get()), (true, true));
    }
}
