//! Random actions, for benchmarks and tests of native environments.

use super::{Bounds, Space};
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
    /// When the leaf does not exist, or its elements are `bool`, `float16` or complex, which native
    /// environments do not support.
    pub fn sample(&self, leaf: usize, rows: usize, rng: &mut Rng) -> Vec<u8> {
        let space = self.array(leaf);
        let mut bytes = Vec::new();
        for _ in 0..rows {
            match space {
                Self::Discrete { n, start } => {
                    bytes.extend((start + rng.integers(0..*n)).to_ne_bytes());
                }
                Self::MultiDiscrete(counts) => {
                    bytes.extend(counts.iter().flat_map(|&n| rng.integers(0..n).to_ne_bytes()));
                }
                Self::MultiBinary(shape) => {
                    bytes.extend((0..shape.iter().product()).map(|_| rng.integers(0_u8..2)));
                }
                Self::Box { dtype, shape, low, high } => {
                    for element in 0..shape.iter().product() {
                        let (low, high) = (bound(low, element), bound(high, element));
                        push(&mut bytes, *dtype, low, high, rng);
                    }
                }
                Self::Tuple(_) | Self::Dict(_) => unreachable!("a leaf is an array"),
            }
        }
        bytes
    }
}

fn bound(bounds: &Bounds, element: usize) -> f64 {
    match bounds {
        Bounds::All(bound) => *bound,
        Bounds::Each(bounds) => bounds[element],
    }
}

/// Appends one number of `dtype` between two bounds, which are included and may be infinite.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounding is wanted")]
fn push(bytes: &mut Vec<u8>, dtype: DType, low: f64, high: f64, rng: &mut Rng) {
    // The integers of a range are the floors of a range that is wider by one.
    let wider = if matches!(dtype, DType::F32 | DType::F64) { 0.0 } else { 1.0 };
    let number = match (low.is_finite(), high.is_finite()) {
        (true, true) => rng.uniform(low, high + wider).min(high),
        (true, false) => low + rng.standard_normal().abs(),
        (false, true) => high - rng.standard_normal().abs(),
        (false, false) => rng.standard_normal(),
    };
    let integer = number.floor();
    match dtype {
        DType::F32 => bytes.extend((number as f32).to_ne_bytes()),
        DType::F64 => bytes.extend(number.to_ne_bytes()),
        DType::I8 => bytes.extend((integer as i8).to_ne_bytes()),
        DType::I16 => bytes.extend((integer as i16).to_ne_bytes()),
        DType::I32 => bytes.extend((integer as i32).to_ne_bytes()),
        DType::I64 => bytes.extend((integer as i64).to_ne_bytes()),
        DType::U8 => bytes.push(integer as u8),
        DType::U16 => bytes.extend((integer as u16).to_ne_bytes()),
        DType::U32 => bytes.extend((integer as u32).to_ne_bytes()),
        DType::U64 => bytes.extend((integer as u64).to_ne_bytes()),
        DType::Bool | DType::F16 | DType::C64 | DType::C128 => {
            panic!("no native environment sees {}", dtype.name())
        }
    }
}
