//! The C library's squares, in vectors.
//!
//! `x ** 2` of a NumPy float is the C library's power, which does not always return the nearest
//! float. In glibc its error is below 0.51 units of the last place (`e_pow.c`; the largest of 2·10⁹
//! squares was 0.5087), and `powf`'s relative error before its rounding is below 2⁻³³ for numbers
//! around 1. So the power is the rounded product, unless the exact square lies near the middle of two
//! floats. Only then, for 3 numbers in 100, is the function called.
//!
//! Correctness does not depend on that description alone: [`is_exact`] compares ten thousand squares, some
//! hundred of them just far enough from the middle, with this machine's C library.

#![expect(clippy::inline_always, reason = "functions take on the instructions of their caller")]

use crate::libm;
use crate::numeric::round;
use crate::simd::{Avx2, Four, Mask, SimdKernel};

/// Largest distance of an exact square from the nearest float, in units of the last place, at which
/// the power is that float: a margin of 0.0156, which is 1.8 times the error above.
const NEAR: f64 = 0.484_375;
/// Squares between these have an exact distance from the nearest float.
const EXACT: [f64; 2] = [1e-280, 1e300];
/// 2⁻³¹: the relative error of `powf`, with a margin.
const ERROR: f64 = 4.656_612_873_077_393e-10;
/// Absolute values between which `powf` is as accurate as that.
const ACCURATE: [f64; 2] = [0.000_244_140_625, 16.0];

/// `x ** 2` of NumPy's `float64`, to the C library's last bit if [`is_exact`].
#[inline(always)]
pub(crate) fn squares(x: Four) -> Four {
    let (squares, sure) = products(x);
    if sure.holds() { squares } else { called(x, squares, sure, libm::square) }
}

/// `x ** 2` of NumPy's `float32`, likewise.
#[inline(always)]
pub(crate) fn squares_f32(x: Four) -> Four {
    let (squares, sure) = products_f32(x);
    let call = |x: f64| f64::from(libm::square_f32(round(x)));
    if sure.holds() { squares } else { called(x, squares, sure, call) }
}

/// The squares, with calls where they are not sure.
#[inline(always)]
fn called(x: Four, squares: Four, sure: Mask, square: impl Fn(f64) -> f64) -> Four {
    let (x, sure, mut called) = (x.to_array(), sure.to_array(), squares.to_array());
    for lane in 0..4 {
        if !sure[lane] {
            called[lane] = square(x[lane]);
        }
    }
    squares.of(called)
}

/// The rounded products, and whether the powers are the same for sure.
#[inline(always)]
fn products(x: Four) -> (Four, Mask) {
    let square = x * x;
    let distance = x.mul_add(x, -square);
    // The power of two below a float is 2⁵² units of its last place. Below a power of two itself, the
    // unit is half as large.
    let power = square.bits_of(f64::INFINITY.to_bits());
    let near = distance.abs().le(power * (NEAR * f64::EPSILON));
    let whole = square.gt(power) | distance.ge(x.all(0.0));
    (square, near & whole & square.gt(x.all(EXACT[0])) & square.lt(x.all(EXACT[1])))
}

/// As [`products`].
#[inline(always)]
fn products_f32(x: Four) -> (Four, Mask) {
    let square = x * x; // exact
    let (low, high) = ((square * (1.0 - ERROR)).rounded(), (square * (1.0 + ERROR)).rounded());
    let accurate = x.abs().gt(x.all(ACCURATE[0])) & x.abs().lt(x.all(ACCURATE[1]));
    (low, low.eq(high) & accurate)
}

/// Whether squares that this file calls sure agree with the C library.
pub(crate) fn is_exact(avx2: Avx2) -> bool {
    avx2.run(Probe)
}

/// The comparison of [`is_exact`].
struct Probe;

impl SimdKernel for Probe {
    type Result = bool;

    #[inline(always)]
    fn run(self, avx2: Avx2) -> bool {
        for step in 0_u32..10_000 {
            if !agrees(avx2, f64::from(step) * 1.618_034e-3 + 1e-3) {
                return false; // a loop, as in `sine.rs`
            }
        }
        true
    }
}

/// Whether the squares of a number agree with the C library's.
#[inline(always)]
fn agrees(avx2: Avx2, x: f64) -> bool {
    let narrow = round(x);
    let wide = squares(avx2.four([x; 4])).to_array()[0];
    let [rounded, ..] = squares_f32(avx2.four([f64::from(narrow); 4])).to_array();
    let power = f64::from(libm::square_f32(narrow));
    wide.to_bits() == libm::square(x).to_bits() && rounded.to_bits() == power.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_equal_the_librarys_wherever_the_probe_succeeds() {
        let Some(avx2) = Avx2::detect() else { return };
        if !cfg!(target_env = "gnu") && !is_exact(avx2) {
            return; // another C library: the products are not used
        }
        assert!(is_exact(avx2), "the probe fails with glibc");
        let mut rng = cartwheel::Rng::from_seed(6);
        for size in [1e-3, 0.5, 4.0, 100.0, 1e20] {
            for _ in 0..100_000 {
                let x = rng.uniform(-size, size);
                assert!(agrees(avx2, x), "square of {x:?}");
            }
        }
        let powers = (-1074_i32..1024).map(|power| 2.0_f64.powi(power));
        let roots = (-1000_i32..1000).map(|power| 2.0_f64.powf(f64::from(power) + 0.5));
        for x in powers.chain(roots).chain([0.0, f64::MAX, f64::INFINITY, f64::MIN_POSITIVE]) {
            for x in [x.next_down(), x, x.next_up()] {
                assert!(agrees(avx2, x) && agrees(avx2, -x), "square of {x:?}");
            }
        }
    }

    #[test]
    fn most_squares_need_no_call() {
        let Some(avx2) = Avx2::detect() else { return };
        let mut rng = cartwheel::Rng::from_seed(7);
        let [mut sure, mut sure_f32] = [0; 2];
        for _ in 0..100_000 {
            let x = rng.uniform(-10.0, 10.0);
            sure += u32::from(products(avx2.four([x; 4])).1.to_array()[0]);
            let x = avx2.four([f64::from(round(x)); 4]);
            sure_f32 += u32::from(products_f32(x).1.to_array()[0]);
        }
        assert!(sure > 96_000 && sure_f32 > 98_000, "{sure} and {sure_f32} of 100,000");
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn the_products_are_used_with_glibc() {
        if let Some(avx2) = Avx2::detect() {
            assert!(is_exact(avx2), "this glibc computes powers in another way");
        }
    }
}
