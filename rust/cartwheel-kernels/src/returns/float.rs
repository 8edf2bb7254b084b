//! The two floating-point types of the estimators.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Sub};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// `f32` or `f64`.
pub trait Float:
    Copy
    + Debug
    + Send
    + Sync
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + sealed::Sealed
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;

    /// The nearest number of this type.
    fn from_f64(number: f64) -> Self;

    /// The same number as `f64`.
    fn to_f64(self) -> f64;

    /// The number itself if `keep` is set, else 0, selected by its bits.
    #[must_use]
    fn masked(self, keep: bool) -> Self;
}

impl Float for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    #[expect(clippy::cast_possible_truncation, reason = "rounding is intended")]
    fn from_f64(number: f64) -> Self {
        number as Self
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline]
    fn masked(self, keep: bool) -> Self {
        Self::from_bits(self.to_bits() & u32::from(keep).wrapping_neg())
    }
}

impl Float for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    fn from_f64(number: f64) -> Self {
        number
    }

    fn to_f64(self) -> f64 {
        self
    }

    #[inline]
    fn masked(self, keep: bool) -> Self {
        Self::from_bits(self.to_bits() & u64::from(keep).wrapping_neg())
    }
}

/// `chosen` where the condition holds, else 0; a number that is not chosen may be NaN.
///
/// Written with `if`, some loops become branches and are not vectorized.
#[inline]
pub(super) fn only_if<F: Float>(condition: bool, chosen: F) -> F {
    chosen.masked(condition)
}

/// The smaller of `number` and `cap`; NaN stays NaN, so that an invalid ratio is noticed.
#[inline]
pub(super) fn capped<F: Float>(number: F, cap: F) -> F {
    if number > cap { cap } else { number }
}
