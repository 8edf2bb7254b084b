//! Blocks: neighbouring rows that an environment steps at once.

use std::fmt;

use super::view::View;
use super::{ActionOf, Env};
use crate::rng::Rng;
use crate::transition::Transition;

/// Neighbouring rows of a shard during one step, at most [`Env::BLOCK`] of them.
pub struct Block<'a, 'r, E: Env> {
    /// The environments.
    pub envs: &'a mut [E],
    /// Their random streams.
    pub rngs: &'a mut [Rng],
    /// Which of them are to be stepped; the others wait for a reset, or are over.
    pub running: &'a [bool],
    /// What their steps came to; `None` for a row that has not been stepped.
    pub transitions: &'a mut [Option<Transition>],
    pub(crate) actions: &'a <E::Action as View>::Rows<'r>,
    /// Where its actions begin.
    pub(crate) first: usize,
}

impl<E: Env> fmt::Debug for Block<'_, '_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("running", &self.running).finish_non_exhaustive()
    }
}

impl<'r, E: Env> Block<'_, 'r, E> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.envs.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.envs.is_empty()
    }

    /// The action of row `row`, counted from the start of the block.
    #[inline]
    pub fn action(&self, row: usize) -> ActionOf<'r, E> {
        E::Action::row(self.actions, self.first + row)
    }
}
