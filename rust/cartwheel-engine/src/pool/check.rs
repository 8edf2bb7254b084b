//! Conditions that must hold before a call begins; when one does not, nothing has been changed.

use super::Pool;
use crate::call::Call;
use crate::error::Error;
use crate::transition::PhaseTag;

impl Pool {
    /// Checks whether a call of this kind can begin now.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], [`Error::WorkerDied`], [`Error::Corrupt`], [`Error::AlreadyPending`]; for a step also
    /// [`Error::EpisodeOver`], [`Error::NeedsReset`] and [`Error::NeverReset`]; for a settlement
    /// [`Error::NotPending`] when the call before was not a step of rows with external rewards.
    pub fn check(&self, call: Call) -> Result<(), Error> {
        self.check_not_pending()?;
        if self.sent.any() {
            return Err(Error::InFlight { rows: self.sent.rows() });
        }
        match call {
            Call::Step => self.check_rows(highest(&self.phases), 0..self.phases.len()),
            Call::Settle if !self.half_done => Err(Error::NotPending { expected: Call::Settle }),
            Call::Settle | Call::Reset | Call::Call => Ok(()),
        }
    }

    /// Checks whether the pool can be used and no call is pending.
    pub(super) fn check_not_pending(&self) -> Result<(), Error> {
        self.check_usable()?;
        match self.pending() {
            Some(pending) => Err(Error::AlreadyPending { pending, rows: self.unanswered() }),
            None => Ok(()),
        }
    }

    /// Checks whether these rows can be stepped, whose phases are at most `highest`.
    pub(super) fn check_rows(
        &self,
        highest: u8,
        rows: impl Iterator<Item = usize> + Clone,
    ) -> Result<(), Error> {
        let refused = if self.policy.refuse_over { PhaseTag::Over } else { PhaseTag::Failed };
        if highest < refused as u8 {
            return Ok(()); // only a batch that is refused is searched
        }
        let those_in = |phase: PhaseTag| -> Vec<usize> {
            rows.clone().filter(|&row| self.phases[row] == phase as u8).collect()
        };
        let failed = those_in(PhaseTag::Failed);
        if !failed.is_empty() {
            return Err(Error::NeedsReset { rows: failed });
        }
        let unstarted = those_in(PhaseTag::Unstarted);
        if !unstarted.is_empty() {
            return Err(Error::NeverReset { rows: unstarted });
        }
        let over = if self.policy.refuse_over { those_in(PhaseTag::Over) } else { Vec::new() };
        if over.is_empty() { Ok(()) } else { Err(Error::EpisodeOver { rows: over }) }
    }
}

/// The highest of these phases. Every step asks for that of all rows, several times: there is no branch.
pub(super) fn highest(phases: &[u8]) -> u8 {
    phases.iter().fold(0, |highest, phase| highest.max(*phase))
}
