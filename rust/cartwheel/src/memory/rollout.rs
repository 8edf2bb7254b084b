//! Rollouts: the batches of some steps in a row, in one piece of memory.
//!
//! # The life of a rollout
//!
//! ```text
//! free ──take──▶ recording, one batch after the other ──last view dropped──▶ free, or retired
//! ```
//!
//! Each has a mapping of its own, made when it is first asked for and handed to the workers before a task
//! refers to it; afterwards it is used again for rollouts of as many steps. Every batch of it is filled by
//! one task, as a slab is (and retired like one, see [`forks`](super::forks)), and is not filled again before the whole is free; the first one excepted,
//! which a reset before the first step replaces. So invariant 3 of [`super`] holds for it, batch by batch.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use super::forks::Moment;
use super::{Backing, Mapping};
use crate::error::Error;
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
    /// What stands behind it, where it was made and until it is private.
    backing: Mutex<Option<Backing>>,
}

impl RolloutMemory {
    pub(super) fn new(mapping: Mapping, batches: Vec<Layout>, backing: Option<Backing>) -> Self {
        Self { mapping, batches, backing: Mutex::new(backing) }
    }

    /// Makes it private to this process, with its contents, and gives its descriptor up.
    pub(super) fn part(&self) -> Result<(), Error> {
        // In a forked child a lock may be held by a thread that there is not.
        let Ok(mut backing) = self.backing.try_lock() else { return Ok(()) };
        backing.take().map_or(Ok(()), |backing| self.mapping.part(&backing))
    }

    /// Another descriptor of it; `None` when it is not shared.
    pub(super) fn descriptor(&self) -> Result<Option<OwnedFd>, Error> {
        let backing = self.backing.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = backing.as_ref().map(Backing::try_clone).transpose()?;
        Ok(copy.and_then(Backing::into_descriptor))
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
pub(super) struct FreeRollouts {
    free: Mutex<Vec<(usize, Arc<RolloutMemory>)>>,
    /// Numbers of rollouts that a forked child may know: the memory is not filled again.
    retired: Mutex<Vec<usize>>,
}

impl FreeRollouts {
    /// Takes one with room for just so many steps.
    pub(super) fn take(&self, steps: usize) -> Option<(usize, Arc<RolloutMemory>)> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let at = free.iter().rposition(|(_, memory)| memory.steps() == steps)?;
        Some(free.remove(at))
    }

    fn put(&self, rollout: (usize, Arc<RolloutMemory>)) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(rollout);
    }

    /// The number of one that was retired, for new memory; what was there is freed where it is replaced.
    pub(super) fn take_retired(&self) -> Option<usize> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn retire(&self, index: usize) {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(index);
    }
}

/// A hold on one rollout; it is free again when the last of them is dropped.
#[derive(Debug)]
pub struct RolloutLease {
    index: usize,
    memory: Arc<RolloutMemory>,
    free: Arc<FreeRollouts>,
    taken: Moment,
}

impl RolloutLease {
    pub(super) fn new(
        (index, memory): (usize, Arc<RolloutMemory>),
        free: Arc<FreeRollouts>,
    ) -> Self {
        Self { index, memory, free, taken: Moment::now() }
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
        let shared = self.memory.backing.lock().is_ok_and(|backing| {
            backing.as_ref().is_some_and(|backing| backing.descriptor().is_some())
        });
        if shared && self.taken.forked_since() {
            self.free.retire(self.index);
        } else {
            self.free.put((self.index, Arc::clone(&self.memory)));
        }
    }
}
