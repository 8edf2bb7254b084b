//! Computations of wrappers for whole batches, apart from the pool.
//!
//! A batch has one *place* for each row that a call returned. A place shows an *environment*, whose
//! number is the place itself in a batch of all rows, and an entry of `rows` otherwise. State
//! belongs to environments, so it is found by that number.
#![expect(clippy::inline_always, reason = "functions take on the instructions of their caller")]

mod bits;
mod clip;
mod compress;
mod episode_metrics;
mod finished;
mod frame_stack;
mod moments;
mod observation_normalizer;
mod places;
mod reward_normalizer;
mod row_kinds;
mod running;
mod slot;
mod timed_episodes;

pub use clip::clip;
pub use compress::{gather, num_kept, scatter};
pub use episode_metrics::{EpisodeMetrics, Reports};
pub use finished::{Archive, Finished, Flags};
pub use frame_stack::{FrameStack, Padding};
pub use moments::Moments;
pub use observation_normalizer::{ObservationNormalizer, limit_to};
pub use places::{
    At, EndedPlaces, FAILED, INCOMPLETE, NoSuchRow, Places, RESET, SHOWN, StepResults, TRANSITION,
    existing_rows, is_stepped, set_places,
};
pub use reward_normalizer::RewardNormalizer;
pub use row_kinds::RowKinds;
pub use running::{Ends, Running};
pub use slot::Slot;
pub use timed_episodes::{Timed, TimedEpisodes};
