//! Arrays of a rollout: one cell for each step and environment.

use super::error::Error;

/// A borrowed array `[steps, num_envs]`, row-major: the cells of one step are contiguous.
#[derive(Debug, Clone, Copy)]
pub struct TimeMajor<'a, T> {
    cells: &'a [T],
    steps: usize,
    num_envs: usize,
}

impl<'a, T> TimeMajor<'a, T> {
    /// An array over `cells`.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`] or [`Error::WrongLength`].
    pub fn new(cells: &'a [T], steps: usize, num_envs: usize) -> Result<Self, Error> {
        if steps == 0 || num_envs == 0 {
            return Err(Error::Empty { got: [steps, num_envs] });
        }
        if steps.checked_mul(num_envs) != Some(cells.len()) {
            return Err(Error::WrongLength { steps, num_envs, got: cells.len() });
        }
        Ok(Self { cells, steps, num_envs })
    }

    /// Steps and environments, each at least 1.
    pub fn shape(&self) -> [usize; 2] {
        [self.steps, self.num_envs]
    }

    /// The cells of all environments at step `t`.
    ///
    /// # Panics
    ///
    /// If the step does not exist.
    #[inline]
    pub fn step(&self, t: usize) -> &'a [T] {
        &self.cells[t * self.num_envs..][..self.num_envs]
    }

    /// All cells, step after step.
    pub fn cells(&self) -> &'a [T] {
        self.cells
    }

    /// The array, if it has this shape; `what` names it in the error.
    pub(super) fn of_shape(self, what: &'static str, expected: [usize; 2]) -> Result<Self, Error> {
        let got = self.shape();
        if got == expected { Ok(self) } else { Err(Error::WrongShape { what, expected, got }) }
    }
}

/// Refuses an output or a list that does not have `expected` elements.
pub(super) fn check_count<T>(
    what: &'static str,
    cells: &[T],
    expected: usize,
) -> Result<(), Error> {
    let got = cells.len();
    if got == expected { Ok(()) } else { Err(Error::WrongCount { what, expected, got }) }
}
