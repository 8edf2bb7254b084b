//! The random streams of rows, for reading and setting them.

use crate::autoreset::mixed;
use crate::error::Error;
use cartwheel_core::rng::{Pcg64State, Rng, entropy};

/// The seed of a row's random stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seed {
    /// An integer of up to 128 bits.
    Number(u128),
    /// A longer integer: little-endian 32-bit words.
    Words(Vec<u32>),
    /// Unknown: the stream was set, not seeded.
    Unknown,
}

impl Seed {
    /// The random stream that it begins; `None` if the seed is unknown.
    pub(super) fn stream(&self) -> Option<Rng> {
        match self {
            Self::Number(number) => Some(Rng::from_wide_seed(*number)),
            Self::Words(words) => Some(Rng::from_seed_words(words)),
            Self::Unknown => None,
        }
    }

    /// A number from all bits of the seed, see [`mixed`]; `None` if the seed is unknown.
    pub fn mixed(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(mixed_number(*number)),
            Self::Words(words) => Some(mixed(words.chunks(2).map(|pair| {
                pair.iter().rev().fold(0, |word, &half| word << 32 | u64::from(half))
            }))),
            Self::Unknown => None,
        }
    }
}

fn mixed_number(number: u128) -> u64 {
    let bytes = number.to_le_bytes();
    mixed(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)))
}

/// A number from the present state of a stream that was set, not seeded; the stream stays as it is.
pub(super) fn of_stream(stream: &Rng) -> u64 {
    mixed_number(stream.state().state)
}

/// A row's random stream: its seed and its present state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// The seed.
    pub seed: Seed,
    /// The present state.
    pub at: Pcg64State,
}

/// Unpredictable streams, one for each row, and their seeds.
///
/// # Errors
///
/// [`cartwheel_core::Error::NoEntropy`].
pub(super) fn unforeseen(rows: usize) -> Result<(Vec<Rng>, Vec<Seed>), Error> {
    let seeds = (0..rows).map(|_| entropy()).collect::<Result<Vec<_>, _>>()?;
    let rngs = seeds.iter().map(|&seed| Rng::from_wide_seed(seed)).collect();
    Ok((rngs, seeds.into_iter().map(Seed::Number).collect()))
}
