//! The random streams of rows, for who looks at them or sets them.

use crate::error::Error;
use crate::rng::{Pcg64State, Rng, entropy};

/// What a row's random stream started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seed {
    /// An integer of up to 128 bits.
    Number(u128),
    /// A longer one: little-endian 32-bit words.
    Words(Vec<u32>),
    /// Nobody knows: the stream was set, not seeded.
    Unknown,
}

/// A row's random stream: what it started from and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// What it started from.
    pub seed: Seed,
    /// Where it is.
    pub at: Pcg64State,
}

/// Streams that nobody can foretell, one a row, and their seeds.
///
/// # Errors
///
/// [`Error::Os`] when the system has no entropy.
pub(super) fn unforeseen(rows: usize) -> Result<(Vec<Rng>, Vec<Seed>), Error> {
    let seeds = (0..rows).map(|_| entropy()).collect::<Result<Vec<_>, _>>()?;
    let rngs = seeds.iter().map(|&seed| Rng::from_wide_seed(seed)).collect();
    Ok((rngs, seeds.into_iter().map(Seed::Number).collect()))
}
