//! Wrappers of vector environments: what they compute for whole batches.

mod column;
mod frame_stack;
mod observation_normalizer;
mod reward_normalizer;
mod row_kinds;

pub(crate) use frame_stack::PyFrameStack;
pub(crate) use observation_normalizer::PyObservationNormalizer;
pub(crate) use reward_normalizer::PyRewardNormalizer;
pub(crate) use row_kinds::PyRowKinds;
