//! Several poles in the lanes of vector instructions.
//!
//! These are the same operations in the same order as in [`CartPole::step`], so they give the same
//! bits: vector instructions round like scalar ones, and no operations are fused that are not fused
//! there. Some rows at a time are laid out as a structure of arrays, stepped, and written back.
//!
//! # Invariants
//!
//! 1. A function with target features is called only where the processor was found to have them.
#![expect(unsafe_code, reason = "calls a function with target features, see the invariants")]

use std::sync::OnceLock;

use cartwheel::BlockOf;

use super::{CartPole, PHYSICS};
use crate::sine::{self, sin_cos};

/// Number of rows for each call: enough to make the call's cost negligible, few enough for the
/// first cache.
pub(super) const BLOCK: usize = 64;
/// Number of rows that are laid out together: four vectors of four, or two.
const MANY: usize = 16;
const FEW: usize = 8;

/// Steps the rows of a block that have the standard physics and small angles, if the machine
/// supports it.
pub(super) fn step_block(block: &mut BlockOf<'_, '_, CartPole>) {
    if is_possible() {
        // SAFETY: both features have been detected (invariant 1).
        unsafe { step_with_vectors(block) }
    }
}

/// Whether the processor has the vectors that this code needs, and the C library the sines.
fn is_possible() -> bool {
    static POSSIBLE: OnceLock<bool> = OnceLock::new();
    *POSSIBLE.get_or_init(|| {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && sine::is_exact()
    })
}

#[target_feature(enable = "avx2,fma")]
fn step_with_vectors(block: &mut BlockOf<'_, '_, CartPole>) {
    let mut first = 0;
    while first + MANY <= block.len() {
        step_group::<MANY>(block, first);
        first += MANY;
    }
    if first + FEW <= block.len() {
        step_group::<FEW>(block, first);
    }
}

/// Steps rows `first` to `first + LANES`, unless one of them is a special case.
#[target_feature(enable = "avx2,fma")]
fn step_group<const LANES: usize>(block: &mut BlockOf<'_, '_, CartPole>, first: usize) {
    let mut envs = block.envs[first..first + LANES].iter();
    if envs.all(|env| env.physics.is_standard() && env.state[2].abs() < sine::LIMIT) {
        step_lanes::<LANES>(block, first);
    }
}

/// Steps rows `first` to `first + LANES`, which have the standard physics and small angles.
#[target_feature(enable = "avx2,fma")]
fn step_lanes<const LANES: usize>(block: &mut BlockOf<'_, '_, CartPole>, first: usize) {
    let p = PHYSICS;
    let envs: &[CartPole; LANES] =
        (&block.envs[first..first + LANES]).try_into().expect("as long as that");
    let [mut x, mut x_dot, mut theta, mut theta_dot, mut force] = [[0.0; LANES]; 5];
    for lane in 0..LANES {
        [x[lane], x_dot[lane], theta[lane], theta_dot[lane]] = envs[lane].state;
        force[lane] = if block.action(first + lane) == 1 { p.force_mag } else { -p.force_mag };
    }
    let (sin, cos) = sin_cos(theta);
    let mut terminated = [false; LANES];
    for lane in 0..LANES {
        let (sin, cos) = (sin[lane], cos[lane]);
        let temp = (force[lane] + p.polemass_length * (theta_dot[lane] * theta_dot[lane]) * sin)
            / p.total_mass;
        let theta_acc = (p.gravity * sin - cos * temp)
            / (p.length * (4.0 / 3.0 - p.masspole * (cos * cos) / p.total_mass));
        let x_acc = temp - p.polemass_length * theta_acc * cos / p.total_mass;
        x[lane] += p.tau * x_dot[lane];
        theta[lane] += p.tau * theta_dot[lane];
        x_dot[lane] += p.tau * x_acc;
        theta_dot[lane] += p.tau * theta_acc;
        let outside = [
            x[lane] < -p.x_threshold,
            x[lane] > p.x_threshold,
            theta[lane] < -p.theta_threshold_radians,
            theta[lane] > p.theta_threshold_radians,
        ];
        terminated[lane] = outside.contains(&true);
    }
    for lane in 0..LANES {
        let row = first + lane;
        if block.running[row] {
            block.envs[row].state = [x[lane], x_dot[lane], theta[lane], theta_dot[lane]];
            block.transitions[row] = Some(block.envs[row].outcome(terminated[lane]));
        }
    }
}
