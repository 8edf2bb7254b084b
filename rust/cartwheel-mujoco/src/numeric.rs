//! Sums and norms as NumPy computes them.

use std::ops::{Add, Mul};

/// `float32` or `float64`.
pub(crate) trait Float: Copy + Add<Output = Self> + Mul<Output = Self> {
    /// The start of a sum.
    const ZERO: Self;
}

impl Float for f32 {
    const ZERO: Self = 0.0;
}

impl Float for f64 {
    const ZERO: Self = 0.0;
}

/// `np.sum(np.square(values))` of a contiguous array of any shape.
#[inline]
pub(crate) fn sum_of_squares<T: Float>(values: &[T]) -> T {
    pairwise(values, |value| value * value)
}

/// `np.sum(np.square(of(values)))`.
#[inline]
pub(crate) fn sum_of_squares_of(values: &[f64], of: impl Fn(f64) -> f64 + Copy) -> f64 {
    pairwise(values, |value| of(value) * of(value))
}

/// `np.sum(values)`.
#[inline]
pub(crate) fn sum(values: &[f64]) -> f64 {
    pairwise(values, |value| value)
}

/// NumPy's pairwise summation: blocks of up to 128 elements have eight running sums, and larger
/// arrays are halved at a multiple of eight.
fn pairwise<T: Float>(values: &[T], of: impl Fn(T) -> T + Copy) -> T {
    const BLOCK: usize = 128;
    const SUMS: usize = 8;

    if values.len() < SUMS {
        return values.iter().fold(T::ZERO, |sum, &value| sum + of(value));
    }
    if values.len() > BLOCK {
        let half = values.len() / 2;
        let (left, right) = values.split_at(half - half % SUMS);
        return pairwise(left, of) + pairwise(right, of);
    }
    let (groups, rest) = values.as_chunks::<SUMS>();
    let (first, groups) = groups.split_first().expect("eight values or more");
    let mut sums = first.map(of);
    for group in groups {
        for (sum, &value) in sums.iter_mut().zip(group) {
            *sum = *sum + of(value);
        }
    }
    let [s0, s1, s2, s3, s4, s5, s6, s7] = sums;
    let sum = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
    rest.iter().fold(sum, |sum, &value| sum + of(value))
}

/// `np.linalg.norm(vector)` of two or three numbers. NumPy leaves the sum of squares to its BLAS,
/// which on some processors has `fused` multiply-add instructions: they round once, not twice.
#[inline]
pub(crate) fn norm<const N: usize>(vector: [f64; N], fused: bool) -> f64 {
    let add = |sum: f64, x: &f64| if fused { x.mul_add(*x, sum) } else { sum + x * x };
    vector.iter().fold(0.0, add).sqrt()
}

/// `left - right`, element by element.
#[inline]
pub(crate) fn difference<const N: usize>(left: [f64; N], right: [f64; N]) -> [f64; N] {
    std::array::from_fn(|at| left[at] - right[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against `np.sum` of NumPy 2.4.6, below, at and above the sizes of its blocks.
    #[test]
    fn sums_are_numpys() {
        let wanted = [
            (0, 0, 0, 0),
            (5, 0x3fd7_7ced_9168_72b3, 0xbfd3_3333_3333_3338, 0x3ebb_e76c),
            (8, 0x3fe4_6a7e_f9db_22d3, 0x3fc4_7ae1_47ae_1464, 0x3f23_53f8),
            (19, 0x3ffb_f006_8db8_bac6, 0x3ffa_b851_eb85_1eb2, 0x3fdf_8034),
            (128, 0x4027_f7ce_d916_872f, 0x4028_51eb_851e_b83e, 0x413f_be76),
            (300, 0x403b_b47a_e147_ae02, 0x403c_7fff_ffff_ffc5, 0x41dd_a3d6),
        ];
        for (len, squares, plain, single) in wanted {
            let values: Vec<f64> =
                (0..len).map(|at| (f64::from(at) * 0.37).rem_euclid(1.0) - 0.4).collect();
            #[expect(clippy::cast_possible_truncation, reason = "NumPy rounds")]
            let singles: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            assert_eq!(sum_of_squares(&values).to_bits(), squares, "{len}");
            assert_eq!(sum(&values).to_bits(), plain, "{len}");
            assert_eq!(sum_of_squares(&singles).to_bits(), single, "{len}");
        }
    }

    /// `np.linalg.norm([0.01, 0.18])` on processors with and without fused multiply-add.
    #[test]
    fn a_fused_norm_rounds_once() {
        let bits = [false, true].map(|fused| norm([0.01, 0.18], fused).to_bits());
        assert_eq!(bits, [0x3fc7_1355_d04d_e190, 0x3fc7_1355_d04d_e18f]);
    }
}
