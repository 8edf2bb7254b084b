//! The offset of each leaf of a batch.

use super::extent::Extent;
use super::too_large::TooLarge;
use cartwheel_core::Leaf;

/// Alignment of every leaf of a batch, in bytes: a cache line, and enough for any vector load.
pub const LEAF_ALIGN: usize = 64;

/// Slabs start on pages, so that each can be reserved separately.
pub(crate) const PAGE: usize = 4096;

/// The offsets of everything in one slab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    leaves: Vec<(Leaf, usize)>,
    rows: usize,
    rewards: usize,
    terminations: usize,
    truncations: usize,
    phases: usize,
    row_numbers: usize,
    info_lengths: usize,
    bytes: usize,
}

impl Layout {
    /// Lays out `rows` rows of `leaves`, then rewards (`f64`), the two flags and the phases (one
    /// byte each), and, for rows that were sent on their own, their numbers and info lengths
    /// (`u32`).
    ///
    /// The result depends only on the arguments, so a worker computes the same offsets as the pool,
    /// and no offset has to be sent or trusted.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] when the batch does not fit into the address space.
    pub fn new(leaves: &[Leaf], rows: usize) -> Result<Self, TooLarge> {
        Self::checked(leaves, rows).ok_or_else(|| TooLarge::new("a batch", rows, leaves))
    }

    fn checked(leaves: &[Leaf], rows: usize) -> Option<Self> {
        let mut extent = Extent::default();
        let mut place = |row_bytes| extent.take(rows, row_bytes, LEAF_ALIGN);
        let mut placed = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let row_bytes = leaf.checked_row_len()?.checked_mul(leaf.dtype.size())?;
            placed.push((leaf.clone(), place(row_bytes)?));
        }
        let rewards = place(size_of::<f64>())?;
        let [terminations, truncations, phases] = [place(1)?, place(1)?, place(1)?];
        let [row_numbers, info_lengths] = [place(size_of::<u32>())?, place(size_of::<u32>())?];
        let bytes = extent.bytes(PAGE);
        Some(Self {
            leaves: placed,
            rows,
            rewards,
            terminations,
            truncations,
            phases,
            row_numbers,
            info_lengths,
            bytes,
        })
    }

    /// Lays out a rollout: a first batch and the batches of `steps` steps, so that each leaf is one
    /// array `[steps + 1, rows, *shape]`, and rewards and flags are `[steps, rows]` each. Returns
    /// the layout of every batch, starting with the first one; each layout has the bytes of the
    /// whole rollout.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] when it does not fit into the address space.
    pub fn rollout(leaves: &[Leaf], rows: usize, steps: usize) -> Result<Vec<Self>, TooLarge> {
        // Laid out as one batch of all rows of all steps, and another batch of one step for the
        // parts that have no place in the first one and are not read later.
        let too_large = || TooLarge::new(&format!("a rollout of {steps} steps"), rows, leaves);
        let all = steps.checked_add(1).and_then(|frames| frames.checked_mul(rows));
        let whole = all.and_then(|all| Self::checked(leaves, all)).ok_or_else(too_large)?;
        let rest = Self::checked(&[], rows).ok_or_else(too_large)?;
        let (rest_start, bytes) = (whole.bytes, whole.bytes + rest.bytes);
        let frame = |number: usize| {
            let row = number * rows;
            let leaves = whole.leaves.iter();
            // Rewards and flags of a step are one step further to the front than its observation.
            // Those of the first batch, which follows no step, are in the other batch.
            let outcome = |whole: usize, rest: usize, size: usize| match number {
                0 => rest_start + rest,
                _ => whole + (row - rows) * size,
            };
            Self {
                leaves: leaves
                    .map(|(leaf, start)| (leaf.clone(), start + row * leaf.row_bytes()))
                    .collect(),
                rows,
                rewards: outcome(whole.rewards, rest.rewards, size_of::<f64>()),
                terminations: outcome(whole.terminations, rest.terminations, 1),
                truncations: outcome(whole.truncations, rest.truncations, 1),
                phases: rest_start + rest.phases,
                row_numbers: rest_start + rest.row_numbers,
                info_lengths: rest_start + rest.info_lengths,
                bytes,
            }
        };
        Ok((0..=steps).map(frame).collect())
    }

    /// Rows of a batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of a slab, a multiple of the page size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of leaves.
    pub fn num_leaves(&self) -> usize {
        self.leaves.len()
    }

    /// Shape and dtype of leaf `leaf`.
    pub fn leaf(&self, leaf: usize) -> &Leaf {
        &self.leaves[leaf].0
    }

    /// Offset of leaf `leaf` in the slab, a multiple of [`LEAF_ALIGN`].
    pub fn leaf_offset(&self, leaf: usize) -> usize {
        self.leaves[leaf].1
    }

    /// Offset of the rewards, `[rows]` `f64`.
    pub fn rewards_offset(&self) -> usize {
        self.rewards
    }

    /// Offset of the terminations, `[rows]`, one byte each.
    pub fn terminations_offset(&self) -> usize {
        self.terminations
    }

    /// Offset of the truncations, `[rows]`, one byte each.
    pub fn truncations_offset(&self) -> usize {
        self.truncations
    }

    /// Offset of the phases after the task, `[rows]`, one [`crate::PhaseTag`] each.
    pub fn phases_offset(&self) -> usize {
        self.phases
    }

    /// Offset of the numbers of the rows in a batch of rows that were sent, `[rows]` `u32`.
    pub fn row_numbers_offset(&self) -> usize {
        self.row_numbers
    }

    /// Offset of what such rows announce about their infos, `[rows]` `u32`, see
    /// [`crate::memory::InfosAt`].
    pub fn info_lengths_offset(&self) -> usize {
        self.info_lengths
    }
}
