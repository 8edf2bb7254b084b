//! What the toy text environments have in common.

use cartwheel::info::InfoWriter;
use cartwheel::native::InfoValue;
use cartwheel::rng::Rng;

/// `categorical_sample`: the first index at which the running sum of the probabilities is above a
/// draw, or 0 when none is. It draws once, however few outcomes there are.
#[inline]
pub(crate) fn sample(probabilities: impl IntoIterator<Item = f64>, rng: &mut Rng) -> usize {
    let draw = rng.random();
    let mut sum = 0.0;
    for (index, probability) in probabilities.into_iter().enumerate() {
        sum += probability;
        if sum > draw {
            return index;
        }
    }
    0
}

/// The probability of the outcome that came about.
#[derive(Debug, Clone, Copy)]
pub enum Probability {
    /// That of a reset, which Gymnasium gives as an integer.
    One,
    /// That of a step.
    Of(f64),
}

impl InfoValue for Probability {
    fn write(&self, writer: &mut InfoWriter) {
        match self {
            Self::One => writer.int(1),
            Self::Of(probability) => writer.float(*probability),
        }
    }
}

cartwheel::info! {
    /// The info of the grids.
    #[derive(Copy)]
    pub struct Outcome {
        /// How likely the move was.
        prob: Probability,
    }
}
