//! How episodes end, and what is bootstrapped where they do.

use super::error::Error;
use super::time_major::TimeMajor;

/// The flags of a rollout, each `[steps, num_envs]`.
#[derive(Debug, Clone, Copy)]
pub struct Flags<'a> {
    /// The task reached an end.
    pub terminated: TimeMajor<'a, bool>,
    /// The episode was cut short. Counts only where `terminated` is not set.
    pub truncated: TimeMajor<'a, bool>,
}

impl Flags<'_> {
    /// Steps and environments, if both arrays agree on them.
    pub(super) fn shape(&self) -> Result<[usize; 2], Error> {
        let shape = self.terminated.shape();
        self.truncated.of_shape("truncated", shape)?;
        Ok(shape)
    }

    /// Terminated and truncated flags of each environment at step `t`.
    pub(super) fn step(&self, t: usize) -> impl Iterator<Item = (bool, bool)> {
        let (terminated, truncated) = (self.terminated.step(t), self.truncated.step(t));
        terminated.iter().copied().zip(truncated.iter().copied())
    }

    /// Whether each environment's episode is over at step `t`.
    pub(super) fn over(&self, t: usize) -> impl Iterator<Item = bool> {
        self.step(t).map(|(terminated, truncated)| terminated | truncated)
    }
}

/// Which ends of episodes are worth the value of their last observation.
///
/// A row that ends no episode is always worth the value of its next observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bootstrap {
    /// Those that are truncated and not terminated: the value of a terminal state is 0.
    #[default]
    Truncated,
    /// All of them, as if tasks went on for ever.
    Always,
    /// None, as if a time limit were part of the task.
    Never,
}

impl Bootstrap {
    /// Which flags stop it.
    #[inline]
    pub(super) fn stops(self) -> Stops {
        match self {
            Self::Truncated => Stops { terminated: true, truncated: false },
            Self::Always => Stops { terminated: false, truncated: false },
            Self::Never => Stops { terminated: true, truncated: true },
        }
    }
}

/// The flags after which nothing is bootstrapped; two masks, so that one loop serves every choice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stops {
    terminated: bool,
    truncated: bool,
}

impl Stops {
    /// Whether a row with these flags is worth the value of its next observation.
    #[inline]
    #[expect(clippy::needless_bitwise_bool, reason = "a branch keeps loops from being vectorised")]
    pub(super) fn bootstraps(self, terminated: bool, truncated: bool) -> bool {
        !((self.terminated & terminated) | (self.truncated & truncated))
    }
}
