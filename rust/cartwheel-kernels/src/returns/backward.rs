//! The loop of the estimators that compute each step from the next one.

use std::ops::Range;

use super::error::Error;
use super::float::Float;
use super::split::{EnvSlice, split};
use super::sweep::{Row, Step, Sweep};
use crate::threads::compute_each;
use cartwheel_core::simd::{self, Loops};

/// An estimator that computes each step from the next one.
pub(super) trait Backward<F, const IN: usize, const LATER: usize, const OUT: usize>:
    Sync
{
    /// Computes one step of some environments from the cells of the arrays. `later` are numbers of
    /// the next step, zeros at first, which this step replaces.
    ///
    /// Has to be `#[inline(always)]`, see [`Loops::run`].
    fn step(
        &self,
        now: &Step<'_, F>,
        inputs: [&[F]; IN],
        later: [&mut [F]; LATER],
        outputs: [&mut [F]; OUT],
    );
}

impl<F: Float> Sweep<'_, F> {
    /// Writes outputs from the last step to the first, on as many threads as there are shares.
    /// `inputs` are the arrays at a step.
    ///
    /// # Errors
    ///
    /// [`Error::WrongCount`] for an output.
    pub(super) fn backward<'i, const IN: usize, const LATER: usize, const OUT: usize>(
        &self,
        inputs: impl Fn(usize) -> [&'i [F]; IN] + Sync,
        outputs: [(&'static str, &mut [F]); OUT],
        estimator: &impl Backward<F, IN, LATER, OUT>,
    ) -> Result<(), Error>
    where
        F: 'i,
    {
        for (what, cells) in &outputs {
            self.check_output(what, cells)?;
        }
        let mut parts = outputs.map(|(_, cells)| split(cells, self.shares()).into_iter());
        let next = || parts.each_mut().map(|part| part.next().expect("a part for each share"));
        let outputs = std::iter::repeat_with(next).take(self.shares().len());
        compute_each(self.shares().to_vec(), outputs, |envs, outputs| {
            simd::run(Share { sweep: self, envs, inputs: &inputs, outputs, estimator });
        });
        Ok(())
    }
}

/// The environments that one thread computes.
struct Share<'s, 'a, F, I, E, const OUT: usize, const LATER: usize> {
    sweep: &'s Sweep<'a, F>,
    envs: Range<usize>,
    inputs: &'s I,
    outputs: [EnvSlice<'s, F>; OUT],
    estimator: &'s E,
}

impl<'i, F, I, E, const IN: usize, const LATER: usize, const OUT: usize> Loops
    for Share<'_, '_, F, I, E, OUT, LATER>
where
    F: Float,
    I: Fn(usize) -> [&'i [F]; IN],
    E: Backward<F, IN, LATER, OUT>,
{
    #[inline(always)]
    fn run(mut self) {
        let mut rows = vec![Row::default(); self.envs.len()];
        let mut later: [_; LATER] = std::array::from_fn(|_| vec![F::ZERO; self.envs.len()]);
        for t in (0..self.sweep.steps()).rev() {
            let mut inputs = (self.inputs)(t);
            // Not `map`, which takes half as long again with a single environment.
            for cells in &mut inputs {
                *cells = &cells[self.envs.clone()];
            }
            let now = self.sweep.step(t, &self.envs, &mut rows);
            let outputs = self.outputs.each_mut().map(|cells| cells.step(t));
            self.estimator.step(&now, inputs, later.each_mut().map(Vec::as_mut_slice), outputs);
        }
    }
}
