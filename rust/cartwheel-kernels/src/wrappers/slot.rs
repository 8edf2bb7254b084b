//! Memory for results, which need not be initialized.

use std::mem::MaybeUninit;

/// Memory for one value of type `T`, which is written and never read.
pub trait Slot<T>: Copy {
    /// The value.
    fn of(value: T) -> Self;
}

impl<T: Copy> Slot<T> for T {
    #[inline(always)]
    fn of(value: T) -> Self {
        value
    }
}

impl<T: Copy> Slot<T> for MaybeUninit<T> {
    #[inline(always)]
    fn of(value: T) -> Self {
        Self::new(value)
    }
}
