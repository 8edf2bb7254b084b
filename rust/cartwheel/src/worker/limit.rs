//! How long a call may last.

use std::time::{Duration, Instant};

/// How long a call may wait, and since when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    start: Instant,
    timeout: Duration,
}

impl Limit {
    /// So long from now on.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { start: Instant::now(), timeout }
    }

    /// How long the call may wait in all.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// What is left of it.
    pub(crate) fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.start.elapsed())
    }

    /// Whether nothing is left.
    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}
