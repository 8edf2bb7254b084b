//! The random streams of rows, for reading and setting them.

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
/// [`Error::Os`] when the system has no entropy.
pub(super) fn unforeseen(rows: usize) -> Result<(Vec<Rng>, Vec<Seed>), Error> {
    let seeds = (0..rows).map(|_| entropy()).collect::<Result<Vec<_>, _>>()?;
    let rngs = seeds.iter().map(|&seed| Rng::from_wide_seed(seed)).collect();
    Ok((rngs, seeds.into_iter().map(Seed::Number).collect()))
}
