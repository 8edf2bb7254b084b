//! The control words: a line for the pool, one for each worker, the workers' event counts, a line for each
//! open batch, the workers' queues, and the workers' counters.
//!
//! The pool's line and each worker's line take up 128 bytes, two cache lines, because processors
//! prefetch lines in pairs.
//!
//! # Invariants
//!
//! 1. **Life.** A [`Mapping`] stays mapped, with its length, as long as any value holds it:
//!    invariant 1 of [`crate::memory`].
//! 2. **Control words** are only ever accessed as atomics, on both sides: invariant 2 of
//!    [`crate::memory`]. All of them consist of atomics, for which every bit pattern is valid.
//! 3. **Places.** A mapping begins on a page. `Offsets` lays words out on multiples of their alignment, and
//!    `Control::new` checks that they fit; a signature ends a mapping whose size is a multiple of its alignment.
#![expect(unsafe_code, reason = "views mapped bytes as atomics, see the invariants")]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::batch_ring::{BatchRing, OpenBatch, Tickets};
use super::counters::{Counters, RowCounts, SentCount, ShardCounts};
use super::place_state::PlaceState;
use super::queue::{Ends, Entry, RowQueue, ring_places};
use crate::error::Error;
use crate::memory::{Mapping, Plan};
use crate::space::{Extent, RolloutLayout};
use crate::wake::{Caller, IDLE, Latch, SLEEPERS, Scope};

/// "cwhl" and the version of the layout of shared memory.
const MAGIC: u32 = u32::from_le_bytes(*b"cwhl");
const VERSION: u32 = 11;

/// The pool's own line.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Header {
    magic: AtomicU32,
    version: AtomicU32,
    workers: AtomicU32,
    /// Distinguishes memories and plans, see [`Control::initialize`].
    identity: AtomicU32,
    /// The doorbell: the pool waits on it, and the last worker to finish rings it.
    pub(crate) doorbell: AtomicU32,
    /// Workers that have not acknowledged the pending task; the last one to count itself rings.
    pub(crate) remaining: Latch,
    /// The next ticket, see [`super::batch_ring`].
    tickets: Tickets,
    /// The state of the pool's caller, on a cache line of its own.
    pub(crate) caller: Caller,
}

/// One worker's line.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Slot {
    /// Task words to the worker, see [`crate::wake`].
    pub(crate) word: AtomicU32,
    /// Number of the last task that the worker acknowledged.
    pub(crate) done: crate::sync::AtomicU32,
    /// The slab to fill; written before the task word that needs it.
    pub(crate) slab: AtomicU32,
    /// Flags for the worker besides the operation; written before the task word.
    pub(crate) flags: AtomicU32,
    /// The worker's report on the task that it acknowledged, a [`crate::worker::Report`].
    pub(crate) status: AtomicU32,
    /// Bytes of infos that it wrote to its region.
    pub(crate) info_bytes: AtomicU32,
    pub(super) queue: Ends,
}

impl Slot {
    /// Clears what a dead worker left: its task word and its queue.
    pub(crate) fn forget(&self) {
        // `Relaxed`: an idle word is not acted on, and the next task word publishes what comes before it.
        self.word.store(IDLE, Ordering::Relaxed);
        self.queue.clear();
    }
}

/// The event count of up to [`SLEEPERS`] workers.
#[derive(Debug)]
#[repr(C, align(128))]
struct EventCountLine(AtomicU32);

/// Written behind the batches of a rollout, to identify it.
#[derive(Debug)]
#[repr(C, align(64))]
struct Signature {
    index: AtomicU64,
    memory: AtomicU32,
}

/// Offsets of the words, in bytes from the start of the mapping.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    slots: usize,
    event_counts: usize,
    batches: usize,
    place_states: usize,
    queues: usize,
    shard_counts: usize,
    row_counts: usize,
    sent_counts: usize,
    /// Bytes of all words together.
    bytes: usize,
}

impl Offsets {
    /// Lays out the words of a plan; `None` when they do not fit into the address space.
    fn from_plan(plan: &Plan) -> Option<Self> {
        let (rows, shards) = (plan.rows(), plan.shards.len());
        let mut extent = Extent::default();
        extent.take_array::<Header>(1)?;
        Some(Self {
            slots: extent.take_array::<Slot>(shards)?,
            event_counts: extent.take_array::<EventCountLine>(shards.div_ceil(SLEEPERS))?,
            batches: extent.take_array::<OpenBatch>(plan.ring())?,
            place_states: extent
                .take_array::<PlaceState>(plan.ring().checked_mul(plan.batch_size)?)?,
            // A ring has at most two places for each row.
            queues: extent.take_array::<Entry>(rows.checked_mul(2)?)?,
            shard_counts: extent.take_array::<ShardCounts>(shards)?,
            row_counts: extent.take_array::<RowCounts>(rows)?,
            sent_counts: extent.take_array::<SentCount>(rows)?,
            bytes: extent.bytes(align_of::<SentCount>()),
        })
    }
}

/// All control words of a pool; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Control {
    mapping: Arc<Mapping>,
    plan: Arc<Plan>,
    scope: Scope,
    offsets: Offsets,
    /// [`Plan::ring`], kept because it is a division and every look at the batches needs it.
    ring: usize,
}

impl Control {
    /// Bytes of all words; `None` when they do not fit into the address space.
    pub(super) fn bytes(plan: &Plan) -> Option<usize> {
        Offsets::from_plan(plan).map(|offsets| offsets.bytes)
    }

    pub(super) fn new(mapping: Arc<Mapping>, plan: Arc<Plan>, scope: Scope) -> Self {
        let offsets = Offsets::from_plan(&plan).expect("the plan was checked");
        assert!(mapping.len() >= offsets.bytes, "control words fit their mapping");
        let ring = plan.ring();
        Self { mapping, plan, scope, offsets, ring }
    }

    /// Signs new memory, before any worker sees it. `identity` is a number that other memories and
    /// other plans are unlikely to have.
    pub(super) fn initialize(&self, identity: u32) {
        let header = self.header();
        // `Relaxed`, here and in `sign`: workers start, or get the number of a rollout, later.
        header.magic.store(MAGIC, Ordering::Relaxed);
        header.version.store(VERSION, Ordering::Relaxed);
        header.workers.store(self.workers_u32(), Ordering::Relaxed);
        header.identity.store(identity, Ordering::Relaxed);
    }

    /// Checks, in a worker, which code and which plan made the memory: an upgraded package with
    /// an old worker must fail here.
    pub(super) fn verify(&self, identity: u32) -> Result<(), Error> {
        let header = self.header();
        for (what, word, expected) in [
            ("magic number", &header.magic, MAGIC),
            ("version", &header.version, VERSION),
            ("number of workers", &header.workers, self.workers_u32()),
            ("identity of memory and plan", &header.identity, identity),
        ] {
            let got = word.load(Ordering::Relaxed); // written before this process started
            if got != expected {
                let (expected, got) = (expected as usize, got as usize);
                return Err(Error::Mismatch { what, expected, got });
            }
        }
        Ok(())
    }

    /// Bytes of the mapping of a rollout with its signature.
    pub(super) fn signed_bytes(rollout: &RolloutLayout) -> usize {
        rollout.bytes().next_multiple_of(align_of::<Signature>()) + size_of::<Signature>()
    }

    /// Signs the mapping of rollout `index`, before any worker sees it.
    pub(super) fn sign(&self, mapping: &Mapping, index: usize) {
        let signature = Self::signature(mapping);
        signature.memory.store(self.header().identity.load(Ordering::Relaxed), Ordering::Relaxed);
        signature.index.store(index as u64, Ordering::Relaxed);
    }

    /// Checks, in a worker, that a mapping belongs to rollout `index` of this memory: in another
    /// mapping, safe code may be reading what the worker would write.
    pub(super) fn verify_signed(&self, mapping: &Mapping, index: usize) -> Result<(), Error> {
        let (Signature { memory, index: number }, header) =
            (Self::signature(mapping), self.header());
        for (what, got, expected) in [
            ("number of the rollout", number.load(Ordering::Relaxed), index as u64),
            (
                "identity of the rollout's memory",
                memory.load(Ordering::Relaxed).into(),
                header.identity.load(Ordering::Relaxed).into(),
            ),
        ] {
            if got != expected {
                let number = |word| usize::try_from(word).unwrap_or(usize::MAX);
                let (expected, got) = (number(expected), number(got));
                return Err(Error::Mismatch { what, expected, got });
            }
        }
        Ok(())
    }

    /// The signature, at the end of a rollout's mapping.
    fn signature(mapping: &Mapping) -> &Signature {
        let end = mapping.len();
        let place = mapping.at(end - size_of::<Signature>()..end).cast::<Signature>();
        debug_assert!(place.is_aligned(), "the size is a multiple of its alignment");
        // SAFETY: a `Signature` at an aligned place of the mapping, which is borrowed (invariants 1 to 3).
        unsafe { place.as_ref() }
    }

    fn workers_u32(&self) -> u32 {
        u32::try_from(self.workers()).expect("a pool has fewer than 2^32 workers")
    }

    /// Number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.plan.shards.len()
    }

    /// The pool's line.
    pub(crate) fn header(&self) -> &Header {
        let place = self.mapping.at(0..size_of::<Header>()).cast::<Header>();
        debug_assert!(place.is_aligned(), "a mapping starts on a page");
        // SAFETY: a `Header` at the beginning of the mapping, which outlives `self` (invariants 1 to 3).
        unsafe { place.as_ref() }
    }

    /// The line of worker `worker`.
    pub(crate) fn slot(&self, worker: usize) -> &Slot {
        assert!(worker < self.workers(), "there is no worker {worker}");
        let start = self.offsets.slots + worker * size_of::<Slot>();
        let place = self.mapping.at(start..start + size_of::<Slot>()).cast::<Slot>();
        debug_assert!(place.is_aligned(), "slots lie on multiples of their alignment");
        // SAFETY: a `Slot` at an aligned place of the mapping (invariants 1 to 3).
        unsafe { place.as_ref() }
    }

    /// The event count of worker `worker`, see [`crate::wake`].
    pub(super) fn event_count(&self, worker: usize) -> &AtomicU32 {
        assert!(worker < self.workers(), "there is no worker {worker}");
        let start = self.offsets.event_counts + worker / SLEEPERS * size_of::<EventCountLine>();
        let place =
            self.mapping.at(start..start + size_of::<EventCountLine>()).cast::<EventCountLine>();
        debug_assert!(place.is_aligned(), "event counts lie on multiples of their alignment");
        // SAFETY: a line at an aligned place of the mapping (invariants 1 to 3).
        let EventCountLine(event_count) = unsafe { place.as_ref() };
        event_count
    }

    /// The open batches, with the tickets for their places.
    pub(crate) fn batches(&self) -> BatchRing<'_> {
        let (start, count) = (self.offsets.batches, self.ring);
        let place = self.mapping.at(start..start + count * size_of::<OpenBatch>());
        let place = place.cast::<OpenBatch>();
        debug_assert!(place.is_aligned(), "batches lie on multiples of their alignment");
        // SAFETY: `count` batches at an aligned place of the mapping (invariants 1 to 3).
        let ring = unsafe { std::slice::from_raw_parts(place.as_ptr(), count) };
        BatchRing {
            tickets: &self.header().tickets,
            ring,
            place_states: self.place_states(),
            batch_size: self.plan.batch_size,
            mortal: self.scope == Scope::Shared,
        }
    }

    /// The states of the places of the open batches.
    fn place_states(&self) -> &[PlaceState] {
        let (start, count) = (self.offsets.place_states, self.ring * self.plan.batch_size);
        let place =
            self.mapping.at(start..start + count * size_of::<PlaceState>()).cast::<PlaceState>();
        debug_assert!(place.is_aligned(), "place states lie on multiples of their alignment");
        // SAFETY: `count` words at an aligned place of the mapping (invariants 1 to 3).
        unsafe { std::slice::from_raw_parts(place.as_ptr(), count) }
    }

    pub(crate) fn queue(&self, worker: usize) -> RowQueue<'_> {
        let Range { start, end } = self.plan.shards[worker].clone();
        let queues = self.offsets.queues;
        let (first, count) = (2 * start, ring_places(end - start));
        let bytes =
            queues + first * size_of::<Entry>()..queues + (first + count) * size_of::<Entry>();
        let place = self.mapping.at(bytes).cast::<Entry>();
        debug_assert!(place.is_aligned(), "queues lie on multiples of their alignment");
        // SAFETY: `count` entries at an aligned place of the mapping (invariants 1 to 3).
        let entries = unsafe { std::slice::from_raw_parts(place.as_ptr(), count) };
        RowQueue { ends: &self.slot(worker).queue, entries }
    }

    pub(crate) fn counters(&self, worker: usize) -> Counters<'_> {
        let Range { start, end } = self.plan.shards[worker].clone();
        let at = self.offsets.shard_counts + worker * size_of::<ShardCounts>();
        let shard = self.mapping.at(at..at + size_of::<ShardCounts>()).cast::<ShardCounts>();
        let at = self.offsets.row_counts;
        let bytes = at + start * size_of::<RowCounts>()..at + end * size_of::<RowCounts>();
        let rows = self.mapping.at(bytes).cast::<RowCounts>();
        let at = self.offsets.sent_counts;
        let bytes = at + start * size_of::<SentCount>()..at + end * size_of::<SentCount>();
        let sent = self.mapping.at(bytes).cast::<SentCount>();
        debug_assert!(shard.is_aligned() && rows.is_aligned(), "counts lie on their alignment");
        // SAFETY: `ShardCounts` at an aligned place of the mapping (invariants 1 to 3).
        let shard = unsafe { shard.as_ref() };
        // SAFETY: one `RowCounts` for each row of the shard, at an aligned place (invariants 1 to 3).
        let rows = unsafe { std::slice::from_raw_parts(rows.as_ptr(), end - start) };
        // SAFETY: one counter for each row of the shard, at an aligned place (invariants 1 to 3).
        let sent = unsafe { std::slice::from_raw_parts(sent.as_ptr(), end - start) };
        Counters { shard, rows, sent }
    }
}
