//! The transitions of a rollout, the input of every estimator.

use std::num::NonZero;

use super::flags::{Bootstrap, Flags};
use super::per_step::PerStep;
use super::time_major::TimeMajor;

/// Rewards and flags of a rollout, all `[steps, num_envs]`, and the settings of the sums.
#[derive(Debug, Clone, Copy)]
pub struct Transitions<'a, F> {
    /// The reward of each step.
    pub rewards: TimeMajor<'a, F>,
    /// Ends of episodes.
    pub flags: Flags<'a>,
    /// Rows that are transitions, as [`valid_mask`](super::valid_mask()) writes them; `None`: all.
    /// Other rows may hold anything, in every array.
    pub valid: Option<TimeMajor<'a, u8>>,
    /// The discount.
    pub gamma: PerStep<'a, F>,
    /// At which ends of episodes the value of the last observation is bootstrapped.
    pub bootstrap: Bootstrap,
    /// Number of threads; `None`: as many as pay. The result does not depend on it.
    pub num_threads: Option<NonZero<usize>>,
}
