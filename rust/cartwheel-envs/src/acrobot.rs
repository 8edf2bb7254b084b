//! Acrobot: two links, a motor at the joint between them, and a height that the free end has to
//! reach.
//!
//! Sources: R. S. Sutton, "Generalization in reinforcement learning: successful examples using sparse
//! coarse coding" (1996); R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction"; as in
//! Gymnasium 1.4.0, `classic_control/acrobot.py` (C. Dann and others, from RLPy, BSD 3-Clause).
//!
//! | | |
//! |---|---|
//! | action | torque at the joint: 0: −1, 1: 0, 2: 1 N m |
//! | observation | cosine and sine of both angles, both angular velocities (rad/s); `float32[6]` |
//! | reward | −1 for each step, 0 for the last |
//! | terminates | the free end is higher than one link above the fixed one |
//!
//! An angle above 1e9 rad is an error; Gymnasium's environment takes minutes for it, or never ends.

use std::f64::consts::PI;
use std::sync::Arc;

use cartwheel::{
    DType, Env, Error, Failure, NoOptions, Parameter, ParameterValue, Rng, Space, Spaces, Standard,
    Transition, Tuned, wrong,
};

use crate::interval::interval;
use crate::libm::{cos_f32, sin_f32, square};
use crate::numeric::{clip, round};

#[cfg(target_arch = "x86_64")]
mod simd;

/// Largest angle that is reduced to one turn, in radians. Gymnasium subtracts whole turns one by
/// one, which decides the last bits; an angle of this size takes some tenths of a second, and from
/// 1e16 on the loop never ends.
const LARGEST_ANGLE: f64 = 1e9;

interval! {
    /// Range of all four numbers of an initial state: `reset(options={"low": …, "high": …})`, both
    /// ends between −1e9 and 1e9.
    pub struct Start { of: "value of each number of the initial state", low: -0.1, high: 0.1, max: LARGEST_ANGLE }
}

/// The source of the equations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Equations {
    /// The book.
    Book,
    /// The paper of 1996.
    Nips,
}

impl Parameter for Equations {
    fn get(&self) -> ParameterValue {
        ParameterValue::Text(if *self == Self::Nips { "nips" } else { "book" }.to_owned())
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        *self = match &value {
            ParameterValue::Text(name) if name == "book" => Self::Book,
            ParameterValue::Text(name) if name == "nips" => Self::Nips,
            _ => return Err(wrong("\"book\" or \"nips\"", &value)),
        };
        Ok(())
    }
}

cartwheel::state! { impl State for enum Equations { Book, Nips } }

physics! {
    /// Constants in SI units; the names of the parameters are Gymnasium's.
    struct Physics {
        dt: f64 = 0.2,
        link_length_1: f64 = 1.0,
        link_length_2: f64 = 1.0,
        link_mass_1: f64 = 1.0,
        link_mass_2: f64 = 1.0,
        link_com_pos_1: f64 = 0.5,
        link_com_pos_2: f64 = 0.5,
        link_moi: f64 = 1.0,
        max_vel_1: f64 = 4.0 * PI,
        max_vel_2: f64 = 9.0 * PI,
        avail_torque: [f64; 3] = [-1.0, 0.0, 1.0],
        torque_noise_max: f64 = 0.0,
        equations: Equations = Equations::Book,
        /// `l1**2`, `lc1**2` and `lc2**2`.
        squares: [f64; 3] = [1.0, 0.25, 0.25],
    }
}

cartwheel::state! { impl State for State { values, fresh } }

const GRAVITY: f64 = 9.8;

impl Physics {
    /// The time derivative of `[theta1, theta2, velocity1, velocity2]` under a torque.
    #[inline]
    fn derivative(&self, state: [f64; 4], torque: f64) -> [f64; 4] {
        let Self { link_mass_1: m1, link_mass_2: m2, link_length_1: l1, .. } = *self;
        let Self { link_com_pos_1: lc1, link_com_pos_2: lc2, link_moi: moment, .. } = *self;
        let [length_squared, inner_squared, outer_squared] = self.squares;
        let [theta1, theta2, w1, w2] = state;
        let (sin2, cos2) = (theta2.sin(), theta2.cos());
        let d1 = m1 * inner_squared
            + m2 * (length_squared + outer_squared + 2.0 * l1 * lc2 * cos2)
            + moment
            + moment;
        let d2 = m2 * (outer_squared + l1 * lc2 * cos2) + moment;
        let phi2 = m2 * lc2 * GRAVITY * (theta1 + theta2 - PI / 2.0).cos();
        let phi1 = -m2 * l1 * lc2 * square(w2) * sin2 - 2.0 * m2 * l1 * lc2 * w2 * w1 * sin2
            + (m1 * lc1 + m2 * l1) * GRAVITY * (theta1 - PI / 2.0).cos()
            + phi2;
        let drive = match self.equations {
            Equations::Nips => torque + d2 / d1 * phi1 - phi2,
            Equations::Book => torque + d2 / d1 * phi1 - m2 * l1 * lc2 * square(w1) * sin2 - phi2,
        };
        let a2 = drive / (m2 * outer_squared + moment - square(d2) / d1);
        let a1 = -(d2 * a2 + phi1) / d1;
        [w1, w2, a1, a2]
    }

    /// The state one step later, by one step of the classic Runge-Kutta method.
    #[inline]
    fn integrate(&self, state: [f64; 4], torque: f64) -> [f64; 4] {
        let dt = self.dt;
        let half = dt / 2.0;
        let along = |step: f64, slope: [f64; 4]| -> [f64; 4] {
            std::array::from_fn(|at| state[at] + step * slope[at])
        };
        let k1 = self.derivative(state, torque);
        let k2 = self.derivative(along(half, k1), torque);
        let k3 = self.derivative(along(half, k2), torque);
        let k4 = self.derivative(along(dt, k3), torque);
        std::array::from_fn(|at| {
            state[at] + dt / 6.0 * (k1[at] + 2.0 * k2[at] + 2.0 * k3[at] + k4[at])
        })
    }
}

/// Both angles, measured from hanging down, and both velocities.
#[derive(Debug, Clone, Copy)]
struct State {
    values: [f64; 4],
    /// Whether they come from a reset; Gymnasium keeps these as `float32`.
    fresh: bool,
}

impl State {
    /// Cosine and sine of both angles, rounded.
    #[inline]
    fn observed(&self) -> [f32; 4] {
        let [theta1, theta2, ..] = self.values;
        if self.fresh {
            let (theta1, theta2) = (round(theta1), round(theta2));
            [cos_f32(theta1), sin_f32(theta1), cos_f32(theta2), sin_f32(theta2)]
        } else {
            [theta1.cos(), theta1.sin(), theta2.cos(), theta2.sin()].map(round)
        }
    }
}

/// An array with the element size of Gymnasium's array.
impl Parameter for State {
    fn get(&self) -> ParameterValue {
        if self.fresh { self.values.map(round).get() } else { self.values.get() }
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let fresh = matches!(&value, ParameterValue::Array(array) if array.dtype() == DType::F32);
        self.values.set(value)?;
        self.fresh = fresh;
        Ok(())
    }
}

/// Two links and a motor.
#[derive(Debug, Clone)]
pub struct Acrobot {
    state: State,
    /// Cosine and sine of both angles, as they are observed.
    observed: [f32; 4],
    physics: Tuned<Physics>,
}

impl Env for Acrobot {
    type Options = NoOptions;
    type ResetOptions = Start;
    type Action = i64;
    type Observation = [f32; 6];
    type Info = ();
    type Shared = ();

    fn spaces(_: &NoOptions, (): &()) -> Spaces {
        let Physics { max_vel_1, max_vel_2, .. } = *Physics::STANDARD;
        let observation = Space::symmetric_box(&[1.0, 1.0, 1.0, 1.0, max_vel_1, max_vel_2]);
        Spaces { observation, action: Space::discrete(3) }
    }

    fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> {
        let state = State { values: [0.0; 4], fresh: true };
        Ok(Self { state, observed: state.observed(), physics: Tuned::default() })
    }

    #[inline]
    fn reset(&mut self, rng: &mut Rng, start: &Start) -> Result<(), Failure> {
        let values: [f64; 4] = rng.uniform_array(start.low, start.high);
        let values = values.map(|value| f64::from(round(value)));
        self.state = State { values, fresh: true };
        self.observed = self.state.observed();
        Ok(())
    }

    #[inline]
    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        let physics = &*self.physics;
        let action = usize::try_from(action).expect("actions were checked");
        let mut torque = physics.avail_torque[action];
        let noise = physics.torque_noise_max;
        if noise > 0.0 {
            torque += rng.uniform(-noise, noise);
        }
        let [theta1, theta2, w1, w2] = physics.integrate(self.state.values, torque);
        let (theta1, theta2) = (wrap(theta1), wrap(theta2));
        let w1 = clip(w1, -physics.max_vel_1, physics.max_vel_1);
        let w2 = clip(w2, -physics.max_vel_2, physics.max_vel_2);
        self.state = State { values: [theta1, theta2, w1, w2], fresh: false };
        self.observed = self.state.observed();
        let terminated = -theta1.cos() - (theta2 + theta1).cos() > 1.0;
        let reward = if terminated { 0.0 } else { -1.0 };
        Ok(Transition { reward, terminated, truncated: false })
    }

    in_simd! {}

    #[inline]
    fn observe(&self, observation: &mut [f32; 6]) {
        let [_, _, w1, w2] = self.state.values;
        let [cos1, sin1, cos2, sin2] = self.observed;
        *observation = [cos1, sin1, cos2, sin2, round(w1), round(w2)];
    }

    #[inline]
    fn info(&self) {}

    cartwheel::state! { state, observed, physics }

    cartwheel::parameters! {
        state: state,
        dt: physics.dt,
        LINK_LENGTH_1: physics.link_length_1,
        LINK_LENGTH_2: physics.link_length_2,
        LINK_MASS_1: physics.link_mass_1,
        LINK_MASS_2: physics.link_mass_2,
        LINK_COM_POS_1: physics.link_com_pos_1,
        LINK_COM_POS_2: physics.link_com_pos_2,
        LINK_MOI: physics.link_moi,
        MAX_VEL_1: physics.max_vel_1,
        MAX_VEL_2: physics.max_vel_2,
        AVAIL_TORQUE: physics.avail_torque,
        torque_noise_max: physics.torque_noise_max,
        book_or_nips: physics.equations,
    }

    fn parameters_changed(&mut self) {
        self.observed = self.state.observed();
        let Physics { link_length_1, link_com_pos_1, link_com_pos_2, .. } = *self.physics;
        self.physics.squares = [link_length_1, link_com_pos_1, link_com_pos_2].map(square);
        self.physics.settle();
    }
}

/// An angle reduced to [−π, π] by whole turns.
///
/// Large velocities lead to larger angles, with their eighth power, so limits on resets alone are
/// not enough.
#[inline]
fn wrap(mut angle: f64) -> f64 {
    assert!(angle.abs() <= LARGEST_ANGLE, "the state has overflowed: an angle is {angle:e}");
    while angle > PI {
        angle -= 2.0 * PI;
    }
    while angle < -PI {
        angle += 2.0 * PI;
    }
    angle
}
