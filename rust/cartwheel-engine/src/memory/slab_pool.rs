//! The slabs of a pool, each the memory of one batch: which are free, and what becomes of one whose
//! [leases](super::Lease) have ended.
//!
//! # The life of a slab
//!
//! ```text
//! free ──acquire──▶ filling ──all workers acknowledged──▶ leased ──last view dropped──▶ free
//! ```
//!
//! Shared memory that was leased when the process forked is retired instead, see [`forks`](super::forks).
//!
//! `acquire` pops the free list; when the list is empty, a further slab is reserved, up to
//! `max_slabs`. The first slabs, one for each batch that can be open at once, are scratch slabs and
//! never leased out. When no other slab is left, one of them is filled, copied out and free again
//! at once, so a caller that keeps every batch gets copies and never has to wait.
//!
//! A batch that is received in parts has a lease for each part; the slab is free again when the last
//! of them is dropped. Each drop releases the reads before it, and the last one acquires them.
//!
//! When the pool closes, free slabs give their memory back to the system, since a lease keeps the
//! mapping of all slabs.
#![expect(unsafe_code, reason = "gives memory back, see the invariants")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::forks::Moment;
use super::free_list::FreeList;
use super::lease_count::Leases;
use super::mapping::{Backing, Mapping};
use super::memory_limit::MemoryLimit;
use super::rollout::{self, FreeRollouts, RolloutLease, RolloutMemory};
use super::slab::SlabMemory;
use crate::error::Error;
use crate::space::BatchLayout;

/// The pool's view of its slabs: which are free, and how many exist.
#[derive(Debug)]
pub struct SlabPool {
    memory: Arc<SlabMemory>,
    free: FreeList,
    /// Number of slabs that are backed by memory, including the scratch slabs.
    reserved: AtomicU32,
    /// The leases on each slab.
    leases: Box<[Leases]>,
    /// Number of scratch slabs.
    scratch: u32,
    free_rollouts: Arc<FreeRollouts>,
    /// Whether no slab is filled any more.
    closed: AtomicBool,
}

impl SlabPool {
    /// A pool over new memory, whose first slabs are reserved: `scratch` slabs that are copied out,
    /// one for each batch that can be filled at once, and one more.
    ///
    /// # Panics
    ///
    /// When there are 2^32 slabs; no plan allows that.
    pub(crate) fn new(memory: Arc<SlabMemory>, scratch: usize) -> Self {
        let scratch = u32::try_from(scratch).expect("a plan has fewer than 2^32 slabs");
        let free = FreeList::new(memory.limit);
        free.push(scratch);
        let reserved = AtomicU32::new(scratch + 1);
        let leases = (0..memory.limit).map(|_| Leases::none()).collect();
        let (free_rollouts, closed) = (Arc::default(), AtomicBool::new(false));
        Self { memory, free, reserved, leases, scratch, free_rollouts, closed }
    }

    /// Gives the memory of everything that is free back to the system, although leases on other slabs
    /// keep the mapping. Later, private memory is given back when its lease ends.
    ///
    /// Nothing is acquired after this.
    pub(crate) fn close(&self) {
        // `Relaxed`: what finds it set reads nothing that was written before. A slab whose lease ends at the
        // same moment may be missed: it goes with the mapping.
        self.closed.store(true, Ordering::Relaxed);
        let free = std::iter::from_fn(|| self.free.pop());
        free.chain(self.idle_scratch()).for_each(|slab| self.give_back(slab));
        self.free_rollouts.close();
        while self.discard_rollout() {}
    }

    fn give_back(&self, slab: u32) {
        let start = self.memory.start(slab);
        let range = start..start + self.memory.layout().bytes();
        // SAFETY: the slab is free for good. A thread that is late may still write into it, and no one
        // reads that (invariant 3).
        unsafe { self.memory.mapping.give_back(range) }
    }

    /// Layout of a slab.
    pub fn layout(&self) -> BatchLayout<'_> {
        self.memory.layout()
    }

    /// Number of slabs that are backed by memory, including the scratch slabs.
    pub fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed) as usize // a statistic
    }

    /// Number of slabs that are leased or being filled.
    pub fn leased(&self) -> usize {
        self.leases.iter().filter(|leases| leases.any()).count()
    }

    /// The first lease on a slab to fill begins, the one that was released last, otherwise a new one,
    /// otherwise a scratch slab; also the moment, if the memory is shared. `backing` is the memory behind
    /// the slabs.
    ///
    /// # Errors
    ///
    /// [`Error::SlabsHeld`] when every scratch slab is in use. There is one for each batch that can be
    /// filled at once, so the caller holds a batch that it had to copy.
    pub(super) fn begin_lease(&self, backing: &Backing) -> Result<(u32, Option<Moment>), Error> {
        let slab =
            self.free.pop().or_else(|| self.grow(backing)).or_else(|| self.idle_scratch().next());
        let slab = slab.ok_or_else(|| Error::SlabsHeld { slabs: self.reserved() })?;
        let taken = backing.descriptor().map(|_| Moment::now());
        self.leases(slab).begin();
        Ok((slab, taken))
    }

    /// The scratch slabs that are not being filled or copied.
    fn idle_scratch(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.scratch).filter(|&slab| !self.leases(slab).any())
    }

    /// A rollout of `steps` steps that is not leased, if there is one.
    pub(crate) fn free_rollout(&self, steps: usize) -> Option<RolloutLease> {
        let free = self.free_rollouts.take(steps)?;
        Some(RolloutLease::new(free, Arc::clone(&self.free_rollouts)))
    }

    /// Makes room for one more rollout: while there are [`rollout::MAX_FREE`] free ones, of other
    /// lengths, the oldest gives its memory back.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] at the maximum number of rollouts.
    pub(crate) fn make_room_for_rollout(&self) -> Result<(), Error> {
        while self.free_rollouts.len() >= rollout::MAX_FREE && self.discard_rollout() {}
        self.free_rollouts.check_number(self.memory.next_rollout())
    }

    /// Gives the memory of the rollout that was free for longest back; returns whether there was one.
    pub(crate) fn discard_rollout(&self) -> bool {
        let Some((index, memory)) = self.free_rollouts.take_oldest() else { return false };
        self.memory.remove_rollout(index);
        memory.give_back();
        self.free_rollouts.retire(index);
        true
    }

    /// The number of a retired rollout, for a new one.
    pub(crate) fn unused_rollout(&self) -> Option<usize> {
        self.free_rollouts.take_retired()
    }

    /// A lease on a rollout that was just made.
    pub(crate) fn new_rollout(&self, index: usize, memory: Arc<RolloutMemory>) -> RolloutLease {
        RolloutLease::new((index, memory), Arc::clone(&self.free_rollouts))
    }

    /// Begins the recording of a rollout, which must belong to this pool and must not have been
    /// recorded.
    pub(crate) fn begin_recording(&self, rollout: &RolloutLease) -> Result<(), Error> {
        rollout.begin_recording(&self.free_rollouts)
    }

    /// Reserves one more slab, unless the limit is reached or no memory is left. Both mean that the
    /// caller keeps too many batches, and gets copies from now on.
    fn grow(&self, backing: &Backing) -> Option<u32> {
        let slab = self.reserved.load(Ordering::Relaxed); // written below only
        if slab >= self.memory.limit {
            return None;
        }
        let start = self.memory.start(slab);
        let end = start + self.memory.layout().bytes();
        MemoryLimit::require_growth("a batch", start, end).ok()?;
        backing.reserve(start..end).ok()?;
        self.reserved.store(slab + 1, Ordering::Relaxed); // only `acquire`, under `&mut Pool`
        Some(slab)
    }

    /// Ends a lease on a slab, which was taken at that moment if the memory is shared; the slab is free again
    /// when this was the last one. Does not block.
    pub(super) fn end_lease(&self, slab: u32, taken: Option<Moment>) {
        if !self.leases(slab).end() {
            return;
        }
        match taken {
            _ if self.is_scratch(slab) => {}
            Some(taken) if taken.forked_since() => {} // a forked child may read it
            // Shared memory is private by now, which gives nothing back. `Relaxed`: see `close`.
            None if self.closed.load(Ordering::Relaxed) => self.give_back(slab),
            _ => self.free.push(slab),
        }
    }

    /// The leases on a slab.
    pub(super) fn leases(&self, slab: u32) -> &Leases {
        &self.leases[slab as usize]
    }

    /// The mapping of all slabs.
    pub(super) fn mapping(&self) -> &Mapping {
        &self.memory.mapping
    }

    /// Offset of a slab in the mapping.
    pub(super) fn start(&self, slab: u32) -> usize {
        self.memory.start(slab)
    }

    /// Whether this is a scratch slab.
    pub(super) fn is_scratch(&self, slab: u32) -> bool {
        slab < self.scratch
    }

    /// Whether there are as many slabs as there may be.
    pub(super) fn is_at_limit(&self) -> bool {
        self.reserved() >= self.memory.limit as usize
    }
}
