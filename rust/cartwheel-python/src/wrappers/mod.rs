//! Wrappers of vector environments: what they compute for whole batches.

mod column;
mod row_kinds;

pub(crate) use row_kinds::PyRowKinds;
