//! Rows in the lanes of vectors: [`Env::step_block`] of every environment that has lanes.
//!
//! Four rows at a time are laid out as a structure of vectors, stepped, and written back. An
//! environment writes the same operations in the same order as in its [`Env::step`], so it gets the
//! same bits: vector instructions round like scalar ones, and no operations are fused that are not
//! fused there.
#![expect(clippy::inline_always, reason = "functions take on the instructions of their caller")]

use std::sync::OnceLock;

use cartwheel::{ActionOf, BlockOf, Env, Transition};

use super::{power, sine};
use crate::simd::{Avx2, Four, SimdKernel};

/// Number of rows for each call: enough to make the call's cost negligible, few enough for the
/// first cache.
pub(crate) const BLOCK: usize = 64;

/// An environment whose rows can be stepped in lanes.
pub(crate) trait Simd: Env {
    /// Whether the row can be stepped with others: it has the constants that [`Simd::step_four`]
    /// has.
    fn is_usual(&self) -> bool;

    /// Steps four rows, and keeps the results. Has to be `#[inline(always)]`.
    fn step_four(rows: &mut FourRows<'_, '_, Self>);
}

/// Neighboring rows of a block that are stepped together. Arrays, and no slices of the block: no row needs
/// a check of its bounds.
pub(crate) struct FourRows<'b, 'r, E: Env> {
    envs: &'b mut [E; 4],
    running: &'b [bool; 4],
    transitions: &'b mut [Option<Transition>; 4],
    actions: [ActionOf<'r, E>; 4],
    avx2: Avx2,
}

impl<'r, E: Env> FourRows<'_, 'r, E> {
    /// Numbers of each environment and its action, as vectors.
    #[inline(always)]
    pub(crate) fn lay_out<const N: usize>(
        &self,
        numbers: impl Fn(&E, &ActionOf<'r, E>) -> [f64; N],
    ) -> [Four; N] {
        let row = |lane: usize| numbers(&self.envs[lane], &self.actions[lane]);
        let rows = [row(0), row(1), row(2), row(3)];
        std::array::from_fn(|at| self.avx2.four(rows.map(|row| row[at])))
    }

    /// Writes the running rows back. `keep` changes the environment in a lane and returns the
    /// transition; with none, it has changed nothing, and the row is left to [`Env::step`].
    #[inline(always)]
    pub(crate) fn keep(&mut self, keep: impl Fn(&mut E, usize) -> Option<Transition>) {
        for lane in 0..4 {
            if self.running[lane] {
                self.transitions[lane] = keep(&mut self.envs[lane], lane);
            }
        }
    }
}

/// Steps the rows of a block that can be stepped together, if the machine supports it.
pub(crate) fn step_block<E: Simd>(block: &mut BlockOf<'_, '_, E>) {
    if let Some(avx2) = exact_simd() {
        avx2.run(Steps { block });
    }
}

/// The vectors, if the processor has them and the C library the functions; found out once.
pub(crate) fn exact_simd() -> Option<Avx2> {
    static EXACT: OnceLock<Option<Avx2>> = OnceLock::new();
    let is_exact = |&avx2: &Avx2| sine::is_exact(avx2) && power::is_exact(avx2);
    *EXACT.get_or_init(|| Avx2::detect().filter(is_exact))
}

/// The steps of a block's rows.
struct Steps<'b, 'a, 'r, E: Env> {
    block: &'b mut BlockOf<'a, 'r, E>,
}

impl<E: Simd> SimdKernel for Steps<'_, '_, '_, E> {
    type Result = ();

    /// Steps every four rows, unless one of them is a special case.
    #[inline(always)]
    fn run(self, avx2: Avx2) {
        let Self { block } = self;
        for group in 0..block.len() / 4 {
            let actions = [0, 1, 2, 3].map(|lane| block.action(4 * group + lane));
            let envs = &mut block.envs.as_chunks_mut().0[group];
            if envs.iter().all(E::is_usual) {
                let running = &block.running.as_chunks().0[group];
                let transitions = &mut block.transitions.as_chunks_mut().0[group];
                E::step_four(&mut FourRows { envs, running, transitions, actions, avx2 });
            }
        }
    }
}
