//! Settings that all rows of a pool of native environments share, whatever their kind.

use std::num::NonZero;

use crate::autoreset::{AutoresetMode, OnDone};

/// Settings that the rows of a pool share, besides the recipe.
#[derive(Debug, Clone, Copy)]
pub struct ShardSettings {
    /// When finished rows restart.
    pub autoreset: AutoresetMode,
    /// What stepping an over row does.
    pub on_done: OnDone,
    /// Steps after which an episode is truncated.
    pub max_episode_steps: Option<NonZero<u32>>,
    /// How often the environment of a row is replaced after a panic, which truncates its episode; a
    /// further panic fails the row.
    pub replacements: u32,
}
