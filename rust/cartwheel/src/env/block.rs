//! Blocks: neighboring rows that an environment steps at once.

use std::fmt;

use super::view::View;
use cartwheel_core::Transition;
use cartwheel_core::rng::Rng;

/// Neighboring rows during one step, at most [`Env::BLOCK`](super::Env::BLOCK) of them. `E` is the
/// environment, `A` its action; [`BlockOf`](super::BlockOf) names both by the first.
pub struct Block<'a, 'r, E, A: View> {
    /// The environments.
    pub envs: &'a mut [E],
    /// Their random streams.
    pub rngs: &'a mut [Rng],
    /// Rows that should be stepped; the others are reset, or left alone.
    pub running: &'a [bool],
    /// The results of their steps; `None` for a row that has not been stepped.
    pub transitions: &'a mut [Option<Transition>],
    actions: &'a A::Rows<'r>,
    /// Index of the block's first action.
    first: usize,
}

impl<E, A: View> fmt::Debug for Block<'_, '_, E, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("running", &self.running).finish_non_exhaustive()
    }
}

impl<'a, 'r, E, A: View> Block<'a, 'r, E, A> {
    /// A block whose first row has the action `first`.
    #[doc(hidden)]
    pub fn new(
        (envs, rngs): (&'a mut [E], &'a mut [Rng]),
        running: &'a [bool],
        transitions: &'a mut [Option<Transition>],
        (actions, first): (&'a A::Rows<'r>, usize),
    ) -> Self {
        Self { envs, rngs, running, transitions, actions, first }
    }

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
