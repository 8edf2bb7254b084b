//! Leases: what a caller has of the batches that it got, and what keeps their memory.
//!
//! Only a lease proves that a caller may still read the slab. A reference count of anything else
//! would sometimes be wrong: a worker may hold its own reference for an instant after
//! acknowledging, and NumPy views refer to their base and not to the array from which they were
//! made.
#![expect(
    unsafe_code,
    reason = "leases memory before it is filled and copies into and out of it, see the invariants"
)]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::forks::Moment;
use super::mapping::{Backing, Mapping};
use super::rollout::{self, LastFilled, RolloutLease};
use super::slab_pool::SlabPool;
use crate::error::Error;
use crate::space::BatchLayout;

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

impl SlabPool {
    /// A lease on a slab to fill, see [`SlabPool::begin_lease`].
    ///
    /// # Safety
    ///
    /// The lease is not read before the slab is filled (invariant 3).
    ///
    /// # Errors
    ///
    /// [`Error::SlabsHeld`] as there.
    pub(crate) unsafe fn acquire(self: &Arc<Self>, backing: &Backing) -> Result<Lease, Error> {
        let (slab, taken) = self.begin_lease(backing)?;
        let (start, bytes) = (self.start(slab), self.layout().bytes());
        let (pool, places, rollout, reads) = (Arc::clone(self), None, None, true);
        Ok(Lease(Box::new(Hold { pool, slab, start, bytes, places, rollout, taken, reads })))
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
        rollout.begin_filling(batch);
        rollout.begin_reading(batch);
        let slab = rollout::number(rollout.index(), batch);
        let (start, bytes) = (0, rollout.layout(batch).bytes());
        let (pool, rollout) = (Arc::clone(self), Some((Arc::clone(rollout), batch)));
        let (places, taken, reads) = (None, None, true);
        Lease(Box::new(Hold { pool, slab, start, bytes, places, rollout, taken, reads }))
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
        self.0.pool.leases(self.0.slab).park();
        Some(self)
    }

    /// A lease on the slab that was [parked](Self::park).
    pub(crate) fn unpark(self) -> Self {
        self.0.pool.leases(self.0.slab).begin();
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
        self.0.pool.is_at_limit()
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
        self.0.pool.leases(self.0.slab).add();
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
            None => self.0.pool.mapping(),
            Some((rollout, _)) => rollout.mapping(),
        };
        (mapping, self.0.start, self.0.bytes)
    }

    /// Whether this is a scratch slab: copy what is needed, and drop the lease before the next
    /// batch.
    pub fn must_copy(&self) -> bool {
        self.0.pool.is_scratch(self.0.slab)
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
    /// When those bytes are not in the slab. When they are not of the lease's places in one array, for a part
    /// of a batch and for a batch of a rollout. When the rollout's next batch was begun, for what its batches
    /// share: final observations, phases, and the numbers of rows.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        // SAFETY: the places of the lease are committed, so no worker writes them (invariant 3); of a batch in
        // parts and of a rollout no other places are read, as was checked.
        self.with_source(offset, into.len(), |mapping, start| unsafe { mapping.read(start, into) });
    }

    /// The same, to bytes that need not be initialized; returns them, which are then.
    ///
    /// # Panics
    ///
    /// As [`Lease::read`].
    pub fn read_new<'a>(&self, offset: usize, into: &'a mut [MaybeUninit<u8>]) -> &'a mut [u8] {
        let wanted = into.len();
        // SAFETY: as for `read` (invariant 3).
        self.with_source(offset, wanted, |mapping, start| unsafe { mapping.read_new(start, into) })
    }

    /// Copies `from` to `offset` of the slab, which nothing else reads: the lease is the only one, and no
    /// address of it was given away; or only arrays of a rollout show the bytes, and what reads these takes any.
    ///
    /// # Panics
    ///
    /// As [`Lease::read`].
    pub fn write(&mut self, offset: usize, from: &[u8]) {
        // SAFETY: the places of the lease are committed, so no worker accesses them (invariant 3); no others
        // are written, as was checked.
        self.with_source(offset, from.len(), |mapping, start| unsafe {
            mapping.write(start, from);
        });
    }

    /// Calls `copy` with the mapping and the offset in it of `wanted` bytes from `offset` of the slab on. What
    /// the next batch of a rollout has too stays as it is until then.
    fn with_source<T>(
        &self,
        offset: usize,
        wanted: usize,
        copy: impl FnOnce(&Mapping, usize) -> T,
    ) -> T {
        let (mapping, start, bytes) = self.place();
        if offset.checked_add(wanted).is_none_or(|end| end > bytes) {
            outside(offset, wanted, bytes);
        }
        if self.0.places.is_none() && self.0.rollout.is_none() {
            return copy(mapping, start + offset); // apart: nothing is kept, and no guard is dropped
        }
        let _shared = self.check_places(offset..offset + wanted);
        copy(mapping, start + offset)
    }

    #[inline(never)] // each read of a whole slab would be longer
    fn check_places(&self, bytes: Range<usize>) -> Option<LastFilled<'_>> {
        let layout = self.layout();
        let places = self.0.places.clone().unwrap_or(0..layout.rows());
        if layout.are_kept(&bytes, &places) {
            return None;
        }
        assert!(layout.are_shared(&bytes, &places), "bytes {bytes:?} are not of places {places:?}");
        let (rollout, batch) = self.0.rollout.as_ref()?;
        Some(rollout.keep_shared(*batch))
    }
}

/// Apart from [`Lease::with_source`], whose every use would store what the message shows.
#[cold]
fn outside(offset: usize, wanted: usize, bytes: usize) -> ! {
    panic!("{wanted} bytes from {offset} on are not in a slab of {bytes} bytes")
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end_reading();
        // A rollout has its own lease, whose drop waits at most for the lock of a list.
        if self.0.rollout.is_none() {
            self.0.pool.end_lease(self.0.slab, self.0.taken);
        }
    }
}
