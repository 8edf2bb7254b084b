//! Four poles in lanes: `CartPole::step` with the standard physics, for small angles.
#![expect(clippy::inline_always, reason = "functions take on the instructions of their caller")]

use cartwheel::Standard;

use super::{CartPole, Physics};
use crate::simd::Four;
use crate::simd::block::{FourRows, Simd};
use crate::simd::sine::{SMALL, sin_cos_of_small};

impl Simd for CartPole {
    #[inline(always)]
    fn is_usual(&self) -> bool {
        self.physics.is_standard() && self.state[2].abs() < SMALL
    }

    #[inline(always)]
    fn step_four(rows: &mut FourRows<'_, '_, Self>) {
        let p = Physics::STANDARD;
        let [x, x_dot, theta, theta_dot, force] = rows.lay_out(|env, action| {
            let [x, x_dot, theta, theta_dot] = env.state;
            [x, x_dot, theta, theta_dot, if *action == 1 { p.force_mag } else { -p.force_mag }]
        });
        let (sin, cos) = sin_cos_of_small(theta);
        let temp = (force + p.polemass_length * (theta_dot * theta_dot) * sin) / p.total_mass;
        let theta_acc = (p.gravity * sin - cos * temp)
            / (p.length * (4.0 / 3.0 - p.masspole * (cos * cos) / p.total_mass));
        let x_acc = temp - p.polemass_length * theta_acc * cos / p.total_mass;
        let (x, theta) = (x + p.tau * x_dot, theta + p.tau * theta_dot);
        let (x_dot, theta_dot) = (x_dot + p.tau * x_acc, theta_dot + p.tau * theta_acc);

        let far = x.lt(x.all(-p.x_threshold)) | x.gt(x.all(p.x_threshold));
        let limit = p.theta_threshold_radians;
        let terminated = (far | theta.lt(x.all(-limit)) | theta.gt(x.all(limit))).to_array();
        let state = [x, x_dot, theta, theta_dot].map(Four::to_array);
        rows.keep(|env, lane| {
            env.state = state.map(|numbers| numbers[lane]);
            Some(env.outcome(terminated[lane]))
        });
    }
}
