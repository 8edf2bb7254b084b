//! Four pairs of links in lanes: `Acrobot::step` with the standard physics.
#![expect(clippy::inline_always, reason = "functions take on the instructions of their caller")]

use std::f64::consts::PI;

use cartwheel::{Standard, Transition};

use super::{Acrobot, GRAVITY, Physics, State};
use crate::numeric::round;
use crate::simd::block::{FourRows, Simd};
use crate::simd::power::squares;
use crate::simd::sine::{LIMIT, sin_cos};
use crate::simd::{Four, Mask};

impl Simd for Acrobot {
    #[inline(always)]
    fn is_usual(&self) -> bool {
        self.physics.is_standard()
    }

    #[inline(always)]
    fn step_four(rows: &mut FourRows<'_, '_, Self>) {
        let p = Physics::STANDARD;
        let [theta1, theta2, w1, w2, torque] = rows.lay_out(|env, action| {
            let [theta1, theta2, w1, w2] = env.state.values;
            let action = usize::try_from(*action).expect("actions were checked");
            [theta1, theta2, w1, w2, p.avail_torque[action]]
        });
        let ([theta1, theta2, w1, w2], is_exact) = integrate([theta1, theta2, w1, w2], torque);
        let (theta1, theta2) = (wrap(theta1), wrap(theta2));
        let max = theta1.all(PI);
        let is_exact = is_exact & theta1.abs().le(max) & theta2.abs().le(max);
        let w1 = w1.clip(-p.max_vel_1, p.max_vel_1);
        let w2 = w2.clip(-p.max_vel_2, p.max_vel_2);
        let ((sin1, cos1), (sin2, cos2)) = (sin_cos(theta1), sin_cos(theta2));
        let (_, end) = sin_cos(theta2 + theta1);
        let terminated = (-cos1 - end).gt(cos1.all(1.0)).to_array();

        let (is_exact, state) = (is_exact.to_array(), [theta1, theta2, w1, w2].map(Four::to_array));
        let observed = [cos1, sin1, cos2, sin2].map(Four::to_array);
        rows.keep(|env, lane| {
            is_exact[lane].then(|| {
                env.state = State { values: state.map(|four| four[lane]), fresh: false };
                env.observed = observed.map(|four| round(four[lane]));
                let reward = if terminated[lane] { 0.0 } else { -1.0 };
                Transition { reward, terminated: terminated[lane], truncated: false }
            })
        });
    }
}

/// [`Physics::integrate`], and where no angle was too large for it.
#[inline(always)]
fn integrate(state: [Four; 4], torque: Four) -> ([Four; 4], Mask) {
    let dt = Physics::STANDARD.dt;
    let along = |step: f64, slope: [Four; 4]| -> [Four; 4] {
        std::array::from_fn(|at| state[at] + step * slope[at])
    };
    let (k1, first) = derivative(state, torque);
    let (k2, second) = derivative(along(dt / 2.0, k1), torque);
    let (k3, third) = derivative(along(dt / 2.0, k2), torque);
    let (k4, fourth) = derivative(along(dt, k3), torque);
    let after = std::array::from_fn(|at| {
        state[at] + dt / 6.0 * (k1[at] + 2.0 * k2[at] + 2.0 * k3[at] + k4[at])
    });
    (after, first & second & third & fourth)
}

/// [`Physics::derivative`], and where no angle was too large for it.
#[inline(always)]
fn derivative([theta1, theta2, w1, w2]: [Four; 4], torque: Four) -> ([Four; 4], Mask) {
    let Physics { link_mass_1: m1, link_mass_2: m2, link_length_1: l1, .. } = *Physics::STANDARD;
    let Physics { link_com_pos_1: lc1, link_com_pos_2: lc2, .. } = *Physics::STANDARD;
    let Physics { link_moi: moment, squares: lengths, .. } = *Physics::STANDARD;
    let [length_squared, inner_squared, outer_squared] = lengths;
    let (both, first) = (theta1 + theta2 - PI / 2.0, theta1 - PI / 2.0);
    let ((sin2, cos2), (_, cos_both), (_, cos_first)) =
        (sin_cos(theta2), sin_cos(both), sin_cos(first));
    let d1 = m1 * inner_squared
        + m2 * (length_squared + outer_squared + 2.0 * l1 * lc2 * cos2)
        + moment
        + moment;
    let d2 = m2 * (outer_squared + l1 * lc2 * cos2) + moment;
    let phi2 = m2 * lc2 * GRAVITY * cos_both;
    let phi1 = -m2 * l1 * lc2 * squares(w2) * sin2 - 2.0 * m2 * l1 * lc2 * w2 * w1 * sin2
        + (m1 * lc1 + m2 * l1) * GRAVITY * cos_first
        + phi2;
    let drive = torque + d2 / d1 * phi1 - m2 * l1 * lc2 * squares(w1) * sin2 - phi2;
    let a2 = drive / (m2 * outer_squared + moment - squares(d2) / d1);
    let a1 = -(d2 * a2 + phi1) / d1;
    let is_small = |angle: Four| angle.abs().lt(angle.all(LIMIT));
    ([w1, w2, a1, a2], is_small(theta2) & is_small(both) & is_small(first))
}

/// `super::wrap` of angles that need at most two turns; others remain larger than π.
#[inline(always)]
fn wrap(angle: Four) -> Four {
    let (max, turn) = (angle.all(PI), 2.0 * PI);
    let less = |angle: Four| angle.gt(max).select(angle - turn, angle);
    let more = |angle: Four| angle.lt(-max).select(angle + turn, angle);
    more(more(less(less(angle))))
}
