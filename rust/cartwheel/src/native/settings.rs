//! What all rows of a pool of native environments have in common, whatever their kind.

use std::num::NonZero;

use crate::autoreset::{AutoresetMode, OnDone};

/// What the rows of a pool have in common beside the recipe.
#[derive(Debug, Clone, Copy)]
pub struct ShardSettings {
    /// When finished rows restart.
    pub autoreset: AutoresetMode,
    /// What stepping an over row means.
    pub on_done: OnDone,
    /// Steps after which an episode is truncated.
    pub max_episode_steps: Option<NonZero<u32>>,
    /// How often the environment of a row is made anew after a panic, which truncates its episode; a
    /// panic beyond that fails the row.
    pub replacements: u32,
}
