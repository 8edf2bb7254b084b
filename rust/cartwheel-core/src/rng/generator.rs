//! Streams of random numbers: seeds, bits, floats.

use std::convert::Infallible;

use cartwheel_abi::RandomStream;

use super::pcg64::{Pcg64, Pcg64State};
use super::seed_sequence::SeedSequence;
use crate::error::Error;

/// A stream of random numbers. Cheap to clone; a clone continues with the same numbers.
///
/// It is a generator of `rand_core` 0.10, so code that takes one of the crate `rand` 0.10 draws from it, too.
///
/// It has the layout of a [`RandomStream`], so that host and plugins share streams in place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(transparent)]
pub struct Rng {
    generator: Pcg64,
}

impl Rng {
    /// The stream of `seed`.
    pub fn from_seed(seed: u64) -> Self {
        Self::from_wide_seed(u128::from(seed))
    }

    /// The stream of a seed of up to 128 bits, for example from [`entropy`].
    pub fn from_wide_seed(seed: u128) -> Self {
        Self::from_sequence(&SeedSequence::from_wide_seed(seed))
    }

    /// The stream of an integer of any length, given as little-endian 32-bit words.
    pub fn from_seed_words(words: &[u32]) -> Self {
        let zeros = words.iter().rev().take_while(|&&word| word == 0).count();
        Self::from_sequence(&SeedSequence::new(&words[..words.len() - zeros]))
    }

    /// The stream that starts from `sequence`.
    pub fn from_sequence(sequence: &SeedSequence) -> Self {
        Self { generator: Pcg64::from_sequence(sequence) }
    }

    /// An unpredictable stream, seeded with 128 bits of the operating system's entropy.
    ///
    /// # Errors
    ///
    /// [`Error::NoEntropy`] when the system has none.
    pub fn from_entropy() -> Result<Self, Error> {
        Ok(Self::from_wide_seed(entropy()?))
    }

    /// The present state of the stream, including the kept half of a 64-bit draw.
    pub fn state(&self) -> Pcg64State {
        self.generator.state()
    }

    /// The stream that continues from `state`.
    pub fn from_state(state: Pcg64State) -> Self {
        Self { generator: Pcg64::from_state(state) }
    }

    /// The stream as host and plugins share it.
    pub fn stream(&self) -> RandomStream {
        self.generator.stream()
    }

    /// The random numbers of a stream that host and plugins share.
    pub fn from_stream(stream: RandomStream) -> Self {
        Self { generator: Pcg64::from_stream(stream) }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// 32 random bits: the low half of 64; the next call returns the high half.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        self.generator.next_u32()
    }

    /// A number in `[0, 1)` with 53 random bits: `Generator.random()`.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double")]
    pub fn random(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0) // 2^-53
    }

    /// A number in `[0, 1)` with 24 random bits: `Generator.random(dtype=np.float32)`.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit a float")]
    pub fn random_f32(&mut self) -> f32 {
        (self.next_u32() >> 8) as f32 * (1.0 / 16_777_216.0) // 2^-24
    }

    /// A number in `[low, high)`: `Generator.uniform(low, high)`.
    #[inline]
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random()
    }

    /// `N` numbers in `[low, high)`: `Generator.uniform(low, high, size=N)`.
    #[inline]
    pub fn uniform_array<const N: usize>(&mut self, low: f64, high: f64) -> [f64; N] {
        std::array::from_fn(|_| self.uniform(low, high))
    }
}

impl rand_core::TryRng for Rng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next_u64())
    }

    /// Little-endian 64-bit draws, in contrast to `Generator.bytes`: NumPy has no rule for this
    /// call, and no environment of Gymnasium makes it.
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.next_u64().to_le_bytes()[..part.len()]);
        }
        Ok(())
    }
}

/// 128 bits of the operating system's entropy: the meaning of a seed of `None`.
///
/// # Errors
///
/// [`Error::NoEntropy`] when the system has none.
pub fn entropy() -> Result<u128, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::NoEntropy(error.to_string()))?;
    Ok(u128::from_le_bytes(bytes))
}

/// Converts a draw that is below a length to an index.
pub(super) fn index(draw: u64) -> usize {
    usize::try_from(draw).expect("a draw is below a length")
}
