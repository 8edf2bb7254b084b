//! Restarts of finished rows, as a recorded rollout shows them.

use cartwheel_core::{AutoresetMode, OnDone};

/// The row after the last one of an episode in a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// A *stale* row, which is not a transition: it shows the final observation, and its step only
    /// resets.
    NextStep,
    /// The first row of the next episode; the final observation is kept separately.
    SameStep,
    /// The same, through a masked reset right after the step; the step's own result is kept
    /// separately.
    Masked,
    /// Rows that repeat the final observation and the flags until the end of the rollout.
    Frozen,
}

impl Restart {
    /// The behavior of rows in this mode; `on_done` counts only in `DISABLED`.
    pub fn new(mode: AutoresetMode, on_done: OnDone) -> Self {
        match (mode, on_done) {
            (AutoresetMode::NextStep, _) => Self::NextStep,
            (AutoresetMode::SameStep, _) => Self::SameStep,
            (AutoresetMode::Disabled, OnDone::Raise) => Self::Masked,
            (AutoresetMode::Disabled, OnDone::Freeze) => Self::Frozen,
        }
    }

    /// Whether the row after an over row shows the final observation.
    pub(super) fn shows_final(self) -> bool {
        matches!(self, Self::NextStep | Self::Frozen)
    }
}
