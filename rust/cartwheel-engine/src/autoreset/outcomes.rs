//! The outcomes of the rows of a task, in columns.

use crate::transition::PhaseTag;
use cartwheel_core::Transition;

/// Rewards, flags and phases of consecutive rows: one element for each row in every column.
///
/// Environments write rewards and flags (any byte but 0 counts as `true`), the machine the rest.
#[derive(Debug)]
pub struct Outcomes<'a> {
    /// The rewards.
    pub rewards: &'a mut [f64],
    /// Whether the task of the row reached an end.
    pub terminations: &'a mut [u8],
    /// Whether the episode was cut short.
    pub truncations: &'a mut [u8],
    /// The phases after the task, a [`PhaseTag`] each.
    pub phases: &'a mut [u8],
}

impl Outcomes<'_> {
    /// The outcomes of row `row` alone, counted from the first of these rows.
    ///
    /// # Panics
    ///
    /// When the row does not exist.
    pub fn row(&mut self, row: usize) -> Outcomes<'_> {
        Outcomes {
            rewards: &mut self.rewards[row..=row],
            terminations: &mut self.terminations[row..=row],
            truncations: &mut self.truncations[row..=row],
            phases: &mut self.phases[row..=row],
        }
    }

    /// The same columns, borrowed for a shorter time.
    pub(crate) fn reborrow(&mut self) -> Outcomes<'_> {
        Outcomes {
            rewards: self.rewards,
            terminations: self.terminations,
            truncations: self.truncations,
            phases: self.phases,
        }
    }

    /// Writes reward, flags and phase of row `row`, counted from the first of these rows.
    ///
    /// # Panics
    ///
    /// When the row does not exist.
    #[inline]
    pub fn write(&mut self, row: usize, transition: &Transition, phase: PhaseTag) {
        self.rewards[row] = transition.reward;
        self.terminations[row] = u8::from(transition.terminated);
        self.truncations[row] = u8::from(transition.truncated);
        self.phases[row] = phase as u8;
    }
}
