//! The slabs of a pool, each the memory of one batch, and the leases that keep them.
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
//!
//! Only a lease proves that a caller may still read the slab. A reference count of anything else
//! would sometimes be wrong: a worker may hold its own reference for an instant after
//! acknowledging, and NumPy views refer to their base and not to the array from which they were
//! made.
#![expect(
    unsafe_code,
    reason = "copies out of mapped memory and gives it back, see the invariants"
)]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
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
    /// Whether each scratch slab is being filled or copied.
    scratch_busy: Box<[AtomicBool]>,
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
        let scratch_busy: Box<_> = (0..scratch).map(|_| AtomicBool::new(false)).collect();
        let first = u32::try_from(scratch).expect("a plan has fewer than 2^32 slabs");
        let free = FreeList::new(memory.limit);
        free.push(first);
        let reserved = AtomicU32::new(first + 1);
        let leases = (0..memory.limit).map(|_| Leases::none()).collect();
        let (free_rollouts, closed) = (Arc::default(), AtomicBool::new(false));
        Self { memory, free, reserved, leases, scratch_busy, free_rollouts, closed }
    }

    /// Gives the memory of everything that is free back to the system, although leases on other slabs
    /// keep the mapping. Later, private memory is given back when its lease ends.
    ///
    /// Nothing is acquired after this.
    pub(crate) fn close(&self) {
        // `Release` pairs with the `Acquire` in `Lease::drop`. A slab whose lease ends at the same moment
        // may be missed: it goes with the mapping.
        self.closed.store(true, Ordering::Release);
        while let Some(slab) = self.free.pop().or_else(|| self.take_scratch()) {
            self.give_back(slab);
        }
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

    /// A slab to fill: the one that was released last, otherwise a new one, otherwise a scratch
    /// slab. `backing` is the memory behind the slabs.
    ///
    /// # Safety
    ///
    /// The lease is not read before the slab is filled (invariant 3).
    ///
    /// # Errors
    ///
    /// [`Error::SlabsHeld`] when every scratch slab is in use. There is one for each batch that can be
    /// filled at once, so the caller holds a batch that it had to copy.
    pub(crate) unsafe fn acquire(self: &Arc<Self>, backing: &Backing) -> Result<Lease, Error> {
        let slab = self.free.pop().or_else(|| self.grow(backing)).or_else(|| self.take_scratch());
        let slab = slab.ok_or_else(|| Error::SlabsHeld { slabs: self.reserved() })?;
        let taken = backing.descriptor().map(|_| Moment::now());
        self.leases[slab as usize].begin();
        let pool = Arc::clone(self);
        let (start, bytes) = (self.memory.start(slab), self.layout().bytes());
        let hold =
            Hold { pool, slab, start, bytes, places: None, rollout: None, taken, reads: true };
        Ok(Lease(Box::new(hold)))
    }

    fn take_scratch(&self) -> Option<u32> {
        // `Acquire` pairs with the `Release` in `Lease::drop`: the copy out of the scratch slab is finished
        // before it is filled again.
        let mut scratch = self.scratch_busy.iter();
        let idle = scratch.position(|busy| !busy.swap(true, Ordering::Acquire))?;
        Some(u32::try_from(idle).expect("counted in `new`"))
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

    /// A lease on batch `batch` of a rollout, for the next task to fill.
    ///
    /// # Safety
    ///
    /// As for [`SlabPool::acquire`].
    pub(crate) unsafe fn batch_of(
        self: &Arc<Self>,
        rollout: &Arc<RolloutLease>,
        batch: usize,
    ) -> Lease {
        let slab = rollout::number(rollout.index(), batch);
        rollout.begin_reading(batch);
        let (start, bytes) = (0, rollout.layout(batch).bytes());
        let (pool, rollout) = (Arc::clone(self), Some((Arc::clone(rollout), batch)));
        let (places, taken, reads) = (None, None, true);
        Lease(Box::new(Hold { pool, slab, start, bytes, places, rollout, taken, reads }))
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
}

/// A hold on one slab, or on a part of it; the slab is free again when its last lease is dropped, on
/// any thread, without blocking.
///
/// Its fields are behind a pointer: a lease goes through the results of many functions, and a move of
/// all of them waits for the stores before it.
#[derive(Debug)]
pub struct Lease(Box<Hold>);

/// The fields of a [`Lease`].
#[derive(Debug)]
struct Hold {
    pool: Arc<SlabPool>,
    slab: u32,
    /// Offset of the slab in its mapping, and its bytes: every read needs them.
    start: usize,
    bytes: usize,
    /// The places that the lease is for, if not all.
    places: Option<Range<usize>>,
    /// The rollout and the number of the batch, if the slab is a batch of a rollout.
    rollout: Option<(Arc<RolloutLease>, usize)>,
    /// When the lease was taken, for shared memory.
    taken: Option<Moment>,
    /// Whether safe code may read the slab.
    reads: bool,
}

/// A [`Lease`] whose holder uses addresses only: safe code does not read the memory.
#[derive(Debug)]
pub struct AddressLease(Lease);

impl AddressLease {
    /// Layout of the slab.
    pub fn layout(&self) -> BatchLayout<'_> {
        self.0.layout()
    }

    /// As [`Lease::first`].
    pub fn first(&self) -> usize {
        self.0.first()
    }

    /// Address of leaf `leaf`, as [`Lease::leaf`] returns it. Another reset before the first step
    /// of a rollout fills the first batch once more; the memory must not be read until that reset
    /// has ended.
    pub fn leaf(&self, leaf: usize) -> NonNull<u8> {
        self.0.leaf(leaf)
    }

    /// Address and size of [everything that a caller sees](BatchLayout::results), in one piece; `None`
    /// for a batch of a rollout, whose arrays lie apart, and for a part of a batch, around which other
    /// places are still being written.
    pub fn results(&self) -> Option<(NonNull<u8>, usize)> {
        let Hold { places: None, rollout: None, .. } = &*self.0.0 else { return None };
        let results = self.layout().results();
        Some((self.0.at(results.clone()), results.len()))
    }
}

impl Lease {
    /// Keeps the addresses only. Then another reset can fill the first batch of a rollout once
    /// more.
    pub fn by_address(mut self) -> AddressLease {
        self.end_reading();
        AddressLease(self)
    }

    /// Ends the lease but keeps the slab, which the pool fills next: to free it and to take it again would be
    /// seven atomic exchanges in a step of one row. `None`: the slab is not for the pool to keep, and the
    /// lease ends as any other.
    pub(crate) fn park(self, pool: &Arc<SlabPool>) -> Option<Self> {
        // A lease on all places is the only one. Shared memory that is leased while the process forks is
        // retired, and a scratch slab is for when no other slab is left.
        let Hold { places: None, rollout: None, taken: None, .. } = &*self.0 else { return None };
        if self.must_copy() || !Arc::ptr_eq(&self.0.pool, pool) {
            return None;
        }
        self.0.pool.leases[self.0.slab as usize].park();
        Some(self)
    }

    /// A lease on the slab that was [parked](Self::park).
    pub(crate) fn unpark(self) -> Self {
        self.0.pool.leases[self.0.slab as usize].begin();
        self
    }

    /// Safe code no longer reads the slab.
    fn end_reading(&mut self) {
        if let Some((rollout, batch)) = self.0.rollout.as_ref().filter(|_| self.0.reads) {
            rollout.end_reading(*batch);
        }
        self.0.reads = false;
    }

    /// Whether there are as many slabs as there may be; if not, memory was short.
    pub fn is_at_limit(&self) -> bool {
        self.0.pool.reserved() >= self.0.pool.memory.limit as usize
    }

    /// The first place of the batch that this lease is for: not 0 for a batch in parts.
    pub fn first(&self) -> usize {
        self.0.places.as_ref().map_or(0, |places| places.start)
    }

    /// The same lease, for places from `first` on.
    pub(crate) fn starting_at(mut self, first: usize) -> Self {
        self.0.places = (first > 0).then(|| first..self.layout().rows());
        self
    }

    /// Another lease on the slab, for some of its places.
    ///
    /// # Panics
    ///
    /// When the slab is a batch of a rollout.
    pub(crate) fn part(&self, places: Range<usize>) -> Self {
        assert!(self.0.rollout.is_none(), "a batch of a rollout has all rows");
        self.0.pool.leases[self.0.slab as usize].add();
        let Hold { slab, start, bytes, taken, reads, .. } = *self.0;
        let (pool, places, rollout) = (Arc::clone(&self.0.pool), Some(places), None);
        Self(Box::new(Hold { pool, slab, start, bytes, places, rollout, taken, reads }))
    }

    /// The slab's number.
    pub(crate) fn slab(&self) -> u32 {
        self.0.slab
    }

    /// Layout of the slab.
    pub fn layout(&self) -> BatchLayout<'_> {
        match &self.0.rollout {
            None => self.0.pool.layout(),
            Some((rollout, batch)) => rollout.layout(*batch),
        }
    }

    /// The mapping, and the offset of the slab in it and its bytes.
    #[inline]
    fn place(&self) -> (&Mapping, usize, usize) {
        let mapping = match &self.0.rollout {
            None => &self.0.pool.memory.mapping,
            Some((rollout, _)) => rollout.mapping(),
        };
        (mapping, self.0.start, self.0.bytes)
    }

    /// Whether this is a scratch slab: copy what is needed, and drop the lease before the next
    /// batch.
    pub fn must_copy(&self) -> bool {
        (self.0.slab as usize) < self.0.pool.scratch_busy.len()
    }

    /// Whether this is a batch of a rollout: its final observations are overwritten by the next step.
    pub fn is_recorded(&self) -> bool {
        self.0.rollout.is_some()
    }

    /// Whether this is the first batch of a rollout, which another reset before the first step
    /// fills once more: copy what must not change.
    pub fn may_be_filled_again(&self) -> bool {
        matches!(self.0.rollout, Some((_, 0)))
    }

    /// Address of `range` of the slab, counted from its start.
    ///
    /// The address is valid as long as the lease lives. No other thread or process reads or writes
    /// the places of the lease, so the holder may do both. Other places of a batch in parts are still
    /// being written.
    ///
    /// # Panics
    ///
    /// When the range is not in the slab.
    pub fn at(&self, range: Range<usize>) -> NonNull<u8> {
        let (mapping, start, bytes) = self.place();
        assert!(
            range.start <= range.end && range.end <= bytes,
            "{range:?} is not in a slab of {bytes} bytes"
        );
        mapping.at(start + range.start..start + range.end)
    }

    /// Address of leaf `leaf`, an array `[rows, *shape]`, from the [first place](Self::first) on;
    /// aligned to [`LEAF_ALIGN`](crate::space::LEAF_ALIGN) if that is 0, except in a rollout.
    pub fn leaf(&self, leaf: usize) -> NonNull<u8> {
        let (start, bytes) = (self.layout().leaf_offset(leaf), self.layout().row_bytes(leaf));
        let places = self.0.places.clone().unwrap_or(0..self.layout().rows());
        self.at(start + places.start * bytes..start + places.end * bytes)
    }

    /// Copies `into.len()` bytes from `offset` of the slab.
    ///
    /// Only for places that have been filled: the pool hands out leases after the acknowledgements, or
    /// when the places of a part are committed.
    ///
    /// # Panics
    ///
    /// When those bytes are not in the slab, or are not those of the lease's places in one array of a
    /// batch in parts.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let (mapping, start) = self.source(offset, into.len());
        // SAFETY: the places of the lease are committed, so no worker writes them (invariant 3); of a
        // batch in parts no other places are read, as was checked.
        unsafe { mapping.read(start, into) }
    }

    /// The same, to bytes that need not be initialized; returns them, which are then.
    ///
    /// # Panics
    ///
    /// As [`Lease::read`].
    pub fn read_new<'a>(&self, offset: usize, into: &'a mut [MaybeUninit<u8>]) -> &'a mut [u8] {
        let (mapping, start) = self.source(offset, into.len());
        // SAFETY: the places of the lease are committed, so no worker writes them (invariant 3); of a
        // batch in parts no other places are read, as was checked.
        unsafe { mapping.read_new(start, into) }
    }

    /// Copies `from` to `offset` of the slab, which nothing else reads: the lease is the only one, and no
    /// address of it was given away.
    ///
    /// # Panics
    ///
    /// As [`Lease::read`].
    pub fn write(&mut self, offset: usize, from: &[u8]) {
        let (mapping, start) = self.source(offset, from.len());
        // SAFETY: the places of the lease are committed, so no worker accesses them (invariant 3).
        unsafe { mapping.write(start, from) }
    }

    /// The mapping, and the offset in it of `wanted` bytes from `offset` of the slab on.
    fn source(&self, offset: usize, wanted: usize) -> (&Mapping, usize) {
        let (mapping, start, bytes) = self.place();
        if offset.checked_add(wanted).is_none_or(|end| end > bytes) {
            outside(offset, wanted, bytes);
        }
        if let Some(places) = &self.0.places {
            self.check_places(offset, wanted, places);
        }
        (mapping, start + offset)
    }

    #[inline(never)] // only a batch in parts has places, and each read of a whole one would be longer
    fn check_places(&self, offset: usize, wanted: usize, places: &Range<usize>) {
        let own = self.layout().are_of(&(offset..offset + wanted), places);
        assert!(own, "{wanted} bytes from {offset} on are not of places {places:?}");
    }
}

/// Apart from [`Lease::source`], whose every use would store what the message shows.
#[cold]
fn outside(offset: usize, wanted: usize, bytes: usize) -> ! {
    panic!("{wanted} bytes from {offset} on are not in a slab of {bytes} bytes")
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end_reading();
        if self.0.rollout.is_some() {
            return; // the rollout has its own lease, whose drop waits at most for the lock of a list
        }
        if !self.0.pool.leases[self.0.slab as usize].end() {
            return;
        }
        match self.0.pool.scratch_busy.get(self.0.slab as usize) {
            // `Release` pairs with the `Acquire` in `SlabPool::take_scratch`: the copy was read.
            Some(busy) => busy.store(false, Ordering::Release),
            None if self.0.taken.is_some_and(Moment::forked_since) => {} // a forked child may read it
            // Shared memory is private by now, which gives nothing back. `Acquire` pairs with the
            // `Release` in `SlabPool::close`.
            None if self.0.taken.is_none() && self.0.pool.closed.load(Ordering::Acquire) => {
                self.0.pool.give_back(self.0.slab);
            }
            None => self.0.pool.free.push(self.0.slab),
        }
    }
}
