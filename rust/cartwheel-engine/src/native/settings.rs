//! Settings that all rows of a pool of native environments share, whatever their kind.

use crate::autoreset::{AutoresetMode, OnDone, Rules};

/// Settings that the rows of a pool share, besides their kind.
#[derive(Debug, Clone, Copy)]
pub struct ShardSettings {
    /// Restart of finished rows.
    pub autoreset: AutoresetMode,
    /// The effect of stepping a row that is over.
    pub on_done: OnDone,
    /// When episodes are cut, and how often a step repeats its action.
    pub rules: Rules,
    /// Times that the environment of a row is replaced after a failure or a panic, which truncates
    /// its episode; the next one fails the row.
    pub replacements: u32,
    /// Whether the pool's batches have final observations, see
    /// [`Plan::dense_finals`](crate::memory::Plan::dense_finals); then infos have none.
    pub dense_finals: bool,
    /// Whether batches run in guarded copies of the pool's memory: what a plugin writes outside of
    /// its rows is then an error. Slow.
    pub is_checked: bool,
    /// Whether the owner of the pool computes rewards and flags of rows. A step has two halves then. [`Call::Step`](crate::Call::Step) carries out the commands of rows and shows
    /// their observations, whose rewards and flags count for nothing. The owner leaves a
    /// [`ExternalRewards`](super::ExternalRewards) with each shard, and [`Call::Settle`](crate::Call::Settle) settles
    /// the rows; it has their observations again, the infos and the faults of both halves, and the resets of
    /// `SAME_STEP`. [`Policy::has_external_rewards`](crate::pool::Policy::has_external_rewards) is the same for the pool.
    pub has_external_rewards: bool,
    /// Whether the owner of the pool completes the resets of rows, and the number of the parameter by
    /// which it knows a row. The shard then leaves a [`BegunRow`](super::BegunRow) for each row that
    /// begins an episode. The owner writes the row's first state where the row keeps it, and passes on
    /// [`Request::Begin`](super::Request::Begin), which shows it.
    pub external_resets: Option<usize>,
}
