//! Four floats in a vector register, with the operators of floats.
//!
//! Written with the processor's own instructions: whether a compiler makes vectors of loops over
//! arrays depends on details that change with every line.
//!
//! # Invariants
//!
//! 1. An [`Avx2`] exists only where the processor was found to have `avx2` and `fma`:
//!    [`Avx2::detect`] makes one, and [`Four::of`], where a `Four` exists.
//! 2. A [`Four`] and a [`Mask`] exist only where an `Avx2` does: they are made from one, or from
//!    each other.
//! 3. A [`Four`] is 32 bytes, as four floats are, and all bits are valid in both.
//!
//! So code that has one of the three may use these instructions. All functions are inlined into
//! [`Avx2::run`], which is compiled for them.
#![expect(unsafe_code, reason = "instructions that not every processor has, see the invariants")]
#![expect(clippy::unused_self, reason = "to have one of them is what matters (invariant 2)")]
#![expect(clippy::inline_always, reason = "functions take on the instructions of their caller")]

pub(crate) mod block;
pub(crate) mod power;
pub(crate) mod sine;

use std::arch::x86_64::{
    __m256d, _CMP_EQ_OQ, _CMP_LE_OQ, _CMP_LT_OQ, _MM_FROUND_NO_EXC, _MM_FROUND_TO_ZERO,
    _mm256_add_pd, _mm256_and_pd, _mm256_andnot_pd, _mm256_blendv_pd, _mm256_castpd_si256,
    _mm256_castsi256_pd, _mm256_cmp_pd, _mm256_cvtpd_ps, _mm256_cvtps_pd, _mm256_div_pd,
    _mm256_fmadd_pd, _mm256_max_pd, _mm256_min_pd, _mm256_movemask_pd, _mm256_mul_pd, _mm256_or_pd,
    _mm256_permute2f128_pd, _mm256_round_pd, _mm256_set_pd, _mm256_set1_pd, _mm256_slli_epi64,
    _mm256_sub_pd, _mm256_unpackhi_pd, _mm256_unpacklo_pd, _mm256_xor_pd,
};
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Sub};

/// Proof that the processor has the instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof, if the processor has them.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        has.then_some(Self(()))
    }

    /// Does work in a function that is compiled for these instructions.
    #[inline]
    pub(crate) fn run<W: SimdKernel>(self, work: W) -> W::Result {
        #[target_feature(enable = "avx2,fma")]
        fn run<W: SimdKernel>(avx2: Avx2, work: W) -> W::Result {
            work.run(avx2)
        }
        // SAFETY: the processor has the features (invariant 1).
        unsafe { run(self, work) }
    }

    /// Four numbers.
    #[inline(always)]
    pub(crate) fn four(self, [a, b, c, d]: [f64; 4]) -> Four {
        // SAFETY: invariant 1.
        Four(unsafe { _mm256_set_pd(d, c, b, a) })
    }
}

/// A kernel with vectors. A closure would not do, because nothing can make sure that it is inlined.
pub(crate) trait SimdKernel {
    type Result;

    /// Has to be `#[inline(always)]`.
    fn run(self, avx2: Avx2) -> Self::Result;
}

/// Four floats.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Four(__m256d);

/// The sign of a float.
const SIGN: u64 = 1 << 63;

/// A condition on each of four floats: the sign decides.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Mask(__m256d);

impl Four {
    /// This number four times.
    #[inline(always)]
    pub(crate) fn all(self, number: f64) -> Self {
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_set1_pd(number) })
    }

    /// Other numbers.
    #[inline(always)]
    pub(crate) fn of(self, numbers: [f64; 4]) -> Self {
        Avx2(()).four(numbers) // a `Four` exists (invariant 2)
    }

    #[inline(always)]
    pub(crate) fn to_array(self) -> [f64; 4] {
        // SAFETY: invariant 3.
        unsafe { std::mem::transmute(self) }
    }

    /// `self * factor + term`, rounded once.
    #[inline(always)]
    pub(crate) fn mul_add(self, factor: Self, term: Self) -> Self {
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_fmadd_pd(self.0, factor.0, term.0) })
    }

    #[inline(always)]
    pub(crate) fn abs(self) -> Self {
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_andnot_pd(self.all(-0.0).0, self.0) })
    }

    /// This magnitude with the sign of another number.
    #[inline(always)]
    pub(crate) fn copysign(self, sign: Self) -> Self {
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_or_pd(self.abs().0, sign.bits_of(SIGN).0) })
    }

    #[inline(always)]
    pub(crate) fn trunc(self) -> Self {
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_round_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(self.0) })
    }

    /// Rounded to `float32`.
    #[inline(always)]
    pub(crate) fn rounded(self) -> Self {
        // SAFETY: invariant 2.
        let narrow = unsafe { _mm256_cvtpd_ps(self.0) };
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_cvtps_pd(narrow) })
    }

    /// [`numeric::clip`](crate::numeric::clip): where no operand is the larger one, both instructions
    /// return the second.
    #[inline(always)]
    pub(crate) fn clip(self, low: f64, high: f64) -> Self {
        // SAFETY: invariant 2.
        let clipped = unsafe { _mm256_max_pd(self.all(low).0, self.0) };
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_min_pd(self.all(high).0, clipped) })
    }

    #[inline(always)]
    pub(crate) fn lt(self, other: Self) -> Mask {
        // SAFETY: invariant 2.
        Mask(unsafe { _mm256_cmp_pd::<_CMP_LT_OQ>(self.0, other.0) })
    }

    #[inline(always)]
    pub(crate) fn gt(self, other: Self) -> Mask {
        other.lt(self)
    }

    #[inline(always)]
    pub(crate) fn le(self, other: Self) -> Mask {
        // SAFETY: invariant 2.
        Mask(unsafe { _mm256_cmp_pd::<_CMP_LE_OQ>(self.0, other.0) })
    }

    #[inline(always)]
    pub(crate) fn ge(self, other: Self) -> Mask {
        other.le(self)
    }

    #[inline(always)]
    pub(crate) fn eq(self, other: Self) -> Mask {
        // SAFETY: invariant 2.
        Mask(unsafe { _mm256_cmp_pd::<_CMP_EQ_OQ>(self.0, other.0) })
    }

    /// Lanes in which the bit `BELOW` places below the sign is set.
    #[inline(always)]
    pub(crate) fn bit<const BELOW: i32>(self) -> Mask {
        // SAFETY: invariant 2.
        let bits = unsafe { _mm256_castpd_si256(self.0) };
        // SAFETY: invariant 2.
        let shifted = unsafe { _mm256_slli_epi64::<BELOW>(bits) };
        // SAFETY: invariant 2.
        Mask(unsafe { _mm256_castsi256_pd(shifted) })
    }

    /// These bits alone.
    #[inline(always)]
    pub(crate) fn bits_of(self, bits: u64) -> Self {
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_and_pd(self.0, self.all(f64::from_bits(bits)).0) })
    }

    /// With the other sign where the mask is set.
    #[inline(always)]
    pub(crate) fn negated(self, mask: Mask) -> Self {
        let sign = Self(mask.0).bits_of(SIGN);
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_xor_pd(self.0, sign.0) })
    }

    /// The rows of a table that the lowest bits name, as columns; its last row for a number that is
    /// too large.
    #[inline(always)]
    pub(crate) fn look_up(self, low_bits: u64, table: &[[u64; 4]]) -> [Self; 4] {
        let last = table.len() - 1;
        let [a, b, c, d] = self.to_array().map(|pattern| {
            #[expect(clippy::cast_possible_truncation, reason = "the lowest bits are asked for")]
            let row = (pattern.to_bits() & low_bits) as usize;
            // SAFETY: invariant 3.
            unsafe { std::mem::transmute::<[u64; 4], __m256d>(table[row.min(last)]) }
        });
        // SAFETY: invariant 2.
        let even = |a, b| unsafe { _mm256_unpacklo_pd(a, b) };
        // SAFETY: invariant 2.
        let odd = |a, b| unsafe { _mm256_unpackhi_pd(a, b) };
        // SAFETY: invariant 2.
        let first = |a, b| Self(unsafe { _mm256_permute2f128_pd::<0x20>(a, b) });
        // SAFETY: invariant 2.
        let second = |a, b| Self(unsafe { _mm256_permute2f128_pd::<0x31>(a, b) });
        [
            first(even(a, b), even(c, d)),
            first(odd(a, b), odd(c, d)),
            second(even(a, b), even(c, d)),
            second(odd(a, b), odd(c, d)),
        ]
    }
}

impl Mask {
    /// `yes` where the mask is set, `no` elsewhere.
    #[inline(always)]
    pub(crate) fn select(self, yes: Four, no: Four) -> Four {
        // SAFETY: invariant 2.
        Four(unsafe { _mm256_blendv_pd(no.0, yes.0, self.0) })
    }

    /// Whether it is set, lane by lane.
    #[inline(always)]
    pub(crate) fn to_array(self) -> [bool; 4] {
        let bits = self.to_bits();
        [0, 1, 2, 3].map(|lane| bits & 1 << lane != 0)
    }

    /// Whether it is set in every lane.
    #[inline(always)]
    pub(crate) fn holds(self) -> bool {
        self.to_bits() == 0b1111
    }

    /// One bit for each lane, the first lane lowest.
    #[inline(always)]
    fn to_bits(self) -> i32 {
        // SAFETY: invariant 2.
        unsafe { _mm256_movemask_pd(self.0) }
    }
}

impl BitAnd for Mask {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_and_pd(self.0, other.0) })
    }
}

impl BitOr for Mask {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_or_pd(self.0, other.0) })
    }
}

impl Neg for Four {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        // SAFETY: invariant 2.
        Self(unsafe { _mm256_xor_pd(self.0, self.all(-0.0).0) })
    }
}

/// An operator between two of them, and between one and a float.
macro_rules! operator {
    ($($trait:ident $method:ident $instruction:ident)*) => {$(
        impl $trait for Four {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                // SAFETY: invariant 2.
                Self(unsafe { $instruction(self.0, other.0) })
            }
        }

        impl $trait<f64> for Four {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: f64) -> Self {
                self.$method(self.all(other))
            }
        }

        impl $trait<Four> for f64 {
            type Output = Four;

            #[inline(always)]
            fn $method(self, other: Four) -> Four {
                other.all(self).$method(other)
            }
        }
    )*};
}

operator! {
    Add add _mm256_add_pd
    Sub sub _mm256_sub_pd
    Mul mul _mm256_mul_pd
    Div div _mm256_div_pd
}
