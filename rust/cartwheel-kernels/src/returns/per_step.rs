//! A discount or lambda: one for all rows, or one for each.

use super::error::Error;
use super::float::Float;
use super::time_major::TimeMajor;

/// A number in `[0, 1]` for all rows, or one for each row.
#[derive(Debug, Clone, Copy)]
pub enum PerStep<'a, F> {
    /// The same number for all rows.
    Same(f64),
    /// An array `[steps, num_envs]`. Rows that are not valid may hold anything.
    Each(TimeMajor<'a, F>),
}

/// An array `[steps, num_envs]`, or one step that is repeated for all steps: the loops over
/// environments handle both in the same way.
#[derive(Debug)]
pub(super) enum Steps<'a, T> {
    Each(TimeMajor<'a, T>),
    Same(Vec<T>),
}

impl<T> Steps<'_, T> {
    /// The cells of all environments at step `t`.
    #[inline]
    pub(super) fn step(&self, t: usize) -> &[T] {
        match self {
            Self::Each(array) => array.step(t),
            Self::Same(step) => step,
        }
    }
}

impl<'a, F: Float> PerStep<'a, F> {
    /// Checks the shape, and the range on the rows where `valid` is set.
    pub(super) fn checked(
        self,
        what: &'static str,
        shape: [usize; 2],
        valid: &Steps<'_, u8>,
    ) -> Result<Steps<'a, F>, Error> {
        let in_range = |number: f64| (0.0..=1.0).contains(&number);
        match self {
            Self::Same(value) if in_range(value) => {
                Ok(Steps::Same(vec![F::from_f64(value); shape[1]]))
            }
            Self::Same(value) => Err(Error::NotInUnitRange { what, value, row: None }),
            Self::Each(array) => {
                let array = array.of_shape(what, shape)?;
                for t in 0..shape[0] {
                    let cells = array.step(t).iter().map(|cell| cell.to_f64());
                    let mut rows = cells.zip(valid.step(t));
                    let wrong = rows.position(|(cell, &valid)| valid != 0 && !in_range(cell));
                    if let Some(env) = wrong {
                        let value = array.step(t)[env].to_f64();
                        return Err(Error::NotInUnitRange { what, value, row: Some([t, env]) });
                    }
                }
                Ok(Steps::Each(array))
            }
        }
    }
}
