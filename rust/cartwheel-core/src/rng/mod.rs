//! NumPy's random numbers, bit for bit.
//!
//! An [`Rng`] seeded with `s` draws the same numbers as
//! `numpy.random.Generator(numpy.random.PCG64(s))`, which `gymnasium.utils.seeding.np_random(s)`
//! makes: the same calls in the same order give the same bits. Row `i` of a batch that is reset
//! with `seed` has the stream of `seed + i`; nothing else affects it, and autoresets continue it.
//!
//! ```
//! use cartwheel_core::rng::Rng;
//!
//! let mut rng = Rng::from_seed(42); // np.random.default_rng(42)
//! assert_eq!(rng.random(), 0.7739560485559633);
//! assert_eq!(rng.uniform(-0.05, 0.05), -0.006112156024794771);
//! assert_eq!(rng.integers(0_i64..10), 4);
//! ```
//!
//! Sources: `SeedSequence` and `PCG64` as in M. O'Neill, "PCG: A family of simple fast
//! space-efficient statistically good algorithms for random number generation" (2014) and her
//! "Developing a `seed_seq` alternative" (2015); bounded integers after D. Lemire, "Fast random
//! integer generation in an interval" (2019); normals by the ziggurat of G. Marsaglia and W. W.
//! Tsang (2000). NumPy 1.26 and 2.4 draw the same numbers.

mod choice;
mod generator;
mod integers;
mod normal;
mod pcg64;
mod seed_sequence;
mod ziggurat;

pub use generator::{Rng, entropy};
pub use integers::{Integer, IntegerRange};
pub use pcg64::Pcg64State;
pub use seed_sequence::SeedSequence;
