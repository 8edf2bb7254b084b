//! The result of a step.

/// The result of one step of one row, apart from the observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition {
    /// The reward.
    pub reward: f64,
    /// The task reached an end.
    pub terminated: bool,
    /// The episode was cut short, usually by a time limit.
    pub truncated: bool,
}

impl Transition {
    /// The transition of a reset: no reward, not over.
    pub const RESET: Self = Self { reward: 0.0, terminated: false, truncated: false };

    /// The transition of a row that lost its environment: the episode ends here.
    pub const CUT: Self = Self { reward: 0.0, terminated: false, truncated: true };

    /// Whether the episode is over.
    pub fn is_over(&self) -> bool {
        self.terminated || self.truncated
    }
}
