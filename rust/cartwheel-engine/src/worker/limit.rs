//! The time limit of a call.

use std::time::{Duration, Instant};

/// The time limit of a call, and when it began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    start: Instant,
    timeout: Duration,
}

impl Limit {
    /// A limit of `timeout` from now on.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { start: Instant::now(), timeout }
    }

    /// The time that the call may wait in total.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The time that is left.
    pub(crate) fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.start.elapsed())
    }

    /// Whether no time is left.
    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}
