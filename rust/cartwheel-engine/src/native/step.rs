//! The step of one row.

use super::rows::NativeRows;
use crate::autoreset::{Autoreset, Command, Refusal};
use crate::env::Env;
use crate::error::Error;
use cartwheel_core::Transition;

/// Carries out the command that a step gives to one row; `stepped` is the outcome of an environment
/// that was stepped before.
#[inline]
pub(super) fn step_row<E: Env>(
    autoreset: &mut Autoreset,
    rows: &mut NativeRows<'_, E>,
    row: usize,
    stepped: Option<Transition>,
) -> Result<Transition, Error> {
    if let Some(refusal) = autoreset.refusal(row) {
        return Err(refused(refusal, rows.first + row));
    }
    let outcome = match rows.command(row) {
        Command::Step => stepped.unwrap_or_else(|| rows.step(row)),
        Command::Reset => {
            rows.reset(row);
            Transition::RESET
        }
        Command::Leave | Command::Show => {
            rows.repeat(row);
            return Ok(autoreset.settle_row(row, Command::Show, Transition::RESET));
        }
    };
    Ok(settle_step(autoreset, rows, row, outcome))
}

/// Settles the outcome of a row that was stepped or reset, and shows the row.
#[inline]
pub(super) fn settle_step<E: Env>(
    autoreset: &mut Autoreset,
    rows: &mut NativeRows<'_, E>,
    row: usize,
    outcome: Transition,
) -> Transition {
    let transition = autoreset.settle_row(row, rows.command(row), outcome);
    if autoreset.resets_now(row) {
        rows.keep_final(row);
        rows.reset(row);
        autoreset.begin_episode(row);
    }
    rows.publish(row);
    transition
}

/// The reason why row `row`, counted from the first row of the pool, was not stepped. If the pool
/// has the policy of its environments, it refuses such steps before they are published.
fn refused(refusal: Refusal, row: usize) -> Error {
    let rows = vec![row];
    match refusal {
        Refusal::Over => Error::EpisodeOver { rows },
        Refusal::Failed => Error::NeedsReset { rows },
        Refusal::Unstarted => Error::NeverReset { rows },
    }
}
