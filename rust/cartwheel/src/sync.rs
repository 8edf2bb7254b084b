//! Atomics that loom can replace: the only file that chooses between `std` and `loom`.
//!
//! Words in mapped memory are always `std` atomics, since loom's do not have their layout; the
//! protocols over them are written against [`crate::wake::Word`] and so can be checked too.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
