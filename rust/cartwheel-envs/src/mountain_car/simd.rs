//! Four cars in lanes: `MountainCar::step` with the standard physics.
#![expect(clippy::inline_always, reason = "functions take on the instructions of their caller")]

use cartwheel::{Standard, Transition};

use super::{MountainCar, Physics};
use crate::numeric::integer;
use crate::simd::block::{FourRows, Simd};
use crate::simd::sine::{LIMIT, sin_cos};

impl Simd for MountainCar {
    #[inline(always)]
    fn is_usual(&self) -> bool {
        self.physics.is_standard()
    }

    #[inline(always)]
    fn step_four(rows: &mut FourRows<'_, '_, Self>) {
        let p = Physics::STANDARD;
        let [position, velocity, push, goal_velocity] = rows.lay_out(|env, action| {
            let [position, velocity] = env.state;
            [position, velocity, integer(action - 1), env.goal_velocity]
        });
        let slope = 3.0 * position;
        let (_, cos) = sin_cos(slope);
        let velocity = velocity + (push * p.force + cos * -p.gravity);
        let velocity = velocity.clip(-p.max_speed, p.max_speed);
        let position = (position + velocity).clip(p.min_position, p.max_position);
        let zero = position.all(0.0);
        let stopped = position.eq(position.all(p.min_position)) & velocity.lt(zero);
        let velocity = stopped.select(zero, velocity);
        let terminated =
            (position.ge(position.all(p.goal_position)) & velocity.ge(goal_velocity)).to_array();
        let is_exact = slope.abs().lt(slope.all(LIMIT)).to_array();
        let (position, velocity) = (position.to_array(), velocity.to_array());
        rows.keep(|env, lane| {
            is_exact[lane].then(|| {
                env.state = [position[lane], velocity[lane]];
                Transition { reward: -1.0, terminated: terminated[lane], truncated: false }
            })
        });
    }
}
