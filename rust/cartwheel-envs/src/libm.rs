//! Functions of the C library that have no exact equivalent in Rust.
//!
//! `x ** 2` of a NumPy float is `pow(x, 2)`, whose last bit sometimes differs from that of `x * x`.
//! The compiler turns a power with a known exponent into a product, so the exponent is hidden from
//! it.
//!
//! # Invariants
//!
//! 1. `pow` and `powf` are the functions of the C standard, which is linked on every target that
//!    supports Rust's `std`: they take and return floats by value and access no memory except
//!    `errno`.
#![expect(unsafe_code, reason = "two functions of the C library, see the invariants")]

use std::hint::black_box;

// Safe by invariant 1.
unsafe extern "C" {
    safe fn pow(x: f64, y: f64) -> f64;
    safe fn powf(x: f32, y: f32) -> f32;
}

/// `x ** 2` of a NumPy `float64`, or `math.pow(x, 2)`.
#[inline]
pub fn square(x: f64) -> f64 {
    pow(x, black_box(2.0))
}

/// `x ** 2` of a NumPy `float32`.
#[inline]
pub fn square_f32(x: f32) -> f32 {
    powf(x, black_box(2.0))
}

/// `np.sin` of a NumPy `float32`.
pub fn sin_f32(x: f32) -> f32 {
    if has_fma() { sincos(x, false) } else { x.sin() }
}

/// `np.cos` of a NumPy `float32`.
pub fn cos_f32(x: f32) -> f32 {
    if has_fma() { sincos(x, true) } else { x.cos() }
}

/// Where the processor has fused multiply-add, NumPy uses its own sine and cosine of `float32`,
/// whose last bits differ from the C library's.
fn has_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}

/// NumPy's rule: Cody and Waite's reduction by multiples of π/2, then a polynomial (W. J. Cody,
/// W. Waite, "Software Manual for the Elementary Functions", 1980). For the small angles of a reset.
fn sincos(x: f32, cosine: bool) -> f32 {
    // Bit patterns of NumPy's constants: π/2 in three parts, and both polynomials.
    const HALF_PI: [u32; 3] = [0xbfc9_0fd8, 0xb4a8_885a, 0xa7c2_34c4];
    const SINE: [u32; 4] = [0x363e_9dde, 0xb950_35dd, 0x3c08_88cd, 0xbe2a_aaab];
    const COSINE: [u32; 5] = [0x37cc_730b, 0xbab6_036e, 0x3d2a_aa9e, 0xbf00_0000, 0x3f80_0000];
    let quadrant = (x * std::f32::consts::FRAC_2_PI).round_ties_even();
    let reduced = HALF_PI.iter().fold(x, |x, &part| quadrant.mul_add(f32::from_bits(part), x));
    let squared = reduced * reduced;
    let polynomial = |factors: &[u32]| {
        let factors = factors.iter().map(|&bits| f32::from_bits(bits));
        factors.reduce(|sum, factor| sum.mul_add(squared, factor)).expect("there are factors")
    };
    #[expect(clippy::cast_possible_truncation, reason = "a small number of quarter turns")]
    let quadrant = quadrant as i32 + i32::from(cosine);
    let value = if quadrant & 1 == 0 {
        (polynomial(&SINE) * squared).mul_add(reduced, reduced)
    } else {
        polynomial(&COSINE)
    };
    if quadrant & 2 == 0 { value } else { -value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exclusive or and sum of the bits, against `np.sin` and `np.cos` of 6000 `float32` scalars.
    #[test]
    fn sine_and_cosine_of_floats_are_numpys() {
        if !has_fma() {
            return; // the values below need a processor with fused multiply-add
        }
        let angles = || (-3000_i16..3000).map(|step| f32::from(step) * 0.001_237);
        let sums = |function: fn(f32) -> f32| {
            angles()
                .map(|x| function(x).to_bits())
                .fold((0, 0), |(folded, sum), bits| (folded ^ bits, sum + u64::from(bits)))
        };
        assert_eq!(sums(sin_f32), (0xbf0a_049e, 0x0b9c_f3f4_bffc));
        assert_eq!(sums(cos_f32), (0x80d7_9bc6, 0x0c88_2e71_0e6c));
    }

    #[test]
    fn squares_are_powers_and_not_products() {
        // `np.float64(x) ** 2` and `x * x` differ in the last bit for one number in several
        // thousand.
        let numbers = (0..100_000_u32).map(|at| f64::from(at) * 1.234_567e-4 + 0.1);
        let differing = numbers.filter(|&x| square(x).to_bits() != (x * x).to_bits()).count();
        assert!(differing > 0, "the compiler made products of the powers");
    }
}
