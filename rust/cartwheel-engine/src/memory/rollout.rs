//! Rollouts: the batches of consecutive steps, in one mapping.
//!
//! # The life of a rollout
//!
//! ```text
//! free ──take──▶ recording, one batch after the other ──last view dropped──▶ free, or retired
//! ```
//!
//! Each rollout has a mapping of its own. It is made at the first request and handed to the workers
//! before a task refers to it; later it is reused for rollouts of the same number of steps. If a new
//! rollout is made while a few others are free, the one that was free for longest gives its memory
//! back, and the new one gets its number; workers map the new memory instead of the old. Every
//! batch is filled by one task, like a slab (and retired like one, see [`forks`](super::forks)),
//! and is not filled again before the whole rollout is free. Final observations are not recorded: all
//! batches share one place for them, which is read before the next task begins to fill it. The first
//! batch is the exception: a reset before the first step replaces it, unless a lease is left through
//! which safe code could read it. So invariant 3 of [`super`] holds for a rollout, batch by batch.
#![expect(unsafe_code, reason = "gives mapped memory away, see the invariants")]

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::forks::Moment;
use super::lease_count::Leases;
use super::mapping::{Backing, Mapping};
use crate::error::Error;
use crate::platform::process_id;
use crate::space::{BatchLayout, RolloutLayout};

/// Marks a number as a batch of a rollout: the rollout in the upper half, the batch in the lower
/// half.
const ROLLOUT: u32 = 1 << 31;
/// Maximum number of steps of a rollout.
pub const MAX_STEPS: usize = u16::MAX as usize - 1;
/// Maximum number of rollouts at once.
const MAX_ROLLOUTS: usize = 1 << 15;
/// Most rollouts that are kept for others of their length, in addition to those that are held: a program has a few
/// lengths that take turns.
pub(super) const MAX_FREE: usize = 4;

/// The memory of one rollout, and its layout.
#[derive(Debug)]
pub(crate) struct RolloutMemory {
    pub(super) mapping: Mapping,
    pub(super) layout: RolloutLayout,
    /// The memory behind the mapping, in the process that made it, until it is made private.
    backing: Mutex<Option<Backing>>,
}

impl RolloutMemory {
    pub(crate) fn new(mapping: Mapping, layout: RolloutLayout, backing: Option<Backing>) -> Self {
        Self { mapping, layout, backing: Mutex::new(backing) }
    }

    /// Makes the memory private to this process, with its contents, and closes its descriptor.
    ///
    /// # Safety
    ///
    /// As for [`Mapping::make_private`].
    pub(super) unsafe fn make_private(&self) -> Result<(), Error> {
        // A lock in a forked child may be held by a thread that does not exist there.
        let Ok(mut backing) = self.backing.try_lock() else { return Ok(()) };
        // SAFETY: as the caller promises (invariant 8).
        backing.take().map_or(Ok(()), |backing| unsafe { self.mapping.make_private(&backing) })
    }

    /// Closes the descriptor of memory that stays shared with the processes that map it.
    pub(super) fn close(&self) {
        drop(lock(&self.backing).take());
    }

    /// Another descriptor of the memory; `None` when it is not shared.
    pub(crate) fn descriptor(&self) -> Result<Option<OwnedFd>, Error> {
        let backing = lock(&self.backing);
        let copy = backing.as_ref().map(Backing::try_clone).transpose()?;
        Ok(copy.and_then(Backing::into_descriptor))
    }

    /// Number of steps that fit.
    pub(crate) fn steps(&self) -> usize {
        self.layout.steps()
    }

    /// Gives the memory back to the system, although workers still map it: it is not used any more.
    pub(super) fn give_back(&self) {
        let backing = lock(&self.backing);
        backing.iter().for_each(Backing::give_back);
    }
}

/// Locks what a thread that panics leaves as it was: every change of it is one call of the standard
/// library.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number by which a task refers to a batch of a rollout.
pub(super) fn number(rollout: usize, batch: usize) -> u32 {
    assert!(rollout < MAX_ROLLOUTS && batch <= MAX_STEPS, "numbers fit in a word");
    #[expect(clippy::cast_possible_truncation, reason = "just checked")]
    let (rollout, batch) = (rollout as u32, batch as u32);
    ROLLOUT | rollout << 16 | batch
}

/// Rollout and batch of such a number; `None` for the number of a slab.
pub(super) fn parts(number: u32) -> Option<(usize, usize)> {
    let rollout = (number & !ROLLOUT) >> 16;
    (number & ROLLOUT != 0).then_some((rollout as usize, (number & 0xffff) as usize))
}

/// Rollouts that are not leased, for reuse.
#[derive(Debug, Default)]
pub(super) struct FreeRollouts {
    free: Mutex<Vec<(usize, Arc<RolloutMemory>)>>,
    /// Numbers of rollouts whose memory is not filled again: a forked child may see it, some
    /// workers may not know it, or it was given back.
    retired: Mutex<Vec<usize>>,
    /// Whether none is recorded any more.
    closed: AtomicBool,
}

impl FreeRollouts {
    /// From now on keeps no more of them.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed); // what finds it set reads nothing that was written before
    }

    /// Takes a rollout with room for exactly this many steps.
    pub(super) fn take(&self, steps: usize) -> Option<(usize, Arc<RolloutMemory>)> {
        let mut free = lock(&self.free);
        let at = free.iter().rposition(|(_, memory)| memory.steps() == steps)?;
        Some(free.remove(at))
    }

    /// Number of free rollouts.
    pub(super) fn len(&self) -> usize {
        lock(&self.free).len()
    }

    /// Takes the one that has not been held for longest.
    pub(super) fn take_oldest(&self) -> Option<(usize, Arc<RolloutMemory>)> {
        let mut free = lock(&self.free);
        (!free.is_empty()).then(|| free.remove(0))
    }

    /// Whether there is a number for one rollout more, where the next that was never used is `next`.
    pub(super) fn check_number(&self, next: usize) -> Result<(), Error> {
        let retired = lock(&self.retired);
        if next < MAX_ROLLOUTS || !retired.is_empty() {
            return Ok(());
        }
        let all_held = format!("{MAX_ROLLOUTS} rollouts are held: drop one before the next");
        Err(Error::BadPlan(all_held))
    }

    fn put(&self, rollout: (usize, Arc<RolloutMemory>)) {
        lock(&self.free).push(rollout);
    }

    /// The number of a retired rollout, for new memory; the old memory is freed when it is
    /// replaced.
    pub(super) fn take_retired(&self) -> Option<usize> {
        lock(&self.retired).pop()
    }

    pub(super) fn retire(&self, index: usize) {
        lock(&self.retired).push(index);
    }
}

/// A hold on one rollout; the rollout is free again when the last hold is dropped.
#[derive(Debug)]
pub struct RolloutLease {
    index: usize,
    memory: Arc<RolloutMemory>,
    free: Arc<FreeRollouts>,
    taken: Moment,
    /// The process that took the lease.
    owner: u32,
    /// Whether batches were, or may have been, handed out: then no batch is filled for another
    /// recording.
    recorded: AtomicBool,
    /// The leases on the first batch through which safe code may read it.
    reading_first: Leases,
    /// The batch that is filled, or was filled last: what all batches share is its.
    last_filled: RwLock<usize>,
}

/// Keeps what the batches of a rollout share as it is: the next one is not begun before this is dropped.
pub(super) type LastFilled<'a> = RwLockReadGuard<'a, usize>;

impl RolloutLease {
    pub(super) fn new(
        (index, memory): (usize, Arc<RolloutMemory>),
        free: Arc<FreeRollouts>,
    ) -> Self {
        let (taken, owner) = (Moment::now(), process_id());
        let (recorded, reading_first) = (AtomicBool::new(false), Leases::none());
        let last_filled = RwLock::new(0);
        Self { index, memory, free, taken, owner, recorded, reading_first, last_filled }
    }

    /// Begins the only recording of this rollout. `free` are the free rollouts of the pool that
    /// records.
    pub(super) fn begin_recording(&self, free: &Arc<FreeRollouts>) -> Result<(), Error> {
        if !Arc::ptr_eq(&self.free, free) {
            return Err(Error::BadPlan("the rollout is another pool's".to_owned()));
        }
        // `Relaxed`: only the pool records, and it is borrowed mutably.
        if self.recorded.swap(true, Ordering::Relaxed) {
            return Err(Error::BadPlan("a rollout is recorded once: take a new one".to_owned()));
        }
        Ok(())
    }

    /// A task is about to fill a batch: waits for those that copy what it shares with the one before.
    pub(super) fn begin_filling(&self, batch: usize) {
        *self.last_filled.write().unwrap_or_else(PoisonError::into_inner) = batch;
    }

    /// Keeps what all batches share, which must be that of this one.
    ///
    /// # Panics
    ///
    /// When the next batch was begun, or is begun at this moment.
    pub(super) fn keep_shared(&self, batch: usize) -> LastFilled<'_> {
        let last_filled = self.last_filled.try_read().ok().filter(|last| **last == batch);
        last_filled.unwrap_or_else(|| {
            panic!(
                "final observations and phases of batch {batch} were overwritten: copy them before the \
                 next step"
            )
        })
    }

    /// A lease on a batch begins.
    pub(super) fn begin_reading(&self, batch: usize) {
        if batch == 0 {
            self.reading_first.add();
        }
    }

    /// A lease on a batch ends, or no longer allows reading.
    pub(super) fn end_reading(&self, batch: usize) {
        if batch == 0 {
            self.reading_first.end();
        }
    }

    /// Whether safe code may be reading the first batch, which a reset is about to replace.
    pub(crate) fn is_first_read(&self) -> bool {
        self.reading_first.any()
    }

    /// The rollout's number, by which workers know it.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Number of steps that fit.
    pub fn steps(&self) -> usize {
        self.memory.steps()
    }

    /// Layout of batch `batch`; batch 0 is the one before the first step.
    ///
    /// # Panics
    ///
    /// When there are fewer steps.
    pub fn layout(&self, batch: usize) -> BatchLayout<'_> {
        self.memory.layout.batch(batch)
    }

    /// Address of `range`, valid as long as the lease lives. Memory that an unfinished task fills
    /// must not be read.
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

    pub(crate) fn memory(&self) -> &Arc<RolloutMemory> {
        &self.memory
    }
}

impl Drop for RolloutLease {
    fn drop(&mut self) {
        // A lock in a forked child may be held by a thread that does not exist there; and the child
        // takes no rollout from the list.
        if self.owner != process_id() {
            return;
        }
        // The lock is held while another thread copies the whole rollout: it is, or was until then,
        // shared.
        let shared = match self.memory.backing.try_lock() {
            Ok(backing) => backing.as_ref().is_some_and(|backing| backing.descriptor().is_some()),
            Err(_) => true,
        };
        // If an interrupt came before the recording began, some workers may not know the rollout.
        // `Relaxed`: the last drop of the `Arc` acquires what was done with every other one.
        let is_known = self.recorded.load(Ordering::Relaxed);
        if self.free.closed.load(Ordering::Relaxed) {
            if !shared {
                let all = 0..self.memory.mapping.len();
                // SAFETY: this was the last lease, and nothing is filled any more but by threads that are
                // late, which nothing reads (invariant 3).
                unsafe { self.memory.mapping.give_back(all) };
            }
        } else if !is_known || (shared && self.taken.forked_since()) {
            self.free.retire(self.index);
        } else {
            self.free.put((self.index, Arc::clone(&self.memory)));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::wake::Scope;

    fn lease(free: &Arc<FreeRollouts>) -> RolloutLease {
        let (mapping, backing) = Mapping::new("cartwheel-test", 1, Scope::Private).expect("a page");
        let layout = RolloutLayout::new(&[], 1, 1, false, 1).expect("a small rollout");
        let memory = Arc::new(RolloutMemory::new(mapping, layout, Some(backing)));
        RolloutLease::new((0, memory), Arc::clone(free))
    }

    /// Drops a lease on another thread; returns whether the drop finishes.
    fn is_dropped(lease: RolloutLease) -> bool {
        let (tell, dropped) = channel();
        std::thread::spawn(move || {
            drop(lease);
            let _ = tell.send(());
        });
        dropped.recv_timeout(Duration::from_secs(10)).is_ok()
    }

    #[test]
    fn a_rollout_that_was_never_recorded_is_not_used_again() {
        let free = Arc::new(FreeRollouts::default());
        drop(lease(&free));
        assert!(free.take(1).is_none());
        assert_eq!(free.take_retired(), Some(0));
        let recorded = lease(&free);
        recorded.begin_recording(&free).expect("new");
        drop(recorded);
        assert!(free.take(1).is_some());
    }

    #[test]
    fn a_rollout_beyond_the_last_number_is_refused() {
        let free = FreeRollouts::default();
        assert!(free.check_number(MAX_ROLLOUTS - 1).is_ok());
        let refused = free.check_number(MAX_ROLLOUTS).expect_err("no number is left");
        assert_eq!(refused.to_string(), "32768 rollouts are held: drop one before the next");
        free.retire(5);
        assert!(free.check_number(MAX_ROLLOUTS).is_ok());
    }

    #[test]
    fn a_lease_of_another_process_is_dropped_even_if_a_lock_was_held_at_the_fork() {
        let free = Arc::new(FreeRollouts::default());
        let mut lease = lease(&free);
        lease.owner += 1; // as a forked child finds it
        let memory = Arc::clone(&lease.memory);
        let _locks = (free.free.lock(), free.retired.lock(), memory.backing.lock());
        assert!(is_dropped(lease));
    }

    #[test]
    fn a_lease_does_not_wait_for_a_copy_of_its_rollout() {
        let free = Arc::new(FreeRollouts::default());
        let lease = lease(&free);
        lease.begin_recording(&free).expect("new");
        let memory = Arc::clone(&lease.memory);
        let _copying = memory.backing.lock();
        assert!(is_dropped(lease));
        assert!(free.take(1).is_some(), "nothing was forked: it is free again");
    }
}
