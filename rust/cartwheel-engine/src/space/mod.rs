//! Spaces as memory sees them: leaves, and the offset of each leaf of a batch.
//!
//! A space flattens into *leaves*, arrays of one dtype and one shape. A batch of `rows` rows holds
//! each leaf as one contiguous array `[rows, *shape]` (structure of arrays), so that a leaf can be
//! passed to the caller without a copy.

mod action_tag;
mod layout;

pub use action_tag::ActionTag;
pub use cartwheel_core::{DType, Leaf};
pub use layout::{BatchLayout, LEAF_ALIGN, Layout, RolloutLayout, TooLarge};
pub(crate) use layout::{Extent, PAGE};
