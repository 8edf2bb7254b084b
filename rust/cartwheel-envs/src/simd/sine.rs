//! The C library's sine and cosine, in vectors.
//!
//! NumPy's and Python's `sin` are the C library's, so an environment that computes its own sine
//! must give the same bits. This is glibc's method on processors with fused multiply-add. An angle
//! beyond 0.85 is reduced by quarter turns, to a number and a much smaller rest. What is left is split
//! into a multiple of 1/128, whose sine and cosine are in a table with more than 100 bits,
//! and a rest, whose sine and cosine are short polynomials. The addition theorems combine them (S.
//! Gal, B. Bachelis, "An Accurate Elementary Mathematical Library for the IEEE Floating Point
//! Standard", ACM TOMS 17, 1991). For small sines a polynomial alone suffices. Which operations are
//! fused and which are rounded twice is part of the method.
//!
//! Correctness does not depend on that description: [`is_exact`] compares this machine's C library
//! with the method in every interval of the table, and where they differ the method is not used.

#![expect(clippy::inline_always, reason = "functions take on the instructions of their caller")]

mod table;

use table::TABLE;

use crate::simd::{Avx2, Four, SimdKernel};

/// Angles with a smaller absolute value are small.
pub(crate) const SMALL: f64 = 0.85;
/// Angles with a smaller absolute value can be reduced.
pub(crate) const LIMIT: f64 = 1e8;

/// π/2 in four parts: products of the first three with a number of quarter turns are exact.
const HALF_PI: [u64; 4] =
    [0x3ff9_21fb_5800_0000, 0xbe4d_de97_3c00_0000, 0xbc8c_b3b3_9800_0000, 0xbacd_747f_23e3_2ed7];
/// π/2 as it is taken off an angle between [`TURNS`], once: in two parts.
const HALF_PI_ONCE: [u64; 4] = [0x3ff9_21fb_5444_2d18, 0, 0x3c91_a626_3314_5c07, 0];
/// 1.5 · 2⁵²: adding it leaves a number rounded to an integer in the lowest bits.
const INTEGER: f64 = 6_755_399_441_055_744.0;
/// The method takes no quarter turn off an angle below the first, and one off an angle below the
/// second: numbers just above 0.85 and 3π/4.
const TURNS: [u64; 2] = [0x3feb_6000_0000_0000, 0x4003_68fd_0000_0000];
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

/// Sines and cosines of small angles, to the C library's last bit if [`is_exact`].
#[inline(always)]
pub(crate) fn sin_cos_of_small(angles: Four) -> (Four, Four) {
    let (sine, cosine) = put_together(angles, None);
    let negligible = angles.abs().lt(angles.all(NEGLIGIBLE));
    (negligible.select(angles, sine), cosine)
}

/// Sines and cosines of angles below [`LIMIT`], as [`sin_cos_of_small`].
#[inline(always)]
pub(crate) fn sin_cos(angles: Four) -> (Four, Four) {
    let (high, low, quarters) = reduced(angles);
    let (even, odd) = put_together(high, Some(low));
    let is_odd = quarters.bit::<63>();
    let sine = is_odd.select(odd, even).negated(quarters.bit::<62>());
    let cosine = is_odd.select(even, odd).negated((quarters + 1.0).bit::<62>());
    let negligible = angles.abs().lt(angles.all(NEGLIGIBLE)); // keeps the sign of zero
    (negligible.select(angles, sine), cosine)
}

/// `x` less some quarter turns: a number below 0.86, the rest that it lacks, and the number of
/// quarter turns in the two lowest bits.
#[inline(always)]
fn reduced(x: Four) -> (Four, Four, Four) {
    let [unturned, turned_once] = TURNS.map(|bits| x.abs().lt(x.all(f64::from_bits(bits))));
    let nearest = x.mul_add(x.all(std::f64::consts::FRAC_2_PI), x.all(INTEGER));
    let turns = turned_once.select(INTEGER + x.all(1.0).copysign(x), nearest);
    let turns = unturned.select(x.all(INTEGER), turns);
    let quarters = turns - INTEGER;
    let part = |at: usize| {
        let [in_two, in_four] =
            [HALF_PI_ONCE, HALF_PI].map(|parts| x.all(f64::from_bits(parts[at])));
        turned_once.select(in_two, in_four)
    };
    let max = (-quarters).mul_add(part(1), (-quarters).mul_add(part(0), x));
    let third = quarters * part(2);
    let less = max - third;
    let rest = max - less - third;
    let fourth = quarters * part(3);
    let high = less - fourth;
    let low = rest + (less - high - fourth);
    (high, low, turns)
}

/// Sine and cosine of `x + low`, and of `x` alone without `low`.
#[inline(always)]
fn put_together(x: Four, low: Option<Four>) -> (Four, Four) {
    let number = |bits: u64| x.all(f64::from_bits(bits));
    let magnitude = x.abs();
    let split = SPLIT + magnitude;
    let [sine, sine_rest, cosine, cosine_rest] = split.look_up(0x7f, &TABLE);
    let rest = magnitude - (split - SPLIT);
    let along = low.map(|low| low.negated(x.lt(x.all(0.0))));
    let [third, fifth] = SINE.map(number);
    let [second, fourth, sixth] = COSINE.map(number);
    let factor = |squared: Four| squared.mul_add(fifth, third);
    let series = |squared: Four| squared.mul_add(squared.mul_add(sixth, fourth), second);

    let whole = along.map_or(rest, |along| rest + along);
    let squared = whole * whole;
    let fused = (whole * squared).mul_add(factor(squared), whole);
    let shortfall = squared * series(squared);
    let correction = (-fused).mul_add(sine_rest, cosine_rest);
    let correction = (-cosine).mul_add(shortfall, correction);
    let cos = cosine + (-sine).mul_add(fused, correction);

    let squared = rest * rest;
    let (cubic, shortfall) = (rest * squared, squared * series(squared));
    let (rounded, shortfall) = match along {
        Some(along) => {
            (rest + cubic.mul_add(factor(squared), along), rest.mul_add(along, shortfall))
        }
        None => (rest + cubic * factor(squared), shortfall), // rounded twice, unlike the one above
    };
    let correction = rounded.mul_add(cosine_rest, sine_rest);
    let correction = (-sine).mul_add(shortfall, correction);
    let large = (sine + cosine.mul_add(rounded, correction)).copysign(x);

    let squared = x * x;
    let tiny = TINY_SINE.map(number);
    let series = tiny[1..].iter().fold(tiny[0], |sum, &factor| sum.mul_add(squared, factor));
    let small = match low {
        Some(low) => x + series.mul_add(x, -0.5 * low).mul_add(squared, low),
        None => x + series * x * squared,
    };
    (magnitude.lt(x.all(TINY)).select(small, large), cos)
}

/// Whether [`sin_cos`] and [`sin_cos_of_small`] agree with the C library.
pub(crate) fn is_exact(avx2: Avx2) -> bool {
    avx2.run(Probe)
}

/// The comparison of [`is_exact`].
struct Probe;

impl SimdKernel for Probe {
    type Result = bool;

    #[inline(always)]
    fn run(self, avx2: Avx2) -> bool {
        for angle in small().chain(larger()) {
            if !agrees(avx2, angle) {
                return false; // not `all`, whose closure would call a function for each instruction
            }
        }
        true
    }
}

/// 73 angles near each angle of the table, with both signs; fewer at its two ends. If the C library
/// uses another method, several in a hundred differ.
fn small() -> impl Iterator<Item = f64> {
    let angles = (0_u32..).map(|step| f64::from(step) / (73.0 * 128.0) + 1e-5);
    angles.take_while(|&angle| angle < SMALL).flat_map(|angle| [angle, -angle])
}

/// Angles of more than two turns in each direction, and some of every size.
fn larger() -> impl Iterator<Item = f64> {
    let angles = (0_u32..7_000).map(|step| f64::from(step) * 0.002 + 1e-5);
    let sizes = (0_i32..1_000).map(|step| 1.018_4_f64.powi(step)).filter(|&angle| angle < LIMIT);
    angles.chain(sizes).flat_map(|angle| [angle, -angle])
}

/// Whether all agree on the sine and cosine of one angle.
#[inline(always)]
fn agrees(avx2: Avx2, angle: f64) -> bool {
    let same = |(sin, cos): (Four, Four)| {
        let ([sin, ..], [cos, ..]) = (sin.to_array(), cos.to_array());
        sin.to_bits() == angle.sin().to_bits() && cos.to_bits() == angle.cos().to_bits()
    };
    let angles = avx2.four([angle; 4]);
    same(sin_cos(angles)) && (angle.abs() >= SMALL || same(sin_cos_of_small(angles)))
}

#[cfg(test)]
mod tests {
    use super::table::ANGLES;
    use super::*;

    /// The vectors, if the method is used.
    fn exact() -> Option<Avx2> {
        Avx2::detect().filter(|&avx2| is_exact(avx2))
    }

    #[test]
    fn sine_and_cosine_equal_the_librarys_wherever_the_probe_succeeds() {
        let Some(avx2) = exact() else {
            return; // another C library, or no fused multiply-add: the method is not used
        };
        let mut rng = cartwheel::Rng::from_seed(5);
        for size in [SMALL, 1.0, 2.5, 10.0, 1e3, LIMIT] {
            for _ in 0..150_000 {
                let angle = rng.uniform(-size, size);
                assert!(agrees(avx2, angle), "sine or cosine of {angle:?}");
            }
        }
        let ends = TURNS.map(f64::from_bits).into_iter().chain([TINY, SMALL, 0.7 * LIMIT, LIMIT]);
        let quarters = (0..1000).map(|quarters| f64::from(quarters) * std::f64::consts::FRAC_PI_2);
        let tiny = [f64::MIN_POSITIVE, 1e-300, 1e-9, NEGLIGIBLE, 1e-5];
        for near in ends.chain(quarters).chain(tiny) {
            for angle in [near.next_down(), near, near.next_up()] {
                let same = agrees(avx2, angle) && agrees(avx2, -angle);
                assert!(same, "sine or cosine of {angle:?}");
            }
        }
    }

    /// The table's entry of an angle.
    fn entry(angle: f64) -> usize {
        usize::try_from((SPLIT + angle.abs()).to_bits() & 0x7f).expect("seven bits")
    }

    #[test]
    fn every_entry_of_the_table_is_probed() {
        let mut probes = [0; ANGLES];
        small().for_each(|angle| probes[entry(angle)] += 1);
        let (ends, inner) = ([probes[0], probes[ANGLES - 1]], &probes[1..ANGLES - 1]);
        assert!(inner.iter().all(|&probes| probes == 146), "{inner:?}");
        assert!(ends.iter().all(|&probes| probes > 40), "{ends:?}");
    }

    #[test]
    fn no_angle_has_an_entry_beyond_the_last() {
        assert_eq!(entry(SMALL), ANGLES - 1);
        let Some(avx2) = exact() else { return };
        let [none, one] = TURNS.map(f64::from_bits);
        let (angles, ..) = reduced(avx2.four([none.next_down(), none, one.next_down(), one]));
        for angle in angles.to_array() {
            assert!(entry(angle) < ANGLES, "{angle:?}");
        }
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn the_method_is_used_with_glibc_on_processors_with_fused_multiply_add() {
        if let Some(avx2) = Avx2::detect() {
            assert!(is_exact(avx2), "this glibc computes sines in another way");
        }
    }
}
