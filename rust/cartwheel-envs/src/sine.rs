//! The C library's sine and cosine of small angles, in a form that compilers inline and vectorise.
//!
//! NumPy's and Python's `sin` are the C library's, so an environment that computes its own sine
//! must give the same bits. This is glibc's method on processors with fused multiply-add. The angle
//! is split into a multiple of 1/128, whose sine and cosine are in a table with more than 100 bits,
//! and a rest, whose sine and cosine are short polynomials. The addition theorems combine them (S.
//! Gal, B. Bachelis, "An Accurate Elementary Mathematical Library for the IEEE Floating Point
//! Standard", ACM TOMS 17, 1991). For small sines a polynomial alone suffices. Which operations are
//! fused and which are rounded twice is part of the method.
//!
//! Correctness does not depend on that description: [`is_exact`] compares this machine's C library
//! with the method in every interval of the table, and where they differ the method is not used.

mod table;

use std::sync::OnceLock;

use table::{ANGLES, TABLE};

/// Angles with a smaller absolute value are small.
pub(crate) const LIMIT: f64 = 0.85;

/// 1.5 · 2⁴⁵: adding it leaves an angle rounded to a multiple of 1/128 in the lowest bits.
const SPLIT: f64 = 52_776_558_133_248.0;
/// Below it a polynomial alone gives the sine.
const TINY: f64 = 0.126;
/// 2⁻²⁶: below it the sine equals the angle.
const NEGLIGIBLE: f64 = 1.490_116_119_384_765_6e-8;
/// Coefficients of x³, x⁵ … x¹¹ in the sine of a tiny angle, last first.
const TINY_SINE: [u64; 5] = [
    0xbe5a_ddff_c2fc_df59,
    0x3ec7_1de2_7b9a_7ed9,
    0xbf2a_01a0_19db_08b8,
    0x3f81_1111_1111_0ece,
    0xbfc5_5555_5555_5555,
];
/// Coefficients of x³ and x⁵ in the sine of a rest.
const SINE: [u64; 2] = [0xbfc5_5555_5555_5515, 0x3f81_1110_e829_872f];
/// Coefficients of x², x⁴ and x⁶ in 1 minus the cosine of a rest.
const COSINE: [u64; 3] = [0x3fe0_0000_0000_0000, 0xbfa5_5555_5555_5535, 0x3f56_c16b_edd9_e239];

/// Sines and cosines of angles below [`LIMIT`], to the C library's last bit if [`is_exact`].
///
/// Fast only in a function that is compiled for a processor with fused multiply-add: there the
/// lanes become vector lanes.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it takes on the instructions of its caller")]
pub(crate) fn sin_cos<const LANES: usize>(angles: [f64; LANES]) -> ([f64; LANES], [f64; LANES]) {
    let [mut sine, mut sine_rest, mut cosine, mut cosine_rest] = [[0.0; LANES]; 4];
    for lane in 0..LANES {
        let angle = nearest(angles[lane]);
        [sine[lane], sine_rest[lane], cosine[lane], cosine_rest[lane]] =
            TABLE[angle].map(f64::from_bits);
    }
    let [mut sines, mut cosines] = [[0.0; LANES]; 2];
    for lane in 0..LANES {
        let of_table = [sine[lane], sine_rest[lane], cosine[lane], cosine_rest[lane]];
        (sines[lane], cosines[lane]) = put_together(angles[lane], of_table);
    }
    (sines, cosines)
}

/// The table's entry for the multiple of 1/128 nearest to `angle`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as above")]
fn nearest(angle: f64) -> usize {
    let split = SPLIT + angle.abs();
    #[expect(clippy::cast_possible_truncation, reason = "the lowest bits are asked for")]
    let entry = split.to_bits() as usize & 0x7f;
    entry.min(ANGLES - 1)
}

/// Sine and cosine of `x`, from the table's entry for the multiple of 1/128 nearest to it.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as above")]
fn put_together(x: f64, [sine, sine_rest, cosine, cosine_rest]: [f64; 4]) -> (f64, f64) {
    let magnitude = x.abs();
    let rest = magnitude - (SPLIT + magnitude - SPLIT);
    let squared = rest * rest;
    let cubic = rest * squared;
    let [third, fifth] = SINE.map(f64::from_bits);
    let [second, fourth, sixth] = COSINE.map(f64::from_bits);
    let factor = squared.mul_add(fifth, third);
    let shortfall = squared * squared.mul_add(squared.mul_add(sixth, fourth), second);

    let fused = cubic.mul_add(factor, rest);
    let correction = (-fused).mul_add(sine_rest, cosine_rest);
    let correction = (-cosine).mul_add(shortfall, correction);
    let cos = cosine + (-sine).mul_add(fused, correction);

    let rounded = rest + cubic * factor; // rounded twice, unlike the one above
    let correction = rounded.mul_add(cosine_rest, sine_rest);
    let correction = (-sine).mul_add(shortfall, correction);
    let large = (sine + cosine.mul_add(rounded, correction)).copysign(x);

    let squared = x * x;
    let tiny = TINY_SINE.map(f64::from_bits);
    let series = tiny[1..].iter().fold(tiny[0], |sum, &factor| sum.mul_add(squared, factor));
    let series = x + series * x * squared;
    let small = if magnitude < NEGLIGIBLE { x } else { series }; // keeps the sign of zero
    (if magnitude < TINY { small } else { large }, cos)
}

/// Whether [`sin_cos`] agrees with the C library; computed once.
pub(crate) fn is_exact() -> bool {
    static EXACT: OnceLock<bool> = OnceLock::new();
    *EXACT.get_or_init(|| probed().all(agrees))
}

/// 73 angles near each angle of the table, with both signs; fewer at its two ends. If the C library
/// uses another method, several in a hundred differ.
fn probed() -> impl Iterator<Item = f64> {
    let angles = (0_u32..).map(|step| f64::from(step) / (73.0 * 128.0) + 1e-5);
    angles.take_while(|&angle| angle < LIMIT).flat_map(|angle| [angle, -angle])
}

/// Whether both agree on the sine and cosine of one angle.
fn agrees(angle: f64) -> bool {
    let ([sin], [cos]) = sin_cos([angle]);
    sin.to_bits() == angle.sin().to_bits() && cos.to_bits() == angle.cos().to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sine_and_cosine_equal_the_librarys_wherever_the_probe_succeeds() {
        if !is_exact() {
            return; // another C library, or no fused multiply-add: the method is not used
        }
        let mut rng = cartwheel::Rng::from_seed(5);
        for _ in 0..2_000_000 {
            let angle = rng.uniform(-LIMIT, LIMIT);
            assert!(agrees(angle), "sine or cosine of {angle:?}");
        }
        for tiny in [0.0, -0.0, f64::MIN_POSITIVE, 1e-9, -1e-9, TINY, -TINY, LIMIT, -LIMIT] {
            assert!(agrees(tiny), "sine or cosine of {tiny:?}");
        }
    }

    #[test]
    fn every_entry_of_the_table_is_probed() {
        let mut probes = [0; ANGLES];
        probed().for_each(|angle| probes[nearest(angle)] += 1);
        let (ends, inner) = ([probes[0], probes[ANGLES - 1]], &probes[1..ANGLES - 1]);
        assert!(inner.iter().all(|&probes| probes == 146), "{inner:?}");
        assert!(ends.iter().all(|&probes| probes > 40), "{ends:?}");
        assert_eq!(nearest(LIMIT), ANGLES - 1, "no entry is beyond the limit");
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn the_method_is_used_with_glibc_on_processors_with_fused_multiply_add() {
        if std::arch::is_x86_feature_detected!("fma") {
            assert!(is_exact(), "this glibc computes sines in another way");
        }
    }
}
