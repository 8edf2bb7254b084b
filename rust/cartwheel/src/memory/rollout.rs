//! Rollouts: the batches of some steps in a row, in one piece of memory.
//!
//! # The life of a rollout
//!
//! ```text
//! free ──take──▶ recording, one batch after the other ──last view dropped──▶ free
//! ```
//!
//! Each has a mapping of its own, made when it is first asked for and handed to the workers before a task
//! refers to it; afterwards it is used again for rollouts of as many steps. Every batch of it is filled by
//! one task, as a slab is, and is not filled again before the whole is free; the first one excepted,
//! which a reset before the first step replaces. So invariant 3 of [`super`] holds for it, batch by batch.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use super::Mapping;
use crate::space::Layout;

/// Marks a number as that of a batch of a rollout: rollout in the upper half, batch in the lower.
const ROLLOUT: u32 = 1 << 31;
/// Most steps of a rollout.
pub const MOST_STEPS: usize = u16::MAX as usize - 1;
/// Most rollouts that can exist at once.
const MOST_ROLLOUTS: usize = 1 << 15;

/// The memory of one rollout, and where its batches lie.
#[derive(Debug)]
pub struct RolloutMemory {
    pub(super) mapping: Mapping,
    pub(super) batches: Vec<Layout>,
}

impl RolloutMemory {
    pub(super) fn new(mapping: Mapping, batches: Vec<Layout>) -> Self {
        Self { mapping, batches }
    }

    /// Steps that it has room for.
    pub fn steps(&self) -> usize {
        self.batches.len() - 1
    }
}

/// The number by which a task refers to a batch of a rollout.
pub(super) fn number(rollout: usize, batch: usize) -> u32 {
    assert!(rollout < MOST_ROLLOUTS && batch <= MOST_STEPS, "numbers fit in a word");
    #[expect(clippy::cast_possible_truncation, reason = "just checked")]
    let (rollout, batch) = (rollout as u32, batch as u32);
    ROLLOUT | rollout << 16 | batch
}

/// Rollout and batch of such a number; `None` for that of a slab.
pub(super) fn parts(number: u32) -> Option<(usize, usize)> {
    let rollout = (number & !ROLLOUT) >> 16;
    (number & ROLLOUT != 0).then_some((rollout as usize, (number & 0xffff) as usize))
}

/// Rollouts that nobody holds, to be used again.
#[derive(Debug, Default)]
pub(super) struct FreeRollouts(Mutex<Vec<(usize, Arc<RolloutMemory>)>>);

impl FreeRollouts {
    /// Takes one with room for just so many steps.
    pub(super) fn take(&self, steps: usize) -> Option<(usize, Arc<RolloutMemory>)> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = free.iter().rposition(|(_, memory)| memory.steps() == steps)?;
        Some(free.remove(at))
    }

    fn put(&self, rollout: (usize, Arc<RolloutMemory>)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(rollout);
    }
}

/// A hold on one rollout; it is free again when the last of them is dropped.
#[derive(Debug)]
pub struct RolloutLease {
    index: usize,
    memory: Arc<RolloutMemory>,
    free: Arc<FreeRollouts>,
}

impl RolloutLease {
    pub(super) fn new(
        (index, memory): (usize, Arc<RolloutMemory>),
        free: Arc<FreeRollouts>,
    ) -> Self {
        Self { index, memory, free }
    }

    /// Its number, by which workers know it.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Steps that it has room for.
    pub fn steps(&self) -> usize {
        self.memory.steps()
    }

    /// Where batch `batch` lies; 0 is the one before the first step.
    pub fn layout(&self, batch: usize) -> &Layout {
        &self.memory.batches[batch]
    }

    /// Address of `range`, valid as long as the lease lives. What a task that is not yet finished fills
    /// must not be looked at.
    ///
    /// # Panics
    ///
    /// When the range is not in the rollout.
    pub fn at(&self, range: Range<usize>) -> NonNull<u8> {
        self.memory.mapping.at(range)
    }

    pub(super) fn mapping(&self) -> &Mapping {
        &self.memory.mapping
    }

    pub(super) fn memory(&self) -> &Arc<RolloutMemory> {
        &self.memory
    }
}

impl Drop for RolloutLease {
    fn drop(&mut self) {
        self.free.put((self.index, Arc::clone(&self.memory)));
    }
}
