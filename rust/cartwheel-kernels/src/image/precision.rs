//! The numbers that hold weighted sums of levels without rounding.

use super::axis::Axis;
use super::simd::{ROWS, Simd, transpose};

/// The types of a resize: sums down a column are whole numbers, sums of these along a row are
/// floating-point numbers that hold them exactly.
pub(super) trait Precision {
    /// The weighted sum of a column of pixels.
    type Sum: Copy + Default;
    /// A weight, a sum or a mean.
    type Float: Copy + Default;

    /// The start of sums: a quarter, see [`level`](Self::level).
    const START: Self::Float;

    /// A level multiplied by a weight of the vertical axis.
    fn weighted(level: u8, weight: u32) -> Self::Sum;
    /// The sum of two.
    fn add(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    /// Brings the sums of each column together, as real numbers; see [`Simd::columns`].
    fn columns(simd: impl Simd, rows: &[Self::Sum], columns: &mut [[Self::Float; ROWS]]);
    /// A weight of the horizontal axis as a real number.
    fn weight(weight: u32) -> Self::Float;
    /// `sum + weight * real`.
    fn add_weighted(sum: Self::Float, weight: Self::Float, real: Self::Float) -> Self::Float;
    /// The factor of [`level`](Self::level): the reciprocal of the weights' total.
    fn reciprocal(total: u64) -> Self::Float;
    /// The mean of a sum that began with [`START`](Self::START), rounded to the nearest level, halves
    /// up.
    ///
    /// The sum is a whole number and a quarter. So no mean is closer to a half than a quarter
    /// of `1 / total`, which is more than the product can be wrong by. The addition of a number
    /// whose last bit is 1 rounds to a whole number, which is then in the lowest bits.
    fn level(sum: Self::Float, reciprocal: Self::Float) -> u8;
}

/// Sums of 16 bits and reals of 32, for as many axes as possible: most sizes of images have common
/// divisors.
pub(super) struct Narrow;

/// Sums of 32 bits and reals of 64, for all axes.
pub(super) struct Wide;

impl Narrow {
    /// Largest total of both axes. A mean is wrong by at most `255 * 2^-23`, which is half of
    /// `1 / (4 * 4096)`.
    const MAX: u64 = 4096;

    /// Whether it holds all sums of these axes.
    pub(super) fn holds(vertical: &Axis, horizontal: &Axis) -> bool {
        vertical.total <= u32::from(u16::MAX) / 255
            && u64::from(vertical.total) * u64::from(horizontal.total) <= Self::MAX
    }
}

// Wrapping operations never wrap here: the types hold the sums of all levels, see `holds`. Checked
// ones would not be vectorized.
impl Precision for Narrow {
    type Sum = u16;
    type Float = f32;

    const START: f32 = 0.25;

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the total of the weights fits")]
    fn weighted(level: u8, weight: u32) -> u16 {
        u16::from(level).wrapping_mul(weight as u16)
    }

    #[inline(always)]
    fn add(a: u16, b: u16) -> u16 {
        a.wrapping_add(b)
    }

    #[inline(always)]
    fn columns(simd: impl Simd, rows: &[u16], columns: &mut [[f32; ROWS]]) {
        simd.columns(rows, columns);
    }

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "the total of the weights is at most 4096")]
    fn weight(weight: u32) -> f32 {
        weight as f32
    }

    #[inline(always)]
    fn add_weighted(sum: f32, weight: f32, real: f32) -> f32 {
        sum + weight * real
    }

    #[expect(clippy::cast_precision_loss, reason = "the total of the weights is at most 4096")]
    fn reciprocal(total: u64) -> f32 {
        1.0 / total as f32
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the mean is in the lowest eight bits")]
    fn level(sum: f32, reciprocal: f32) -> u8 {
        const LAST_BIT_IS_ONE: f32 = 8_388_608.0; // 2^23
        (sum * reciprocal + LAST_BIT_IS_ONE).to_bits() as u8
    }
}

impl Precision for Wide {
    type Sum = u32;
    type Float = f64;

    const START: f64 = 0.25;

    #[inline(always)]
    fn weighted(level: u8, weight: u32) -> u32 {
        u32::from(level).wrapping_mul(weight)
    }

    #[inline(always)]
    fn add(a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }

    #[inline(always)]
    fn columns(_lanes: impl Simd, rows: &[u32], columns: &mut [[f64; ROWS]]) {
        transpose(rows, columns, f64::from);
    }

    #[inline(always)]
    fn weight(weight: u32) -> f64 {
        f64::from(weight)
    }

    #[inline(always)]
    fn add_weighted(sum: f64, weight: f64, real: f64) -> f64 {
        sum + weight * real
    }

    #[expect(clippy::cast_precision_loss, reason = "two sides of at most 2^16")]
    fn reciprocal(total: u64) -> f64 {
        1.0 / total as f64
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the mean is in the lowest eight bits")]
    fn level(sum: f64, reciprocal: f64) -> u8 {
        const LAST_BIT_IS_ONE: f64 = 4_503_599_627_370_496.0; // 2^52
        (sum * reciprocal + LAST_BIT_IS_ONE).to_bits() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "sums of at most 24 and 53 bits")]
    fn means_next_to_a_half_are_rounded_right_for_every_total() {
        let totals = (1..=Narrow::MAX).chain([65_537, (1 << 32) - 1, 1 << 32]);
        for total in totals {
            let (narrow, wide) = (Narrow::reciprocal(total), Wide::reciprocal(total));
            for level in 0..=255_u64 {
                for near in [0, total / 2, total.div_ceil(2)] {
                    for sum in [level * total + near, (level * total + near).saturating_sub(1)] {
                        let sum = sum.min(255 * total);
                        let mean = (2 * sum + total) / (2 * total);
                        if total <= Narrow::MAX {
                            let got = Narrow::level(sum as f32 + Narrow::START, narrow);
                            assert_eq!(u64::from(got), mean, "{sum} / {total}");
                        }
                        let got = Wide::level(sum as f64 + Wide::START, wide);
                        assert_eq!(u64::from(got), mean, "{sum} / {total}");
                    }
                }
            }
        }
    }
}
