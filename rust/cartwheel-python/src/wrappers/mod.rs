//! Wrappers of vector environments: what they compute for whole batches.
//!
//! Each keeps its state behind a lock, and makes arrays while it holds it. A thread that waits for the
//! lock is detached (`lock_py_attached`). Otherwise it could wait forever without the GIL: NumPy may
//! detach the thread inside, which is attached again only after a garbage collection, which waits
//! until every attached thread stops for it. Arrays that are reused are made before the lock: an array
//! that is let go for one may have weak references, whose functions may step the same wrappers.

mod column;
mod conversions;
mod episode_metrics;
mod finished;
mod flag;
mod frame_stack;
mod fused;
mod locked;
mod observation_normalizer;
mod places;
mod reward_normalizer;
mod rewards;
mod row_kinds;
mod state;
mod timed_episodes;

pub(crate) use episode_metrics::PyEpisodeMetrics;
pub(crate) use flag::PyFlag;
pub(crate) use frame_stack::PyFrameStack;
pub(crate) use fused::PyFusedStep;
pub(crate) use observation_normalizer::PyObservationNormalizer;
pub(crate) use reward_normalizer::PyRewardNormalizer;
pub(crate) use row_kinds::PyRowKinds;
pub(crate) use timed_episodes::PyTimedEpisodes;
