//! The plan of a pool's memory.

use std::ops::Range;

use crate::error::Error;
use crate::space::{LEAF_ALIGN, Layout, Leaf, PAGE};

/// The memory of batches that are kept by default, and the bounds of their number; see
/// `docs/decisions/slabs.md`.
const KEPT_BYTES: usize = 1 << 30;
const KEPT: (usize, usize) = (8, 1024);
/// Memory for one row's infos without a final observation, and the bounds for one shard. Longer infos
/// are sent instead.
const INFO_BYTES_A_ROW: usize = 2048;
const INFO_BYTES: (usize, usize) = (1 << 16, 1 << 24);

/// The sizes of a pool's memory. Pool and workers compute every offset from it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Leaves of one observation.
    pub observations: Vec<Leaf>,
    /// Leaves of one action.
    pub actions: Vec<Leaf>,
    /// The rows of each shard, in order; together they are `0..num_envs`.
    pub shards: Vec<Range<usize>>,
    /// Rows of a batch: all of them, or fewer for a pool that receives the first rows that are
    /// done.
    pub batch_size: usize,
    /// Maximum number of slabs at once, at least one more than `Plan::open_batches`.
    pub max_slabs: usize,
    /// Bytes for the infos of each shard.
    pub info_bytes: usize,
    /// Whether each batch has the true next observation of every row, in addition to the observations.
    pub dense_finals: bool,
    /// Length of a reward, at least one: rewards are numbers, or arrays of this length.
    pub reward_width: usize,
}

impl Plan {
    /// A plan for these shards: batches of all rows without observations, actions and final
    /// observations, the smallest regions for infos, and as few slabs as there can be.
    pub fn new(shards: Vec<Range<usize>>) -> Self {
        Self {
            observations: Vec::new(),
            actions: Vec::new(),
            batch_size: shards.last().map_or(0, |shard| shard.end),
            shards,
            max_slabs: 2,
            info_bytes: LEAF_ALIGN,
            dense_finals: false,
            reward_width: 1,
        }
    }

    /// This plan with slabs for `kept` batches, by default as many as fit in 1 GiB, at least 8 and at
    /// most 1024, and with regions for infos of the usual length.
    #[must_use]
    pub fn sized(self, kept: Option<usize>) -> Self {
        // Sums that overflow here are refused by `check`.
        let row_bytes = |leaf: &Leaf| {
            let len = leaf.checked_row_len().unwrap_or(usize::MAX);
            len.saturating_mul(leaf.dtype.size())
        };
        let row_bytes = self.observations.iter().map(row_bytes).fold(0, usize::saturating_add);
        let arrays = if self.dense_finals { 2 } else { 1 };
        let batch_bytes = row_bytes.saturating_mul(self.batch_size).saturating_mul(arrays);
        let fitting = (KEPT_BYTES / batch_bytes.max(1)).clamp(KEPT.0, KEPT.1);
        let rows = self.shards.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        let infos = rows.saturating_mul(row_bytes.saturating_add(INFO_BYTES_A_ROW));
        // Each other batch that is filled at the same time needs a slab, and each batch needs one in
        // reserve, from which copies are made.
        let further = self.open_batches().max(1).saturating_mul(2) - 1;
        Self {
            max_slabs: kept.unwrap_or(fitting).saturating_add(further),
            info_bytes: infos.clamp(INFO_BYTES.0, INFO_BYTES.1),
            ..self
        }
    }

    /// Number of batches that can be kept, as [`Plan::sized`] counts them.
    pub fn kept(&self) -> usize {
        (self.max_slabs + 1).saturating_sub(2 * self.open_batches())
    }

    /// Rows of all shards.
    pub fn rows(&self) -> usize {
        self.shards.last().map_or(0, |shard| shard.end)
    }

    /// Number of batches that can be open at once. A batch that was received in part may still be
    /// filled when batches after it need room for every row.
    pub(crate) fn ring(&self) -> usize {
        self.open_batches() + 1
    }

    /// Number of batches that are being filled when every row is in flight.
    pub(crate) fn open_batches(&self) -> usize {
        self.rows().div_ceil(self.batch_size.max(1))
    }
}

/// Maximum bytes of a shard's region: workers report in 32 bits how many they wrote, and
/// [`InfosAt`](super::InfosAt) reserves the largest number.
const MAX_INFO_BYTES: usize = u32::MAX as usize / PAGE * PAGE;

/// Maximum number of rows of a pool: the places of the ring of batches, fewer than three times the
/// rows, are numbered in 32 bits.
pub const MAX_ROWS: usize = 1 << 30;
/// Maximum number of slabs of a pool: larger numbers belong to rollouts.
const MAX_SLABS: usize = 1 << 31;

/// Checks a plan before anything is allocated for it.
pub(crate) fn check(plan: &Plan) -> Result<Layout, Error> {
    let mut next = 0;
    for shard in &plan.shards {
        if shard.start != next || shard.is_empty() {
            return Err(Error::BadPlan(format!("shards {:?} do not tile the rows", plan.shards)));
        }
        next = shard.end;
    }
    if !(1..=MAX_ROWS).contains(&next) {
        return Err(Error::BadPlan(format!("a pool has 1 to {MAX_ROWS} rows, not {next}")));
    }
    if !(1..=next).contains(&plan.batch_size) {
        let size = plan.batch_size;
        return Err(Error::BadPlan(format!("batch_size is {size}, must be 1 to {next}")));
    }
    let (min, got) = (plan.open_batches() + 1, plan.max_slabs);
    if !(min..=MAX_SLABS).contains(&got) {
        return Err(Error::BadPlan(format!(
            "a pool has {min} to {MAX_SLABS} batches at once, not {got}: those that are kept, \
             and those of {} rows that are filled",
            plan.batch_size
        )));
    }
    if plan.info_bytes > MAX_INFO_BYTES {
        let (got, max) = (plan.info_bytes, MAX_INFO_BYTES);
        return Err(Error::BadPlan(format!("info_bytes is {got}, at most {max} possible")));
    }
    if plan.reward_width == 0 {
        return Err(Error::BadPlan("a reward has at least one number".to_owned()));
    }
    let Plan { observations, batch_size, dense_finals, reward_width, .. } = plan;
    Ok(Layout::with_finals(observations, *batch_size, *dense_finals, *reward_width)?)
}
