//! Pendulum: swing a pendulum up and hold it there, with a limited torque.
//!
//! Source: Gymnasium 1.4.0, `classic_control/pendulum.py` (C. Luis).
//!
//! | | |
//! |---|---|
//! | action | torque, clipped to ±2 N m; `float32[1]` |
//! | observation | cosine and sine of the angle (0 is upright), angular velocity (rad/s); `float32[3]` |
//! | reward | −(angle² + 0.1 × velocity² + 0.001 × torque²), the angle in (−π, π] |
//! | terminates | never |

use std::f64::consts::PI;
use std::sync::Arc;

use cartwheel::{
    Env, EnvOptions, Error, Failure, OptionDoc, Rng, Space, Spaces, Standard, Transition, Tuned,
    options,
};
use serde::Deserialize;

use crate::interval::check_range;
use crate::libm::{square, square_f32};
use crate::numeric::{clip, floor_mod, round};

#[cfg(target_arch = "x86_64")]
mod simd;

options! {
    /// Keywords.
    #[derive(Copy)]
    pub struct Options {
        /// Gravity in m/s².
        g: f64 = Physics::STANDARD.g,
    }
}

/// Reset options: the largest absolute initial angle and velocity.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "Most")]
pub struct Start {
    /// Angle in radians.
    pub x_init: f64,
    /// Angular velocity in rad/s.
    pub y_init: f64,
}

impl Default for Start {
    fn default() -> Self {
        let Most { x_init, y_init } = Most::default();
        Self { x_init, y_init }
    }
}

impl EnvOptions for Start {
    fn describe() -> Vec<OptionDoc> {
        Most::describe()
    }
}

options! {
    /// The options of a reset as they were passed.
    struct Most {
        /// Largest absolute initial angle in radians.
        x_init: f64 = PI,
        /// Largest absolute initial angular velocity in rad/s.
        y_init: f64 = 1.0,
    }
}

impl TryFrom<Most> for Start {
    type Error = String;

    fn try_from(Most { x_init, y_init, .. }: Most) -> Result<Self, String> {
        for (name, max) in [("x_init", x_init), ("y_init", y_init)] {
            if max < 0.0 {
                return Err(format!("{name} must not be negative, got {max}"));
            }
            check_range(-max, max)?;
        }
        Ok(Self { x_init, y_init })
    }
}

physics! {
    struct Physics {
        max_speed: f64 = 8.0,
        max_torque: f64 = 2.0,
        dt: f64 = 0.05,
        g: f64 = 10.0,
        m: f64 = 1.0,
        l: f64 = 1.0,
        /// `3 * g / (2 * l)`.
        gravity_gain: f64 = 15.0,
        /// `3.0 / (m * l**2)`, as a `float32` factor of the torque.
        torque_gain: f32 = 3.0,
    }
}

impl Physics {
    /// Updates the gains.
    fn update(&mut self) {
        self.gravity_gain = 3.0 * self.g / (2.0 * self.l);
        self.torque_gain = round(3.0 / (self.m * square(self.l)));
    }
}

/// A pendulum on a motor.
#[derive(Debug, Clone)]
pub struct Pendulum {
    /// Angle and angular velocity.
    state: [f64; 2],
    /// Sine and cosine of the angle: the observation has both, and the next step needs the sine.
    sin_cos: [f64; 2],
    /// The torque of the last step, for rendering.
    last_u: Option<f32>,
    physics: Tuned<Physics>,
}

impl Pendulum {
    /// Updates what depends on the angle.
    #[inline]
    fn turned(&mut self) {
        let (sin, cos) = self.state[0].sin_cos();
        self.sin_cos = [sin, cos];
    }
}

impl Env for Pendulum {
    type Options = Options;
    type ResetOptions = Start;
    type Action = [f32; 1];
    type Observation = [f32; 3];
    type Info = ();
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        let Physics { max_speed, max_torque, .. } = *Physics::STANDARD;
        let observation = Space::symmetric_box(&[1.0, 1.0, max_speed]);
        Spaces { observation, action: Space::symmetric_box(&[max_torque]) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        let mut physics: Tuned<Physics> = Tuned::default();
        #[expect(clippy::float_cmp, reason = "the standard value itself needs nothing")]
        if options.g != physics.g {
            physics.g = options.g;
            physics.update();
        }
        Ok(Self { state: [0.0; 2], sin_cos: [0.0, 1.0], last_u: None, physics })
    }

    #[inline]
    fn reset(&mut self, rng: &mut Rng, start: &Start) -> Result<(), Failure> {
        self.state = [start.x_init, start.y_init].map(|max| rng.uniform(-max, max));
        self.turned();
        self.last_u = None;
        Ok(())
    }

    #[inline]
    fn step(&mut self, &[action]: &[f32; 1], _: &mut Rng) -> Result<Transition, Failure> {
        let Physics { max_speed, max_torque, dt, gravity_gain, torque_gain, .. } = *self.physics;
        let [theta, speed] = self.state;
        let torque = action.max(round(-max_torque)).min(round(max_torque));
        self.last_u = Some(torque);
        let angle = floor_mod(theta + PI, 2.0 * PI) - PI;
        let effort = f64::from(0.001_f32 * square_f32(torque));
        let cost = square(angle) + 0.1 * square(speed) + effort;
        let push = f64::from(torque_gain * torque);
        let speed = speed + (gravity_gain * self.sin_cos[0] + push) * dt;
        let speed = clip(speed, -max_speed, max_speed);
        self.state = [theta + speed * dt, speed];
        self.turned();
        Ok(Transition { reward: -cost, terminated: false, truncated: false })
    }

    in_simd! {}

    #[inline]
    fn observe(&self, observation: &mut [f32; 3]) {
        let [sin, cos] = self.sin_cos;
        *observation = [cos, sin, self.state[1]].map(round);
    }

    #[inline]
    fn info(&self) {}

    cartwheel::state! { state, sin_cos, last_u, physics }

    cartwheel::parameters! {
        state: state,
        last_u: last_u,
        max_speed: physics.max_speed,
        max_torque: physics.max_torque,
        dt: physics.dt,
        g: physics.g,
        m: physics.m,
        l: physics.l,
    }

    fn parameters_changed(&mut self) {
        self.turned();
        self.physics.update();
        self.physics.settle();
    }
}
