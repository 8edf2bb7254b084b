//! The choice of a thread to stay attached to the interpreter while its call waits for rows.
//!
//! To detach and to attach again takes about as long as two steps of a native `CartPole`. A thread that
//! waits for other threads must detach, since they may need the interpreter. A thread that steps all
//! rows itself stays attached as long as batches are brief: the other threads of the program are held
//! up less than by their own switches, which Python makes every 5 ms.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// The longest batch during which a thread stays attached.
const BRIEF: Duration = Duration::from_micros(10);
/// One in this many waits is measured: reading the clock twice takes as long as detaching.
const MEASURED: u32 = 16;

/// The choice of a pool.
#[derive(Debug)]
pub(super) enum GilPolicy {
    /// Other threads or processes step rows.
    Release,
    /// The calling thread steps Python environments, which need the interpreter.
    Hold,
    /// The calling thread steps native rows. The number counts waits.
    HoldWhileBrief { is_brief: bool, waits: u32 },
}

impl GilPolicy {
    /// Of a pool that steps native rows or others with this many threads.
    pub(super) fn new(inline: bool, native: bool, threads: usize) -> Self {
        match (inline, native && threads == 1) {
            (true, _) => Self::Hold,
            (false, true) => Self::HoldWhileBrief { is_brief: false, waits: 0 },
            (false, false) => Self::Release,
        }
    }

    /// Whether the calling thread steps all native rows.
    pub(super) const fn is_alone(&self) -> bool {
        matches!(self, Self::HoldWhileBrief { .. })
    }

    /// Calls `wait`, attached or not.
    #[expect(clippy::inline_always, reason = "a move of the result waits for the stores before it")]
    #[inline(always)]
    pub(super) fn during<T: Send>(&mut self, py: Python<'_>, wait: impl FnOnce() -> T + Send) -> T {
        match self {
            Self::Release => py.detach(wait),
            Self::Hold => wait(),
            Self::HoldWhileBrief { is_brief, waits } => {
                let began = (*waits == 0).then(Instant::now);
                *waits = (*waits + 1) % MEASURED;
                let outcome = if *is_brief { wait() } else { py.detach(wait) };
                if let Some(began) = began {
                    *is_brief = began.elapsed() < BRIEF;
                }
                outcome
            }
        }
    }
}
