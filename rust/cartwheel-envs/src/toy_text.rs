//! Code that the toy text environments share.

use cartwheel::{
    Buffer, Error, Failure, InfoValue, InfoWriter, Parameter, ParameterValue, Rng, wrong,
};

/// `categorical_sample`: the first index at which the running sum of the probabilities exceeds a
/// draw, or 0 when there is none. It draws once, even for a single outcome.
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

/// A cell of a grid, counted row by row: Gymnasium's `s`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) at: usize,
    /// Number of cells of the grid, for checking a cell that is set.
    cells: usize,
}

impl Cell {
    pub(crate) fn new(at: usize, cells: usize) -> Self {
        Self { at, cells }
    }

    /// The cell as an observation.
    #[inline]
    pub(crate) fn observation(self) -> i64 {
        self.at.cast_signed() as i64
    }
}

impl cartwheel::State for Cell {
    fn save(&self, state: &mut Vec<u8>) {
        (self.at, self.cells).save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let (at, cells) = cartwheel::State::load(state)?;
        if at >= cells {
            return Err(Failure::new(format!("there is no cell {at} of {cells}")));
        }
        Ok(Self { at, cells })
    }
}

impl Parameter for Cell {
    fn get(&self) -> ParameterValue {
        ParameterValue::Int(self.observation())
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let ParameterValue::Int(at) = value else {
            return Err(wrong("an integer", &value));
        };
        let at = usize::try_from(at).ok().filter(|&at| at < self.cells);
        self.at =
            at.ok_or_else(|| wrong(&format!("a cell from 0 to {}", self.cells - 1), &value))?;
        Ok(())
    }
}

/// The probability of the outcome that occurred.
#[derive(Debug, Clone, Copy)]
pub enum Probability {
    /// After a reset; Gymnasium returns an integer.
    One,
    /// After a step.
    Of(f64),
}

impl InfoValue for Probability {
    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        match self {
            Self::One => writer.int(1),
            Self::Of(probability) => writer.float(*probability),
        }
    }
}

impl cartwheel::State for Probability {
    fn save(&self, state: &mut Vec<u8>) {
        let probability = match self {
            Self::One => None,
            Self::Of(probability) => Some(*probability),
        };
        probability.save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let probability: Option<f64> = cartwheel::State::load(state)?;
        Ok(probability.map_or(Self::One, Self::Of))
    }
}

cartwheel::info! {
    /// The info of the grids.
    #[derive(Copy)]
    pub struct Outcome {
        /// Probability of the move.
        prob: Probability,
    }
}
