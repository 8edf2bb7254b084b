//! Steps by halves: between them, the owner of the pool computes rewards and flags of the rows.
//!
//! The first half is a round without its settlement, and keeps what the rows show. The second one
//! copies that to the batch that the caller gets, and settles the rows as any step does: nothing of a
//! row changes between the two. To ask the environments again would load the memory of all of them
//! into the cache of one thread.

use cartwheel_abi::{SHOW, STEP};
use cartwheel_core::Transition;

use super::{NativeRows, Place};
use crate::error::Error;
use crate::memory::ActionColumns;
use crate::native::mailbox::ExternalRewards;
use crate::transition::PhaseTag;

impl NativeRows {
    /// Ends the first half: the rows are in the phases that they had before.
    ///
    /// # Errors
    ///
    /// As [`NativeRows::step`].
    pub(super) fn await_rewards(&mut self, place: &mut Place<'_>) -> Result<(), Error> {
        let count = place.rows.len();
        self.shown.keep(
            &self.observations,
            self.autoreset.len(),
            place.rows.start,
            &place.leaves,
        )?;
        self.unsettled.extend_from_slice(&self.commands[..count]);
        for (at, row) in place.rows.clone().enumerate() {
            place.outcomes.write(at, &Transition::RESET, self.autoreset.phase(row));
        }
        Ok(())
    }

    /// Whether a step is half done.
    pub(in crate::native) fn awaits_rewards(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// The second half of a step of all rows.
    ///
    /// # Errors
    ///
    /// As [`NativeRows::step`].
    ///
    /// # Panics
    ///
    /// When the rewards do not have one entry for each row.
    pub(in crate::native) fn settle(
        &mut self,
        place: &mut Place<'_>,
        rewards: Option<&ExternalRewards>,
    ) -> Result<(), Error> {
        let count = place.rows.len();
        let mut commands = std::mem::take(&mut self.unsettled);
        commands.resize(count, SHOW); // of rows whose first half was lost, which have failed
        self.commands[..count].fill(SHOW);
        self.present(place);
        self.calls(place, 0..count, &ActionColumns::NONE, None)?;
        let cut: Vec<_> = self.replaced.iter().map(|(row, _)| row - place.number()).collect();
        if let Some(external) = rewards {
            place.outcomes.rewards[..count].copy_from_slice(&external.rewards);
            place.outcomes.terminations[..count].copy_from_slice(&external.terminations);
            place.outcomes.truncations[..count].copy_from_slice(&external.truncations);
            if !external.infos.is_empty() {
                let stepped = |at: &usize| commands[*at] == STEP && !cut.contains(at);
                let rows = (0..count).filter(stepped);
                self.infos.add_external(&external.infos, place.number(), rows);
            }
        } else {
            for (row, command) in place.rows.clone().zip(&mut commands) {
                if *command == STEP {
                    self.autoreset.fail(row);
                    *command = SHOW;
                }
            }
        }
        for at in cut {
            place.outcomes.write(at, &Transition::CUT, PhaseTag::Running);
        }
        self.commands[..count].copy_from_slice(&commands);
        self.forget_shown(&place.rows);
        commands.clear();
        self.unsettled = commands; // keeps its memory
        self.settle_step(place)
    }

    /// Fails the rows of a step whose second half never came.
    pub(super) fn abandon(&mut self) {
        for (row, command) in self.unsettled.drain(..).enumerate() {
            if command == STEP {
                self.autoreset.fail(row);
            }
        }
    }
}
