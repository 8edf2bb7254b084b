//! Random actions, for benchmarks and tests of native environments.

use super::Space;
use super::bounds::Bound;
use crate::DType;
use crate::rng::Rng;

impl Space {
    /// Random values of leaf `leaf` for `rows` rows: its elements as bytes, row-major, as
    /// a pool stores them. [`Space::check_actions`] accepts them.
    ///
    /// Within bounds all values are equally likely. Where a `Box` has no bounds, the distances
    /// (from 0, or from the only bound) are normally distributed. These are not the draws of
    /// Gymnasium's `sample`.
    ///
    /// # Panics
    ///
    /// When the leaf does not exist, or its elements are `float16` or complex, which native
    /// environments do not support.
    pub fn sample(&self, leaf: usize, rows: usize, rng: &mut Rng) -> Vec<u8> {
        let space = self.array(leaf);
        let mut bytes = Vec::new();
        for _ in 0..rows {
            match space {
                Self::Discrete { n, start } => {
                    bytes.extend((start + rng.integers(0..*n)).to_ne_bytes());
                }
                Self::MultiDiscrete { counts, starts, .. } => {
                    let ranges = counts.iter().zip(starts);
                    let drawn = ranges.map(|(&n, start)| start + rng.integers(0..n));
                    bytes.extend(drawn.flat_map(i64::to_ne_bytes));
                }
                Self::MultiBinary(shape) => {
                    bytes.extend((0..shape.iter().product()).map(|_| rng.integers(0_u8..2)));
                }
                Self::Box { dtype, shape, low, high } => {
                    for element in 0..shape.iter().product() {
                        let (low, high) = (low.of(element), high.of(element));
                        push(&mut bytes, *dtype, low, high, rng);
                    }
                }
                Self::Text(_) => unreachable!("an action is not a text"),
                Self::Tuple(_) | Self::Dict(_) => unreachable!("a leaf is an array"),
            }
        }
        bytes
    }
}

/// Appends one number of `dtype` between two bounds, which are included and may be infinite.
#[expect(clippy::cast_possible_truncation, reason = "rounding is wanted")]
fn push(bytes: &mut Vec<u8>, dtype: DType, min: Bound, max: Bound, rng: &mut Rng) {
    let (low, high) = (min.float(), max.float());
    // The integers of a range are the floors of a range that is wider by one.
    let is_float = matches!(dtype, DType::F32 | DType::F64);
    let wider = if is_float { 0.0 } else { 1.0 };
    let number = match (low.is_finite(), high.is_finite()) {
        (true, true) => rng.uniform(low, high + wider).min(high),
        (true, false) => low + rng.standard_normal().abs(),
        (false, true) => high - rng.standard_normal().abs(),
        (false, false) => rng.standard_normal(),
    };
    let mut integer = number.floor() as i128;
    if let (Some(min), Some(max)) = (min.integer(dtype), max.integer(dtype)) {
        integer = integer.clamp(min, max); // floats beyond 2^53 are not exact
    }
    let sampled = if is_float { Bound::Float(number) } else { Bound::Integer(integer) };
    let pushed = sampled.push(dtype, bytes);
    pushed.unwrap_or_else(|| panic!("no native environment sees {}", dtype.name()));
}
