//! When finished rows start again, as far as a recorded rollout shows it.

use crate::autoreset::{AutoresetMode, OnDone};

/// What follows the last row of an episode in a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// A *stale* row, no transition: it shows the final observation, and its step only resets.
    NextStep,
    /// The first row of the next episode; the final observation is kept beside the rollout.
    SameStep,
    /// The same, by a masked reset right after the step: what the step returned is kept beside.
    Masked,
    /// Rows that repeat the final observation and the flags until the end of the rollout.
    Frozen,
}

impl Restart {
    /// What rows do in this mode; `on_done` counts only in `DISABLED`.
    pub fn new(mode: AutoresetMode, on_done: OnDone) -> Self {
        match (mode, on_done) {
            (AutoresetMode::NextStep, _) => Self::NextStep,
            (AutoresetMode::SameStep, _) => Self::SameStep,
            (AutoresetMode::Disabled, OnDone::Raise) => Self::Masked,
            (AutoresetMode::Disabled, OnDone::Freeze) => Self::Frozen,
        }
    }

    /// Whether the row after an over one shows the final observation.
    pub(super) fn shows_final(self) -> bool {
        matches!(self, Self::NextStep | Self::Frozen)
    }
}
