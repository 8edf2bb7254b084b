//! Four pendulums in lanes: `Pendulum::step` with the standard physics.
#![expect(clippy::inline_always, reason = "functions take on the instructions of their caller")]

use std::f64::consts::PI;

use cartwheel::{Standard, Transition};

use super::{Pendulum, Physics};
use crate::numeric::round;
use crate::simd::Four;
use crate::simd::block::{FourRows, Simd};
use crate::simd::power::{squares, squares_f32};
use crate::simd::sine::{LIMIT, sin_cos};

impl Simd for Pendulum {
    #[inline(always)]
    fn is_usual(&self) -> bool {
        self.physics.is_standard()
    }

    #[inline(always)]
    fn step_four(rows: &mut FourRows<'_, '_, Self>) {
        let p = Physics::STANDARD;
        let [theta, speed, sin, action] = rows.lay_out(|env, action| {
            let [theta, speed] = env.state;
            [theta, speed, env.sin_cos[0], f64::from(action[0])]
        });
        // Products of two `float32` are exact here, and then rounded as there.
        let torque = action.clip(-p.max_torque, p.max_torque);
        let effort = (f64::from(0.001_f32) * squares_f32(torque)).rounded();
        let push = (f64::from(p.torque_gain) * torque).rounded();

        let angle = turned_back(theta + PI) - PI;
        let cost = squares(angle) + 0.1 * squares(speed) + effort;
        let speed = speed + (p.gravity_gain * sin + push) * p.dt;
        let speed = speed.clip(-p.max_speed, p.max_speed);
        let after = theta + speed * p.dt;
        let (sin, cos) = sin_cos(after);

        let is_exact = theta.abs().lt(theta.all(LIMIT)) & after.abs().lt(theta.all(LIMIT));
        let (is_exact, numbers) = (is_exact.to_array(), [after, speed, sin, cos, torque, -cost]);
        let numbers = numbers.map(Four::to_array);
        rows.keep(|env, lane| {
            is_exact[lane].then(|| {
                let [theta, speed, sin, cos, torque, reward] = numbers.map(|four| four[lane]);
                env.state = [theta, speed];
                env.sin_cos = [sin, cos];
                env.last_u = Some(round(torque));
                Transition { reward, terminated: false, truncated: false }
            })
        });
    }
}

/// `floor_mod(angle, 2π)` of an angle below [`LIMIT`]. The fused remainder is exact; the quotient may
/// have been rounded up to an integer, and is one too large then.
#[inline(always)]
fn turned_back(angle: Four) -> Four {
    let (turn, zero) = (angle.all(2.0 * PI), angle.all(0.0));
    let rest = (-(angle / turn).trunc()).mul_add(turn, angle);
    let rest = (angle.gt(zero) & rest.lt(zero)).select(rest + turn, rest);
    let rest = (angle.lt(zero) & rest.gt(zero)).select(rest - turn, rest);
    rest.lt(zero).select(rest + turn, rest)
}
