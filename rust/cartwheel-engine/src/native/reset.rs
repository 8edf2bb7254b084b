//! The reset of one row.

use super::mailbox::{ResetOptions, RowReset};
use super::rows::NativeRows;
use super::snapshot::restore;
use super::stream::Seed;
use crate::autoreset::{Autoreset, Command};
use crate::env::Env;
use crate::error::Error;
use crate::transition::PhaseTag;
use cartwheel_core::Transition;
use cartwheel_core::rng::Rng;

/// Resets one row as `how` says.
pub(super) fn reset_row<E: Env>(
    autoreset: &mut Autoreset,
    rows: &mut NativeRows<'_, E>,
    row: usize,
    how: &RowReset,
    options: Option<&ResetOptions>,
) -> Result<Transition, Error> {
    match how {
        RowReset::Leave => {
            if autoreset.phase(row) != PhaseTag::Unstarted {
                rows.repeat(row);
            }
            return Ok(autoreset.last_transition(row));
        }
        RowReset::Restore(snapshot) => {
            rows.env_columns.forget_shown(row);
            restore(autoreset, rows, row, snapshot)?;
            return Ok(autoreset.last_transition(row));
        }
        RowReset::Seed(seed) => {
            rows.env_columns.rngs[row] = Rng::from_wide_seed(*seed);
            rows.env_columns.seeds[row] = Seed::Number(*seed);
        }
        RowReset::WideSeed(words) => {
            rows.env_columns.rngs[row] = Rng::from_seed_words(words);
            rows.env_columns.seeds[row] = Seed::Words(words.clone());
        }
        RowReset::Continue => {}
    }
    rows.env_columns.forget_shown(row);
    let chosen = options.and_then(|options| options.0.downcast_ref());
    rows.reset_with(row, chosen.unwrap_or(rows.options));
    rows.publish(row);
    Ok(autoreset.settle_row(row, Command::Reset, Transition::RESET))
}
