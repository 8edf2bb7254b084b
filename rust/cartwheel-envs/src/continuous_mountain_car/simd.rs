//! Four cars in lanes: `ContinuousMountainCar::step` with the standard physics, for narrow states and
//! forces within bounds.
//!
//! The state is `float32`. A sum or product of two of them that is rounded to `float64` and then to
//! `float32` is the one that is rounded once: 53 bits are more than twice 24 (S. A. Figueroa, "When is
//! double rounding innocuous?", 1995).
#![expect(clippy::inline_always, reason = "functions take on the instructions of their caller")]

use cartwheel::{Standard, Transition};

use super::{ContinuousMountainCar, Physics, State};
use crate::numeric::round;
use crate::simd::block::{FourRows, Simd};
use crate::simd::power::squares;
use crate::simd::sine::{LIMIT, sin_cos};

impl Simd for ContinuousMountainCar {
    #[inline(always)]
    fn is_usual(&self) -> bool {
        self.physics.is_standard() && matches!(self.state, State::Narrow(_))
    }

    #[inline(always)]
    fn step_four(rows: &mut FourRows<'_, '_, Self>) {
        let p = Physics::STANDARD;
        let [position, velocity, force, goal_velocity] = rows.lay_out(|env, action| {
            let (State::Narrow(narrow), [force]) = (env.state, **action) else {
                unreachable!("the state is usual")
            };
            let [position, velocity] = narrow.map(f64::from);
            [position, velocity, f64::from(force), env.goal_velocity]
        });
        let narrow = |number: f64| position.all(number).rounded();
        let slope = (3.0 * position).rounded();
        let (_, cos) = sin_cos(slope);
        let push = (force * narrow(p.power)).rounded();
        let acceleration = (push - (0.0025 * cos).rounded()).rounded();
        let velocity = (velocity + acceleration).rounded();

        // Compared with the goal's velocity; a Python float if it was clipped.
        let (mut compared, mut goal, mut clipped) = (velocity, goal_velocity.rounded(), velocity);
        for (speed, is_beyond) in [
            (p.max_speed, velocity.gt(narrow(p.max_speed))),
            (-p.max_speed, velocity.lt(narrow(-p.max_speed))),
        ] {
            clipped = is_beyond.select(narrow(speed), clipped);
            compared = is_beyond.select(velocity.all(speed), compared);
            goal = is_beyond.select(goal_velocity, goal);
        }
        let position = (position + clipped).rounded();
        let (low, high) = (narrow(p.min_position), narrow(p.max_position));
        let position = position.gt(high).select(high, position);
        let position = position.lt(low).select(low, position);
        let zero = position.all(0.0);
        let is_stopped = position.eq(low) & clipped.lt(zero);
        let velocity = is_stopped.select(zero, clipped);
        let (compared, goal) =
            (is_stopped.select(zero, compared), is_stopped.select(goal_velocity, goal));

        let terminated = position.ge(narrow(p.goal_position)) & compared.ge(goal);
        let prize = terminated.select(position.all(100.0), zero);
        let reward = (prize - squares(force) * 0.1).to_array();
        let is_within = force.ge(narrow(p.min_action)) & force.le(narrow(p.max_action));
        let is_exact = (is_within & slope.abs().lt(slope.all(LIMIT))).to_array();
        let terminated = terminated.to_array();
        let (position, velocity) = (position.to_array(), velocity.to_array());
        rows.keep(|env, lane| {
            is_exact[lane].then(|| {
                env.state = State::Narrow([round(position[lane]), round(velocity[lane])]);
                let terminated = terminated[lane];
                Transition { reward: reward[lane], terminated, truncated: false }
            })
        });
    }
}
