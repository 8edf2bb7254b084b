//! Atomics that loom can replace, and at which tests can end a worker.
//!
//! This is the only file that chooses between `std` and `loom`. With loom or the feature
//! `failpoints` the words of the protocol are wrapped: a test can end the worker before every
//! access to a word, and so between any two of its stores.
//!
//! Words in mapped memory are always `std` atomics, since loom's atomics have another layout. The
//! protocols over them use [`crate::wake::Word`], so loom can check these too.

#[cfg(any(loom, feature = "failpoints"))]
pub(crate) use mortal::{AtomicU32, AtomicU64};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{Ordering, fence},
};
#[cfg(not(any(loom, feature = "failpoints")))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{Ordering, fence},
};

/// A word of two numbers, which change together.
pub(crate) const fn pack(upper: u32, lower: u32) -> u64 {
    ((upper as u64) << u32::BITS) | lower as u64
}

/// The upper and the lower number of a word.
#[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
pub(crate) const fn unpack(word: u64) -> (u32, u32) {
    ((word >> u32::BITS) as u32, word as u32)
}

#[cfg(any(loom, feature = "failpoints"))]
mod mortal {
    use std::ops::Deref;

    #[cfg(loom)]
    use loom::sync::atomic;
    #[cfg(not(loom))]
    use std::sync::atomic;

    use crate::failpoint::before_access;

    macro_rules! mortal {
        ($name:ident, $number:ty) => {
            /// An atomic; a thread or process can die before each access to it.
            #[derive(Debug, Default)]
            #[repr(transparent)]
            pub(crate) struct $name(atomic::$name);

            impl $name {
                /// An atomic with this initial value.
                pub(crate) fn new(value: $number) -> Self {
                    Self(atomic::$name::new(value))
                }
            }

            impl Deref for $name {
                type Target = atomic::$name;

                fn deref(&self) -> &Self::Target {
                    before_access();
                    &self.0
                }
            }
        };
    }

    mortal!(AtomicU32, u32);
    mortal!(AtomicU64, u64);
}
