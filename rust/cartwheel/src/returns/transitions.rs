//! The transitions of a rollout: what every estimator starts from.

use std::num::NonZero;

use super::flags::{Bootstrap, Flags};
use super::per_step::PerStep;
use super::time_major::TimeMajor;

/// Rewards and flags of a rollout, all `[steps, num_envs]`, and how they are added up.
#[derive(Debug, Clone, Copy)]
pub struct Transitions<'a, F> {
    /// What each step earned.
    pub rewards: TimeMajor<'a, F>,
    /// Where episodes end.
    pub flags: Flags<'a>,
    /// Which rows are transitions, as [`valid_mask`](super::valid_mask) gives them; `None`: all. Other
    /// rows may hold anything, in every array.
    pub valid: Option<TimeMajor<'a, bool>>,
    /// The discount.
    pub gamma: PerStep<'a, F>,
    /// Which ends of episodes are worth the value of their last observation.
    pub bootstrap: Bootstrap,
    /// Threads to compute on; `None`: as many as pay. The result does not depend on it.
    pub num_threads: Option<NonZero<usize>>,
}
