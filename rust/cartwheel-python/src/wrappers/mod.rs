//! Wrappers of vector environments: what they compute for whole batches.

mod column;
mod episode_metrics;
mod finished;
mod places;
mod row_kinds;
mod state;
mod timed_episodes;

pub(crate) use episode_metrics::PyEpisodeMetrics;
pub(crate) use row_kinds::PyRowKinds;
pub(crate) use timed_episodes::PyTimedEpisodes;
