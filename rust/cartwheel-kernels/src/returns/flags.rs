//! The ends of episodes, and the bootstrapping there.

use super::error::Error;
use super::time_major::TimeMajor;

/// The flags of a rollout, each `[steps, num_envs]`. As everywhere in this module, flags are bytes, of
/// which every one but zero is true: memory of the caller may hold any.
#[derive(Debug, Clone, Copy)]
pub struct Flags<'a> {
    /// The task reached a terminal state.
    pub terminated: TimeMajor<'a, u8>,
    /// The episode was cut short. Counts only where `terminated` is not set.
    pub truncated: TimeMajor<'a, u8>,
}

impl Flags<'_> {
    /// Steps and environments, if both arrays have the same shape.
    pub(super) fn shape(&self) -> Result<[usize; 2], Error> {
        let shape = self.terminated.shape();
        self.truncated.of_shape("truncated", shape)?;
        Ok(shape)
    }

    /// Terminated and truncated flags of each environment at step `t`.
    pub(super) fn step(&self, t: usize) -> impl Iterator<Item = (u8, u8)> {
        let (terminated, truncated) = (self.terminated.step(t), self.truncated.step(t));
        terminated.iter().copied().zip(truncated.iter().copied())
    }

    /// Whether each environment's episode is over at step `t`.
    pub(super) fn over(&self, t: usize) -> impl Iterator<Item = bool> {
        self.step(t).map(|(terminated, truncated)| terminated | truncated != 0)
    }
}

/// At which ends of episodes the value of the last observation is bootstrapped.
///
/// A row that does not end an episode always bootstraps the value of its next observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bootstrap {
    /// At ends that are truncated and not terminated: the value of a terminal state is 0.
    #[default]
    Truncated,
    /// At all ends, as if tasks continued forever.
    Always,
    /// At no end, as if the time limit were part of the task.
    Never,
}

impl Bootstrap {
    /// The flags that prevent it.
    #[inline]
    pub(super) fn stops(self) -> Stops {
        match self {
            Self::Truncated => Stops { terminated: u8::MAX, truncated: 0 },
            Self::Always => Stops { terminated: 0, truncated: 0 },
            Self::Never => Stops { terminated: u8::MAX, truncated: u8::MAX },
        }
    }
}

/// The flags after which nothing is bootstrapped, as two masks, so that one loop serves every
/// choice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stops {
    terminated: u8,
    truncated: u8,
}

impl Stops {
    /// Whether a row with these flags bootstraps the value of its next observation.
    #[inline]
    pub(super) fn bootstraps(self, terminated: u8, truncated: u8) -> bool {
        (self.terminated & terminated) | (self.truncated & truncated) == 0
    }
}
