//! MountainCarContinuous: the mountain car with a continuous force.
//!
//! Source: A. W. Moore (1990), as in Gymnasium 1.4.0, `classic_control/continuous_mountain_car.py`.
//!
//! | | |
//! |---|---|
//! | action | force, clipped to ±1; `float32[1]` |
//! | observation | position (m), velocity (m/step); `float32[2]` |
//! | reward | −0.1 × action², and 100 at the goal |
//! | terminates | position at least 0.45 with a velocity of at least `goal_velocity` |
//!
//! Gymnasium computes in `float64` on the first step after a reset and in `float32` afterwards,
//! because it stores the state as `float32`; an action out of bounds becomes a Python float in
//! between. All of that affects the last bits, so this file does the same.

use std::sync::Arc;

use cartwheel::{
    DType, Env, Error, Failure, Parameter, ParameterValue, Rng, Space, Spaces, Standard,
    Transition, Tuned,
};

use crate::libm::square;
use crate::mountain_car::{Options, Start};
use crate::numeric::round;

#[cfg(target_arch = "x86_64")]
mod simd;

physics! {
    struct Physics {
        min_action: f64 = -1.0,
        max_action: f64 = 1.0,
        min_position: f64 = -1.2,
        max_position: f64 = 0.6,
        max_speed: f64 = 0.07,
        goal_position: f64 = 0.45,
        power: f64 = 0.0015,
    }
}

/// The state, and its float type.
#[derive(Debug, Clone, Copy)]
enum State {
    /// After a reset.
    Wide([f64; 2]),
    /// After a step.
    Narrow([f32; 2]),
}

/// A car in a valley, with a continuous force.
#[derive(Debug, Clone)]
pub struct ContinuousMountainCar {
    state: State,
    goal_velocity: f64,
    physics: Tuned<Physics>,
}

/// The force on the car: a NumPy `float32` within bounds, a Python float outside.
#[derive(Debug, Clone, Copy)]
enum Push {
    Narrow(f32),
    Wide(f64),
}

impl Push {
    /// `force * power - 0.0025 * math.cos(slope)`.
    #[inline]
    fn acceleration(self, power: f64, slope: f64) -> Self {
        let pull = 0.0025 * slope.cos();
        match self {
            Self::Narrow(force) => Self::Narrow(force * round(power) - round(pull)),
            Self::Wide(force) => Self::Wide(force * power - pull),
        }
    }
}

/// The rest of a step in one float type: `$round` converts a Python float to that type.
macro_rules! advance {
    ($car:ident, $position:expr, $velocity:expr, $round:expr) => {{
        let round = $round;
        let Physics { min_position, max_position, max_speed, goal_position, .. } = *$car.physics;
        let (mut position, mut velocity) = ($position, $velocity);
        // A clipped action becomes a Python float, and is then compared as one.
        let mut fast = velocity >= round($car.goal_velocity);
        if velocity > round(max_speed) {
            velocity = round(max_speed);
            fast = max_speed >= $car.goal_velocity;
        }
        if velocity < round(-max_speed) {
            velocity = round(-max_speed);
            fast = -max_speed >= $car.goal_velocity;
        }
        position += velocity;
        let mut there = position >= round(goal_position);
        if position > round(max_position) {
            position = round(max_position);
            there = max_position >= goal_position;
        }
        if position < round(min_position) {
            position = round(min_position);
            there = min_position >= goal_position;
        }
        #[expect(clippy::float_cmp, reason = "the clipped position is that very number")]
        if position == round(min_position) && velocity < 0.0 {
            velocity = 0.0;
            fast = 0.0 >= $car.goal_velocity;
        }
        (position, velocity, there && fast)
    }};
}

impl Env for ContinuousMountainCar {
    type Options = Options;
    type ResetOptions = Start;
    type Action = [f32; 1];
    type Observation = [f32; 2];
    type Info = ();
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        let Physics { min_position, max_position, max_speed, .. } = *Physics::STANDARD;
        let observation = Space::float_box(&[min_position, -max_speed], &[max_position, max_speed]);
        Spaces { observation, action: Space::symmetric_box(&[1.0]) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        let Options { goal_velocity } = *options;
        Ok(Self { state: State::Wide([0.0; 2]), goal_velocity, physics: Tuned::default() })
    }

    #[inline]
    fn reset(&mut self, rng: &mut Rng, start: &Start) -> Result<(), Failure> {
        self.state = State::Wide([rng.uniform(start.low, start.high), 0.0]);
        Ok(())
    }

    #[inline]
    fn step(&mut self, &[action]: &[f32; 1], _: &mut Rng) -> Result<Transition, Failure> {
        let Physics { min_action, max_action, power, .. } = *self.physics;
        // `min(max(action, min_action), max_action)`, which returns one of the three unchanged.
        let push = if action < round(min_action) {
            Push::Wide(min_action.min(max_action))
        } else if action > round(max_action) {
            Push::Wide(max_action)
        } else {
            Push::Narrow(action)
        };
        let (state, terminated) = match self.state {
            State::Wide([position, velocity]) => {
                let acceleration = match push.acceleration(power, 3.0 * position) {
                    Push::Narrow(narrow) => f64::from(narrow),
                    Push::Wide(wide) => wide,
                };
                let wide: fn(f64) -> f64 = |value| value;
                let (position, velocity, terminated) =
                    advance!(self, position, velocity + acceleration, wide);
                ([round(position), round(velocity)], terminated)
            }
            State::Narrow([position, velocity]) => {
                let acceleration = match push.acceleration(power, f64::from(3.0 * position)) {
                    Push::Narrow(narrow) => narrow,
                    Push::Wide(wide) => round(wide),
                };
                let (position, velocity, terminated) =
                    advance!(self, position, velocity + acceleration, round);
                ([position, velocity], terminated)
            }
        };
        self.state = State::Narrow(state);
        let prize = if terminated { 100.0 } else { 0.0 };
        let reward = prize - square(f64::from(action)) * 0.1;
        Ok(Transition { reward, terminated, truncated: false })
    }

    in_simd! {}

    #[inline]
    fn observe(&self, observation: &mut [f32; 2]) {
        *observation = match self.state {
            State::Wide(state) => state.map(round),
            State::Narrow(state) => state,
        };
    }

    #[inline]
    fn info(&self) {}

    cartwheel::state! { state, goal_velocity, physics }

    cartwheel::parameters! {
        state: state,
        goal_velocity: goal_velocity,
        min_action: physics.min_action,
        max_action: physics.max_action,
        min_position: physics.min_position,
        max_position: physics.max_position,
        max_speed: physics.max_speed,
        goal_position: physics.goal_position,
        power: physics.power,
    }

    fn parameters_changed(&mut self) {
        self.physics.settle();
    }
}

/// An array with the float type of the state.
impl Parameter for State {
    fn get(&self) -> ParameterValue {
        match self {
            Self::Wide(state) => state.get(),
            Self::Narrow(state) => state.get(),
        }
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let narrow = matches!(&value, ParameterValue::Array(array) if array.dtype() == DType::F32);
        let mut state = [0.0; 2];
        state.set(value)?;
        *self = if narrow { Self::Narrow(state.map(round)) } else { Self::Wide(state) };
        Ok(())
    }
}

/// The bits of the wide state, or of the narrow one.
impl cartwheel::State for State {
    fn save(&self, state: &mut Vec<u8>) {
        match self {
            Self::Wide(values) => (Some(*values), None::<[f32; 2]>).save(state),
            Self::Narrow(values) => (None::<[f64; 2]>, Some(*values)).save(state),
        }
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        match cartwheel::State::load(state)? {
            (Some(values), None) => Ok(Self::Wide(values)),
            (None, Some(values)) => Ok(Self::Narrow(values)),
            _ => Err(Failure::new("a state is either wide or narrow")),
        }
    }
}
