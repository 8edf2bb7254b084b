//! The mapping of all slabs, and the rows of a slab that a worker fills.
#![expect(unsafe_code, reason = "copies into and out of mapped memory, see the invariants")]

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError, RwLock};

use super::infos::InfosAt;
use super::mapping::{Backing, Mapping};
use super::rollout::{self, RolloutMemory};
use crate::error::Error;
use crate::failpoint::{Failpoint, die};
use crate::space::{BatchLayout, Layout};
use crate::transition::PhaseTag;
use cartwheel_core::Transition;

/// Number of rows whose numbers are written together.
const IDS_AT_ONCE: usize = 64;

/// The mapping of all slabs and the layout of each.
#[derive(Debug)]
pub(crate) struct SlabMemory {
    pub(super) mapping: Arc<Mapping>,
    layout: Layout,
    /// Number of slabs that can be reserved.
    pub(super) limit: u32,
    /// The rollouts, indexed by number.
    rollouts: RwLock<Vec<Option<Arc<RolloutMemory>>>>,
}

impl SlabMemory {
    pub(crate) fn new(mapping: Arc<Mapping>, layout: Layout, limit: usize) -> Self {
        let limit = u32::try_from(limit).expect("a plan has fewer than 2^32 slabs");
        Self { mapping, layout, limit, rollouts: RwLock::default() }
    }

    /// Layout of a slab.
    pub(crate) fn layout(&self) -> BatchLayout<'_> {
        self.layout.batch()
    }

    /// Adds rollout `index`, before any task refers to it.
    pub(crate) fn add_rollout(&self, index: usize, memory: Arc<RolloutMemory>) {
        let mut rollouts = self.rollouts.write().unwrap_or_else(PoisonError::into_inner);
        if rollouts.len() <= index {
            rollouts.resize(index + 1, None);
        }
        rollouts[index] = Some(memory);
    }

    /// Forgets rollout `index`, which is not held.
    pub(super) fn remove_rollout(&self, index: usize) {
        self.rollouts.write().unwrap_or_else(PoisonError::into_inner)[index] = None;
    }

    /// Forgets all rollouts, which no task fills any more: those that are held end with their lease.
    pub(super) fn forget_rollouts(&self) {
        self.rollouts.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Number of the next rollout to make.
    pub(crate) fn next_rollout(&self) -> usize {
        self.rollouts.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The rollouts that exist, with their numbers.
    pub(crate) fn all_rollouts(&self) -> Vec<(usize, Arc<RolloutMemory>)> {
        let rollouts = self.rollouts.read().unwrap_or_else(PoisonError::into_inner);
        let known = rollouts.iter().enumerate();
        known.filter_map(|(index, rollout)| Some((index, Arc::clone(rollout.as_ref()?)))).collect()
    }

    /// Makes slabs and rollouts private to this process, see [`super::Sharing::make_private`].
    ///
    /// # Safety
    ///
    /// This process waits for nothing that a worker writes (invariant 8).
    pub(super) unsafe fn make_private(&self, backing: &Backing) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        let slabs = unsafe { self.mapping.make_private(backing) };
        // A lock in a forked child may be held by a thread that does not exist there.
        let Ok(rollouts) = self.rollouts.try_read() else { return slabs };
        // SAFETY: as the caller promises.
        let part = |rollout: &Arc<RolloutMemory>| unsafe { rollout.make_private() };
        rollouts.iter().flatten().map(part).fold(slabs, Result::and)
    }

    fn rollout(&self, index: usize) -> Arc<RolloutMemory> {
        let rollouts = self.rollouts.read().unwrap_or_else(PoisonError::into_inner);
        let rollout = rollouts.get(index).and_then(Option::as_ref);
        Arc::clone(rollout.unwrap_or_else(|| panic!("there is no rollout {index}")))
    }

    /// The places `rows` of slab `slab`, for the worker that fills them.
    ///
    /// # Safety
    ///
    /// As long as the result exists, nothing else accesses these places: the slab is being filled,
    /// and the places are those of the caller's own task or places that it claimed; the result is
    /// dropped before they are acknowledged or counted (invariants 3 and 4).
    #[expect(clippy::inline_always, reason = "a move of the result waits for the stores before it")]
    #[inline(always)]
    pub(crate) unsafe fn claim(&self, slab: u32, rows: Range<usize>) -> SlabRows<'_> {
        assert!(rows.end <= self.layout.rows(), "{rows:?} are rows of the batch");
        match rollout::parts(slab) {
            None => SlabRows { memory: self, rollout: None, start: self.start(slab), rows },
            Some((index, batch)) => {
                let rollout = Some((self.rollout(index), batch));
                SlabRows { memory: self, rollout, start: 0, rows }
            }
        }
    }

    pub(super) fn start(&self, slab: u32) -> usize {
        assert!(slab < self.limit, "there is no slab {slab}");
        slab as usize * self.layout.bytes()
    }
}

/// The bytes of a row that is being written, or a part of them: initialized, whatever they are.
///
/// It is not a slice, because the caller of a pool may show them, too: it has the addresses of a rollout's arrays
/// while these are filled, and an environment in its process may return a view of what it is to fill.
#[derive(Debug)]
pub struct Room<'a> {
    first: NonNull<u8>,
    bytes: usize,
    row: PhantomData<&'a mut [u8]>,
}

impl<'a> From<&'a mut [u8]> for Room<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Self { bytes: bytes.len(), first: NonNull::from(bytes).cast(), row: PhantomData }
    }
}

impl Room<'_> {
    /// The address of the first byte; the holder of this value may write as many as there are.
    pub fn first(&mut self) -> NonNull<u8> {
        self.first
    }

    /// Number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes all of them.
    ///
    /// # Panics
    ///
    /// When `value` has another length.
    pub fn write(&mut self, value: &[u8]) {
        assert_eq!(value.len(), self.bytes, "the bytes of a row");
        // SAFETY: as many bytes, which this value may write: they are a row's that only its shard accesses
        // (invariant 4), or were borrowed mutably. `value` is a live Rust slice and so cannot overlap them.
        unsafe { self.first.as_ptr().copy_from_nonoverlapping(value.as_ptr(), self.bytes) }
    }

    /// Parts of so many bytes each, in order; without the rest, if there is one.
    ///
    /// # Panics
    ///
    /// When a part has no bytes.
    pub fn parts(&mut self, bytes: usize) -> impl Iterator<Item = Room<'_>> {
        let first = self.first;
        (0..self.bytes / bytes).map(move |part| {
            // SAFETY: the part ends within these bytes.
            let first = unsafe { first.add(part * bytes) };
            Room { first, bytes, row: PhantomData }
        })
    }
}

/// One shard's rows of the slab that is being filled.
#[derive(Debug)]
pub struct SlabRows<'a> {
    memory: &'a SlabMemory,
    /// The rollout and the number of the batch, if the slab is a batch of a rollout.
    rollout: Option<(Arc<RolloutMemory>, usize)>,
    pub(super) start: usize,
    rows: Range<usize>,
}

impl SlabRows<'_> {
    /// The rows, counted from the start of the batch.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    pub(super) fn mapping(&self) -> &Mapping {
        self.rollout.as_ref().map_or(&self.memory.mapping, |(rollout, _)| &rollout.mapping)
    }

    pub(super) fn layout(&self) -> BatchLayout<'_> {
        match &self.rollout {
            None => self.memory.layout(),
            Some((rollout, batch)) => rollout.layout.batch(*batch),
        }
    }

    fn place(&self, leaf: usize, row: usize) -> Range<usize> {
        assert!(self.rows.contains(&row), "row {row} is not in this shard");
        let layout = self.layout();
        let bytes = layout.row_bytes(leaf);
        let start = self.start + layout.leaf_offset(leaf) + row * bytes;
        start..start + bytes
    }

    /// Writes row `row` (counted from the start of the batch) of leaf `leaf`.
    ///
    /// # Panics
    ///
    /// When the row is not in this shard, or `value` is not as long as a row.
    pub fn write(&mut self, leaf: usize, row: usize, value: &[u8]) {
        self.fill(leaf, row, |mut room| room.write(value));
    }

    /// Calls `fill` to write row `row` (counted from the start of the batch) of leaf `leaf`.
    ///
    /// # Panics
    ///
    /// When the row is not in this shard.
    pub fn fill(&mut self, leaf: usize, row: usize, fill: impl FnOnce(Room<'_>)) {
        let place = self.place(leaf, row);
        let (bytes, first) = (place.len(), self.mapping().at(place.clone()));
        if Failpoint::DieMidRow.hit() {
            let mut whole = vec![0; bytes];
            fill(Room::from(&mut whole[..]));
            // SAFETY: as below.
            unsafe { self.mapping().write(place.start, &whole[..bytes / 2]) }
            die();
        }
        // Only this shard accesses the row while the slab is filling (invariant 4), the range is inside the
        // mapping, and any bytes are values (invariant 7).
        fill(Room { first, bytes, row: PhantomData });
    }

    /// Writes zeros to row `row` of leaf `leaf`.
    ///
    /// # Panics
    ///
    /// When the row is not in this shard.
    pub fn write_zeros(&mut self, leaf: usize, row: usize) {
        let place = self.place(leaf, row);
        // SAFETY: only this shard accesses the row while the slab is filling (invariant 4).
        unsafe { self.mapping().fill(place, 0) }
    }

    /// Marks every row as failed: zeros, no reward, no flags.
    pub(crate) fn write_failed(&mut self) {
        let leaves = self.layout().num_leaves();
        let no_reward = vec![0.0; self.layout().reward_bytes() / size_of::<f64>()];
        for row in self.rows() {
            (0..leaves).for_each(|leaf| self.write_zeros(leaf, row));
            if self.has_finals() {
                self.write_final(row, None);
            }
            self.write_transition(row, &Transition::RESET, PhaseTag::Failed);
            self.write_rewards(row, &no_reward);
        }
    }

    /// Whether there are final observations, see [`BatchLayout::has_finals`].
    pub fn has_finals(&self) -> bool {
        self.layout().has_finals()
    }

    /// Writes the final observation of row `row`, whose episode ended: the bytes of its leaves, one
    /// after the other. `None` for a row whose episode goes on: its final observation is its
    /// observation, which was just written.
    ///
    /// # Panics
    ///
    /// When there are no final observations, the row is not in this shard, or `value` has not the
    /// length of an observation.
    pub fn write_final(&mut self, row: usize, value: Option<&[u8]>) {
        let leaves = self.layout().num_leaves();
        let ended = self.layout().ended_offset().expect("the batch has final observations");
        let mut rest = value;
        for leaf in 0..leaves {
            let (from, to) = (self.place(leaf, row), self.place(leaves + leaf, row));
            let Some(value) = &mut rest else {
                let (bytes, from, to) =
                    (from.len(), self.mapping().at(from), self.mapping().at(to));
                // SAFETY: only this shard accesses the row while the slab is filling (invariant 4),
                // and the ranges of two leaves, inside the mapping, are disjoint.
                unsafe { from.copy_to_nonoverlapping(to, bytes) }
                continue;
            };
            let (own, others) = value.split_at(to.len());
            *value = others;
            // SAFETY: only this shard accesses the row while the slab is filling (invariant 4).
            unsafe { self.mapping().write(to.start, own) }
        }
        assert!(rest.is_none_or(<[u8]>::is_empty), "a final observation has only these leaves");
        let flag = [u8::from(value.is_some())];
        // SAFETY: the row's own flag; only this shard accesses it while the slab is filling (invariant 4).
        unsafe { self.mapping().write(self.start + ended + row, &flag) }
    }

    /// Writes all numbers of the reward of row `row`, of which [`SlabRows::write_transition`] writes
    /// the first.
    ///
    /// # Panics
    ///
    /// When the row is not in this shard, or a reward has another number of numbers.
    pub fn write_rewards(&mut self, row: usize, rewards: &[f64]) {
        assert!(self.rows.contains(&row), "row {row} is not in this shard");
        let (start, layout) = (self.start, self.layout());
        assert_eq!(size_of_val(rewards), layout.reward_bytes(), "a reward");
        let first = start + layout.rewards_offset() + layout.reward_bytes() * row;
        for (at, reward) in rewards.iter().enumerate() {
            // SAFETY: only this shard accesses the row while the slab is filling (invariant 4).
            unsafe { self.mapping().write(first + at * size_of::<f64>(), &reward.to_ne_bytes()) }
        }
    }

    /// Writes reward, flags and phase of row `row`.
    ///
    /// # Panics
    ///
    /// When the row is not in this shard.
    pub fn write_transition(&mut self, row: usize, transition: &Transition, phase: PhaseTag) {
        assert!(self.rows.contains(&row), "row {row} is not in this shard");
        let start = self.start;
        let [reward, terminated, truncated, phased] = self.layout().outcome_offsets(row);
        for (offset, bytes) in [
            (reward, &transition.reward.to_ne_bytes()[..]),
            (terminated, &[u8::from(transition.terminated)]),
            (truncated, &[u8::from(transition.truncated)]),
            (phased, &[phase as u8]),
        ] {
            // SAFETY: only this shard accesses the row while the slab is filling (invariant 4).
            unsafe { self.mapping().write(start + offset, bytes) }
        }
    }

    /// Writes to these places of a batch of sent rows the numbers of the rows, starting at `row`.
    /// The first place also gets `infos_at`, which says where the infos of all these rows are.
    pub(crate) fn write_row_ids(&mut self, row: usize, infos_at: InfosAt) {
        let layout = self.layout();
        let numbers = self.start + layout.row_numbers_offset();
        let lengths = self.start + layout.info_lengths_offset();
        let word = size_of::<u32>();
        let mut number = u32::try_from(row).expect("a pool has fewer than 2^32 rows");
        let mut some = [[0; size_of::<u32>()]; IDS_AT_ONCE];
        for first in self.rows.clone().step_by(some.len()) {
            let count = some.len().min(self.rows.end - first);
            for some in &mut some[..count] {
                *some = number.to_ne_bytes();
                number += 1;
            }
            let bytes = some[..count].as_flattened();
            // SAFETY: claimed places, which this shard accesses alone (invariant 4).
            unsafe { self.mapping().write(numbers + first * word, bytes) }
        }
        let places = lengths + self.rows.start * word..lengths + self.rows.end * word;
        // SAFETY: claimed places, which this shard accesses alone (invariant 4).
        unsafe { self.mapping().fill(places.clone(), 0) }
        // SAFETY: the first of these places (invariant 4).
        unsafe { self.mapping().write(places.start, &infos_at.to_word().to_ne_bytes()) }
    }
}
