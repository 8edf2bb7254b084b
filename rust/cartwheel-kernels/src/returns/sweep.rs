//! The transitions of a rollout, the input of every estimator: checked, and step by step for the loops.

use std::num::NonZero;
use std::ops::Range;

use super::error::Error;
use super::flags::{Bootstrap, Flags, Stops};
use super::float::Float;
use super::per_step::{PerStep, Steps};
use super::split;
use super::time_major::{TimeMajor, check_count};

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

/// Transitions whose arrays agree in shape and whose discounts are in range.
#[derive(Debug)]
pub(super) struct Sweep<'a, F> {
    shape: [usize; 2],
    rewards: TimeMajor<'a, F>,
    flags: Flags<'a>,
    valid: Steps<'a, u8>,
    gamma: Steps<'a, F>,
    /// The valid rows after the last step: none.
    beyond: Vec<u8>,
    stops: Stops,
    shares: Vec<Range<usize>>,
}

/// One step of some environments. All slices have the same length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'s, F> {
    pub(super) rewards: &'s [F],
    pub(super) gamma: &'s [F],
    pub(super) rows: &'s [Row],
}

impl<F> Step<'_, F> {
    /// The same step with slices of length `len`, so that the compiler can drop the bounds checks.
    #[inline]
    pub(super) fn of_len(&self, len: usize) -> Self {
        Self { rewards: &self.rewards[..len], gamma: &self.gamma[..len], rows: &self.rows[..len] }
    }
}

impl<'a, F: Float> Sweep<'a, F> {
    /// Checks the transitions.
    pub(super) fn new(transitions: &Transitions<'a, F>) -> Result<Self, Error> {
        let Transitions { rewards, flags, valid, gamma, bootstrap, num_threads } = *transitions;
        let shape = rewards.shape();
        flags.terminated.of_shape("terminated", shape)?;
        flags.truncated.of_shape("truncated", shape)?;
        let valid = match valid {
            Some(valid) => Steps::Each(valid.of_shape("valid", shape)?),
            None => Steps::Same(vec![1; shape[1]]),
        };
        Ok(Self {
            shape,
            rewards,
            flags,
            gamma: gamma.checked("gamma", shape, &valid)?,
            valid,
            beyond: vec![0; shape[1]],
            stops: bootstrap.stops(),
            shares: split::shares(shape, num_threads),
        })
    }

    /// Number of steps.
    pub(super) fn steps(&self) -> usize {
        self.shape[0]
    }

    /// A further array of the rollout.
    pub(super) fn array<'b, T>(
        &self,
        what: &'static str,
        array: TimeMajor<'b, T>,
    ) -> Result<TimeMajor<'b, T>, Error> {
        array.of_shape(what, self.shape)
    }

    /// A further array of the rollout, or zeros.
    pub(super) fn array_or_zeros<'b>(
        &self,
        what: &'static str,
        array: Option<TimeMajor<'b, F>>,
    ) -> Result<Steps<'b, F>, Error> {
        match array {
            Some(array) => self.array(what, array).map(Steps::Each),
            None => Ok(Steps::Same(vec![F::ZERO; self.shape[1]])),
        }
    }

    /// A number in `[0, 1]` for each row.
    pub(super) fn per_step<'b>(
        &self,
        what: &'static str,
        numbers: PerStep<'b, F>,
    ) -> Result<Steps<'b, F>, Error> {
        numbers.checked(what, self.shape, &self.valid)
    }

    /// Refuses an output that does not have a cell for each row.
    pub(super) fn check_output<T>(&self, what: &'static str, cells: &[T]) -> Result<(), Error> {
        check_count(what, cells, self.shape[0] * self.shape[1])
    }

    /// The environments that each thread computes.
    pub(super) fn shares(&self) -> &[Range<usize>] {
        &self.shares
    }

    /// Step `t` of the environments `envs`; the meaning of their flags is written to `rows`.
    #[inline(always)]
    pub(super) fn step<'s>(
        &'s self,
        t: usize,
        envs: &Range<usize>,
        rows: &'s mut [Row],
    ) -> Step<'s, F> {
        let following = if t + 1 < self.shape[0] { self.valid.step(t + 1) } else { &self.beyond };
        read_rows(
            [self.flags.terminated.step(t), self.flags.truncated.step(t)]
                .map(|flags| &flags[envs.clone()]),
            [self.valid.step(t), following].map(|valid| &valid[envs.clone()]),
            self.stops,
            rows,
        );
        Step {
            rewards: &self.rewards.step(t)[envs.clone()],
            gamma: &self.gamma.step(t)[envs.clone()],
            rows,
        }
    }
}

/// The meaning of the flags of one step; `following` are the valid rows of the next step.
#[inline(always)]
#[expect(clippy::needless_bitwise_bool, reason = "a branch keeps loops from being vectorized")]
fn read_rows(
    [terminated, truncated]: [&[u8]; 2],
    [valid, following]: [&[u8]; 2],
    stops: Stops,
    rows: &mut [Row],
) {
    let n = rows.len();
    let (terminated, truncated) = (&terminated[..n], &truncated[..n]);
    let (valid, following) = (&valid[..n], &following[..n]);
    for i in 0..n {
        rows[i] = Row::new(
            valid[i] != 0,
            stops.bootstraps(terminated[i], truncated[i]),
            ((terminated[i] | truncated[i]) == 0) & (following[i] != 0),
        );
    }
}

/// Selection of the values of a row.
///
/// The loops select by these bits. One byte for all questions keeps the loops vectorized; separate
/// arrays of flags do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Row(u8);

const VALID: u8 = 1;
const BOOTSTRAPS: u8 = 2;
const GOES_ON: u8 = 4;

impl Row {
    /// A row that is `valid`, or not; that `bootstraps` the value of its next observation, or not;
    /// and whose episode `goes_on` in a valid row of the next step, or not.
    #[inline]
    pub(super) fn new(valid: bool, bootstraps: bool, goes_on: bool) -> Self {
        let bit = |flag: bool, bit: u8| u8::from(flag) * bit;
        Self(bit(valid, VALID) | bit(bootstraps, BOOTSTRAPS) | bit(goes_on, GOES_ON))
    }

    /// Whether the row is a transition.
    #[inline]
    pub(super) fn valid(self) -> bool {
        self.0 & VALID != 0
    }

    /// Whether the row bootstraps the value of its next observation.
    #[inline]
    pub(super) fn bootstraps(self) -> bool {
        self.0 & BOOTSTRAPS != 0
    }

    /// Whether the results of the next row belong to the same episode.
    #[inline]
    pub(super) fn goes_on(self) -> bool {
        self.0 & GOES_ON != 0
    }

    /// Whether the row is the last one of its episode in the rollout, and bootstraps.
    #[inline]
    pub(super) fn ends_in_value(self) -> bool {
        self.0 & (BOOTSTRAPS | GOES_ON) == BOOTSTRAPS
    }
}
