//! Blocks: neighbouring rows that an environment steps at once.

use std::fmt;

use super::view::View;
use cartwheel_core::Transition;
use cartwheel_core::rng::Rng;

/// Neighbouring rows of a shard during one step, at most [`Env::BLOCK`](super::Env::BLOCK) of them. `E` is the
/// environment, `A` its action; [`BlockOf`](super::BlockOf) names both by the first.
pub struct Block<'a, 'r, E, A: View> {
    /// The environments.
    pub envs: &'a mut [E],
    /// Their random streams.
    pub rngs: &'a mut [Rng],
    /// Which of them should be stepped; the others wait for a reset, or are over.
    pub running: &'a [bool],
    /// The results of their steps; `None` for a row that has not been stepped.
    pub transitions: &'a mut [Option<Transition>],
    pub(crate) actions: &'a A::Rows<'r>,
    /// Index of the block's first action.
    pub(crate) first: usize,
}

impl<E, A: View> fmt::Debug for Block<'_, '_, E, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("running", &self.running).finish_non_exhaustive()
    }
}

impl<'r, E, A: View> Block<'_, 'r, E, A> {
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
    pub fn action(&self, row: usize) -> A::Ref<'r> {
        A::row(self.actions, self.first + row)
    }
}
