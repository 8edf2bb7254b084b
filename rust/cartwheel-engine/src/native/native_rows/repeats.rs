//! Steps that repeat their action: several rounds, in which rows that are over are left alone.

use cartwheel_abi::{SHOW, STEP};

use super::{NativeRows, Place};
use crate::error::Error;
use crate::memory::ActionColumns;
use crate::plugin::ResetOptions;

/// Columns for the rounds of a step, apart from those of a single round; kept for the next step.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// The command of each row in the whole step.
    commands: Vec<u8>,
    /// The rewards of each row before its last round.
    sums: Vec<f64>,
}

impl NativeRows {
    /// Carries out the commands of all rows as often as the rules say, as if it were one round.
    /// Rows show what their last round shows, and their rewards are summed. A row whose environment
    /// fails has the outcome of any failed step.
    pub(super) fn repeat<'o>(
        &mut self,
        place: &mut Place<'_>,
        actions: &ActionColumns<'_>,
        mut options: Option<&dyn Fn(usize) -> Option<&'o ResetOptions>>,
    ) -> Result<(), Error> {
        let (rows, count) = (place.rows.clone(), place.rows.len());
        let mut repeats = std::mem::take(&mut self.repeats);
        let Repeats { commands: whole, sums } = &mut repeats;
        whole.clear();
        whole.extend_from_slice(&self.commands[..count]);
        sums.clear();
        sums.resize(count, 0.0);
        for left in (0..self.autoreset.rules().action_repeat.get()).rev() {
            self.calls(place, 0..count, actions, options.take())?; // resets are of the first round
            let commands = &mut self.commands[..count];
            for (whole, &command) in whole.iter_mut().zip(&*commands) {
                *whole = if command == SHOW { SHOW } else { *whole }; // also of a row that failed
            }
            if left == 0
                || !self.autoreset.settle_repeated(rows.clone(), commands, &place.outcomes, sums)
            {
                break;
            }
            let first = place.number();
            self.infos.drop_of(|row| commands[row - first] == STEP);
        }
        self.infos.join_finished();
        self.replaced.sort_unstable_by_key(|(row, _)| *row);
        for (row, _) in &self.replaced {
            sums[row - place.number()] = 0.0;
        }
        for ((reward, sum), &command) in place.outcomes.rewards.iter_mut().zip(sums).zip(&*whole) {
            if command == STEP {
                *reward += *sum;
            }
        }
        self.commands[..count].copy_from_slice(whole);
        self.repeats = repeats;
        self.end_round(place, 0..count);
        Ok(())
    }
}
