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
            Call::Step => self.check_rows(0..self.phases.len()),
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

    /// Checks whether these rows can be stepped.
    pub(super) fn check_rows(
        &self,
        rows: impl Iterator<Item = usize> + Clone,
    ) -> Result<(), Error> {
        let refused = if self.policy.refuse_over { PhaseTag::Over } else { PhaseTag::Failed };
        // Every step calls this several times, so all rows are checked without a branch. Only a
        // batch that is refused is searched.
        if rows.clone().fold(0, |highest, row| self.phases[row].max(highest)) < refused as u8 {
            return Ok(());
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
