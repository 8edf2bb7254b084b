//! The offset of each leaf of a batch, in a slab or in a rollout.

use std::ops::Range;

use cartwheel_core::Leaf;

/// Alignment of every leaf of a batch, in bytes: a cache line, and enough for any vector load.
pub const LEAF_ALIGN: usize = 64;

/// Slabs start on pages, so that each can be reserved separately.
pub(crate) const PAGE: usize = 4096;

/// A range of memory whose parts are laid out one after the other, with checked arithmetic. Every
/// offset and every size in shared memory is computed here.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    end: usize,
}

impl Extent {
    /// Maximum bytes of a range: every offset fits a pointer, and two sizes can be added.
    const MAX: usize = isize::MAX as usize / 2;

    /// Lays out `count` values of `bytes` bytes each, and returns their offset: a multiple of
    /// `align`. `None` when they do not fit into the address space.
    pub(crate) fn take(&mut self, count: usize, bytes: usize, align: usize) -> Option<usize> {
        let start = self.end.checked_next_multiple_of(align)?;
        self.end = count.checked_mul(bytes)?.checked_add(start).filter(|&end| end <= Self::MAX)?;
        Some(start)
    }

    /// [`Extent::take`] for `count` values of type `T`.
    pub(crate) fn take_array<T>(&mut self, count: usize) -> Option<usize> {
        self.take(count, size_of::<T>(), align_of::<T>())
    }

    /// Bytes that were laid out, rounded up to a multiple of `align`.
    pub(crate) fn bytes(&self, align: usize) -> usize {
        self.end.next_multiple_of(align)
    }
}

/// Memory that would not fit into the address space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TooLarge(String);

impl TooLarge {
    /// The error for `what`, with `rows` rows of these leaves.
    pub(crate) fn new(what: &str, rows: usize, leaves: &[Leaf]) -> Self {
        let leaves: Vec<String> = leaves.iter().map(Leaf::to_string).collect();
        let plural = if rows == 1 { "" } else { "s" };
        let of = if leaves.is_empty() { "" } else { " of " };
        let leaves = leaves.join(", ");
        Self(format!(
            "the memory for {what} exceeds the address space: {rows} row{plural}{of}{leaves}"
        ))
    }
}

/// A leaf of a batch. Its numbers are kept, because each row of a step needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    leaf: Leaf,
    start: usize,
    row_bytes: usize,
    /// Bytes by which each row of the steps before moves the start, in a rollout.
    moved_by: usize,
}

/// The offsets of everything in one slab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The leaves of observations, and once more those of final observations if there are any.
    leaves: Vec<Place>,
    /// Offset of the flags that say which rows ended, if there are final observations.
    ended: Option<usize>,
    rows: usize,
    rewards: usize,
    /// Bytes of the reward of a row: one `f64`, or several.
    reward_bytes: usize,
    terminations: usize,
    truncations: usize,
    phases: usize,
    row_numbers: usize,
    info_lengths: usize,
    bytes: usize,
}

impl Layout {
    /// Lays out `rows` rows of `leaves`, then rewards (one `f64` each), the two flags and the phases (one
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
        Self::with_finals(leaves, rows, false, 1)
    }

    /// The same; `finals` adds each leaf a second time, after the others, for the true next
    /// observation of each row, and a byte for each row that says whether its episode ended. A
    /// reward has `reward_width` numbers.
    ///
    /// # Errors
    ///
    /// As [`Layout::new`].
    pub fn with_finals(
        leaves: &[Leaf],
        rows: usize,
        finals: bool,
        reward_width: usize,
    ) -> Result<Self, TooLarge> {
        let layout = Self::checked(leaves, finals.then_some(leaves), rows, reward_width);
        layout.ok_or_else(|| TooLarge::new("a batch", rows, leaves))
    }

    fn checked(
        leaves: &[Leaf],
        finals: Option<&[Leaf]>,
        rows: usize,
        reward_width: usize,
    ) -> Option<Self> {
        let mut extent = Extent::default();
        let mut place = |row_bytes| extent.take(rows, row_bytes, LEAF_ALIGN);
        let mut placed = Vec::with_capacity(leaves.len() * 2);
        for (number, leaf) in leaves.iter().chain(finals.unwrap_or_default()).enumerate() {
            let row_bytes = leaf.checked_row_len()?.checked_mul(leaf.dtype.size())?;
            // Final observations stay where they are.
            let moved_by = if number < leaves.len() { row_bytes } else { 0 };
            let start = place(row_bytes)?;
            placed.push(Place { leaf: leaf.clone(), start, row_bytes, moved_by });
        }
        let ended = if finals.is_some() { Some(place(1)?) } else { None };
        let reward_bytes = reward_width.checked_mul(size_of::<f64>())?;
        let rewards = place(reward_bytes)?;
        let [terminations, truncations, phases] = [place(1)?, place(1)?, place(1)?];
        let [row_numbers, info_lengths] = [place(size_of::<u32>())?, place(size_of::<u32>())?];
        let bytes = extent.bytes(PAGE);
        Some(Self {
            leaves: placed,
            ended,
            rows,
            rewards,
            reward_bytes,
            terminations,
            truncations,
            phases,
            row_numbers,
            info_lengths,
            bytes,
        })
    }

    /// The offsets of a slab with this layout.
    pub fn batch(&self) -> BatchLayout<'_> {
        BatchLayout { first: self, moved_rows: 0 }
    }

    /// Rows of a batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of a slab, a multiple of the page size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The offsets of everything in a rollout: a first batch and the batches of some steps, so that each leaf
/// is one array `[steps + 1, rows, *shape]`, flags are `[steps, rows]` each, and rewards are
/// `[steps, rows]`, or `[steps, rows, reward_width]`. Every batch
/// has the bytes of the whole rollout.
///
/// The offsets of two batches are kept, whatever the number of steps: those of the others follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutLayout {
    first: Layout,
    /// That of the first step.
    next: Layout,
    steps: usize,
}

impl RolloutLayout {
    /// Lays out a rollout of at least one step. With `finals`, all batches have their final observations in
    /// the same place: those of one step are there until the next step.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] when it does not fit into the address space.
    pub fn new(
        leaves: &[Leaf],
        rows: usize,
        steps: usize,
        finals: bool,
        reward_width: usize,
    ) -> Result<Self, TooLarge> {
        // Laid out as one batch of all rows of all steps, and another batch of one step for the
        // parts that have no place in the first one and are not read later.
        let too_large = || TooLarge::new(&format!("a rollout of {steps} steps"), rows, leaves);
        let all = steps.checked_add(1).and_then(|frames| frames.checked_mul(rows));
        let whole = all.and_then(|all| Layout::checked(leaves, None, all, reward_width));
        let whole = whole.ok_or_else(too_large)?;
        let rest = Layout::checked(&[], finals.then_some(leaves), rows, reward_width);
        let rest = rest.ok_or_else(too_large)?;
        let (rest_start, bytes) = (whole.bytes, whole.bytes + rest.bytes);
        let frame = |number: usize| {
            // Rewards and flags of a step are one step further to the front than its observation.
            // Those of the first batch, which follows no step, are in the other batch.
            let outcome =
                |whole: usize, rest: usize| if number == 0 { rest_start + rest } else { whole };
            let moved =
                |place: &Place, by: usize| Place { start: place.start + by, ..place.clone() };
            let observations =
                whole.leaves.iter().map(|place| moved(place, number * rows * place.row_bytes));
            let finals = rest.leaves.iter().map(|place| moved(place, rest_start));
            Layout {
                leaves: observations.chain(finals).collect(),
                ended: rest.ended.map(|at| rest_start + at),
                rows,
                rewards: outcome(whole.rewards, rest.rewards),
                reward_bytes: whole.reward_bytes,
                terminations: outcome(whole.terminations, rest.terminations),
                truncations: outcome(whole.truncations, rest.truncations),
                phases: rest_start + rest.phases,
                row_numbers: rest_start + rest.row_numbers,
                info_lengths: rest_start + rest.info_lengths,
                bytes,
            }
        };
        Ok(Self { first: frame(0), next: frame(1), steps })
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Bytes of the rollout.
    pub fn bytes(&self) -> usize {
        self.first.bytes
    }

    /// The offsets of batch `number`; batch 0 is the one before the first step.
    ///
    /// # Panics
    ///
    /// When there are fewer steps.
    pub fn batch(&self, number: usize) -> BatchLayout<'_> {
        assert!(number <= self.steps, "batch {number} of {} steps", self.steps);
        match number {
            0 => self.first.batch(),
            _ => BatchLayout { first: &self.next, moved_rows: (number - 1) * self.next.rows },
        }
    }
}

/// The offsets of everything in one batch: in a slab, or in a rollout.
#[derive(Debug, Clone, Copy)]
pub struct BatchLayout<'a> {
    first: &'a Layout,
    /// Rows of a rollout between the batch with this layout and this one.
    moved_rows: usize,
}

impl<'a> BatchLayout<'a> {
    /// As far as arrays with `row_bytes` for each row have moved.
    fn moved(self, row_bytes: usize) -> usize {
        self.moved_rows * row_bytes
    }

    /// A layout with these offsets.
    pub fn to_layout(self) -> Layout {
        let mut layout = self.first.clone();
        for (leaf, place) in layout.leaves.iter_mut().enumerate() {
            place.start = self.leaf_offset(leaf);
        }
        layout.rewards = self.rewards_offset();
        layout.terminations = self.terminations_offset();
        layout.truncations = self.truncations_offset();
        layout
    }

    /// Whether these bytes are of places `places` of an array that each batch of a rollout has for itself:
    /// observations, rewards, terminations or truncations.
    pub(crate) fn are_kept(self, bytes: &Range<usize>, places: &Range<usize>) -> bool {
        let leaves = 0..self.num_leaves();
        let leaves = leaves.map(|leaf| (self.leaf_offset(leaf), self.row_bytes(leaf)));
        let flags = [self.terminations_offset(), self.truncations_offset()].map(|start| (start, 1));
        let rewards = (self.rewards_offset(), self.reward_bytes());
        are_of_one(leaves.chain(flags).chain([rewards]), bytes, places)
    }

    /// Likewise, of an array that all batches of a rollout share: final observations and their flags, phases,
    /// and what rows that were sent announce.
    pub(crate) fn are_shared(self, bytes: &Range<usize>, places: &Range<usize>) -> bool {
        let finals = self.num_leaves()..self.num_arrays();
        let finals = finals.map(|leaf| (self.leaf_offset(leaf), self.row_bytes(leaf)));
        let flags = self.ended_offset().into_iter().chain([self.phases_offset()]);
        let flags = flags.map(|start| (start, 1));
        let numbers = [self.row_numbers_offset(), self.info_lengths_offset()];
        let numbers = numbers.map(|start| (start, size_of::<u32>()));
        are_of_one(finals.chain(flags).chain(numbers), bytes, places)
    }

    /// Rows of a batch.
    pub fn rows(self) -> usize {
        self.first.rows
    }

    /// Bytes of a slab, a multiple of the page size.
    pub fn bytes(self) -> usize {
        self.first.bytes
    }

    /// Number of leaves of an observation.
    pub fn num_leaves(self) -> usize {
        if self.has_finals() { self.first.leaves.len() / 2 } else { self.first.leaves.len() }
    }

    /// Whether there are final observations. Then leaf `num_leaves() + k` has leaf `k` of the true
    /// next observation of each row.
    pub fn has_finals(self) -> bool {
        self.first.ended.is_some()
    }

    /// Number of leaves, those of final observations included.
    pub(crate) fn num_arrays(self) -> usize {
        self.first.leaves.len()
    }

    /// Offset of the flags, `[rows]` of one byte, that say whose episode ended; `None` without final
    /// observations.
    pub fn ended_offset(self) -> Option<usize> {
        self.first.ended
    }

    /// Shape and dtype of leaf `leaf`.
    pub fn leaf(self, leaf: usize) -> &'a Leaf {
        &self.first.leaves[leaf].leaf
    }

    /// Bytes of a row of leaf `leaf`.
    pub fn row_bytes(self, leaf: usize) -> usize {
        self.first.leaves[leaf].row_bytes
    }

    /// Offset of leaf `leaf` in the slab: a multiple of [`LEAF_ALIGN`], and in a rollout of an element.
    pub fn leaf_offset(self, leaf: usize) -> usize {
        let place = &self.first.leaves[leaf];
        place.start + self.moved(place.moved_by)
    }

    /// Offset of the rewards, `[rows]` or `[rows, reward_width]` `f64`.
    pub fn rewards_offset(self) -> usize {
        self.first.rewards + self.moved(self.first.reward_bytes)
    }

    /// Bytes of the reward of a row.
    pub fn reward_bytes(self) -> usize {
        self.first.reward_bytes
    }

    /// Offset of the terminations, `[rows]`, one byte each.
    pub fn terminations_offset(self) -> usize {
        self.first.terminations + self.moved(1)
    }

    /// Offset of the truncations, `[rows]`, one byte each.
    pub fn truncations_offset(self) -> usize {
        self.first.truncations + self.moved(1)
    }

    /// The bytes of everything that a caller sees, if the batch is in a slab: observations, final
    /// observations and their flags, rewards, terminations, truncations.
    pub fn results(self) -> Range<usize> {
        0..self.truncations_offset() + self.rows()
    }

    /// Offset of the phases after the task, `[rows]`, one [`crate::PhaseTag`] each.
    pub fn phases_offset(self) -> usize {
        self.first.phases
    }

    /// Offsets of the reward, the two flags and the phase of row `row`.
    pub(crate) fn outcome_offsets(self, row: usize) -> [usize; 4] {
        let (first, moved) = (self.first, self.moved_rows + row);
        [
            first.rewards + moved * first.reward_bytes,
            first.terminations + moved,
            first.truncations + moved,
            first.phases + row,
        ]
    }

    /// Offset of the numbers of the rows in a batch of rows that were sent, `[rows]` `u32`.
    pub fn row_numbers_offset(self) -> usize {
        self.first.row_numbers
    }

    /// Offset of what such rows announce about their infos, `[rows]` `u32`, see
    /// [`crate::memory::InfosAt`].
    pub fn info_lengths_offset(self) -> usize {
        self.first.info_lengths
    }
}

/// Whether these bytes are of places `places` of one of these arrays, each with its offset and the bytes of a
/// row.
fn are_of_one(
    mut arrays: impl Iterator<Item = (usize, usize)>,
    bytes: &Range<usize>,
    places: &Range<usize>,
) -> bool {
    arrays.any(|(start, row_bytes)| {
        let own = start + places.start * row_bytes..start + places.end * row_bytes;
        own.start <= bytes.start && bytes.end <= own.end
    })
}
