//! Code that the toy text environments share.

use std::fmt;

use cartwheel::{
    Buffer, Error, Failure, InfoValue, InfoWriter, Parameter, ParameterValue, Rng, wrong,
};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

/// A probability as Python has it: of an outcome that occurred, or as a keyword.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Probability {
    /// The integer 1: after a reset of most environments, and a keyword that is this integer.
    One,
    /// A float. The integer 0 becomes one, since no outcome with it occurs.
    Of(f64),
}

impl Probability {
    /// The number.
    #[inline]
    pub(crate) fn value(self) -> f64 {
        match self {
            Self::One => 1.0,
            Self::Of(probability) => probability,
        }
    }

    /// The number, as a keyword of this name must have it.
    pub(crate) fn check(self, name: &str) -> Result<f64, Error> {
        let value = self.value();
        if (0.0..=1.0).contains(&value) {
            return Ok(value);
        }
        Err(Error::bad_options(format!("{name} must be in [0, 1], got {value}")))
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Probability;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_f64<E>(self, value: f64) -> Result<Probability, E> {
                Ok(Probability::Of(value))
            }

            #[expect(clippy::cast_precision_loss, reason = "others than 0 and 1 are refused")]
            fn visit_i64<E>(self, value: i64) -> Result<Probability, E> {
                Ok(Probability::Of(value as f64))
            }

            #[expect(clippy::cast_precision_loss, reason = "others than 0 and 1 are refused")]
            fn visit_u64<E>(self, value: u64) -> Result<Probability, E> {
                Ok(if value == 1 { Probability::One } else { Probability::Of(value as f64) })
            }
        }

        from.deserialize_any(Number)
    }
}

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One => into.serialize_u64(1),
            Self::Of(probability) => into.serialize_f64(*probability),
        }
    }
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
