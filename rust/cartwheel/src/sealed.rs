//! The mark of traits that are implemented in this crate and by its macros only.

/// Implemented in this crate and by its macros only.
pub trait Sealed {}
