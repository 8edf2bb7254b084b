//! The memory that a pool and its workers share.
//!
//! Four mappings, apart so that a stray write into one cannot reach another: control words, actions
//! (pool → workers), infos (workers → pool) and slabs (observations, rewards and flags). For
//! process workers each is a sealed `memfd`; for threads and for the calling thread it is private
//! anonymous memory. Everything else is the same.
//!
//! # Invariants
//!
//! Every `SAFETY` comment of this module cites these by number.
//!
//! 1. **Life.** A `Mapping` stays mapped until its drop, its length never changes (memfds are sealed
//!    against shrinking and growing), and every pointer into it is used behind an `Arc` or a borrow of it.
//! 2. **Control words** are only ever touched as atomics, on both sides.
//! 3. **Phases of a slab.** Free → filling by `SlabPool::acquire`; filling → leased when every worker has
//!    acknowledged the task, or every place of the batch is counted as filled; leased → free by the drop of
//!    the [`Lease`]. Only the pool does these, of which a memory has one in its life (invariant 9); a slab
//!    that a late or dead worker may still be filling is not filled again: the pool is waiting, broken or
//!    closed then, and takes none.
//! 4. **Rows.** While a slab is filling, each place is written by one shard alone: a task gives each shard,
//!    which one worker serves (invariant 9), the places of its own rows, tickets are drawn once and given
//!    places are dealt once, and a [`SlabRows`] refuses places outside its range. It lives only between
//!    taking a task and acknowledging it, or between claiming the places and counting them as filled. The
//!    pool reads a slab only after that.
//! 5. **Actions** of a row are written by the pool while no task is pending and the row is not in flight,
//!    and read by its worker between taking a task and acknowledging it, or taking the row from its queue
//!    and counting its place as filled. Tags change only while no step is in flight; an [`ActionRows`]
//!    reads them, and the elements that they describe, only of rows that are being stepped.
//! 6. **Infos.** The region of shard *k* is written by its worker between taking a task and acknowledging
//!    it, and read by the pool after that and before the next task, never once it is closed or broken. A
//!    row that was sent has a cell of that region, written before its place is counted as filled and read
//!    before the row is sent again; no task begins while rows are in flight.
//! 7. **Payload.** Every bit pattern of the payload is valid where it is read: numbers are copied as bytes,
//!    flags are read as `u8` and compared with zero, and nothing read from shared memory is used as an
//!    index without a bounds check.
//! 8. **Parting.** Slabs and rollouts are made private in place, by [`Sharing::part`], only where nobody
//!    waits any more for what a worker writes: in a forked child, and when a pool has ended its workers.
//! 9. **Claims.** A memory, with all its clones and attachments, has one pool; each worker has one server,
//!    which is the pool itself where it steps the worker's rows. Both are words of the control memory that
//!    are taken once, see `claim.rs`. A worker's is free again only when its process has ended and the pool
//!    has cleared what it left. Whoever attaches the memory deals its rows by the same plan.
//!
//! Outside this crate nobody reaches a control word, or an area but through a [`Lease`] or a task. So safe code
//! that embeds it can break none of these, as long as it writes to no descriptor of [`Memory::descriptors`] by
//! itself.
//!
//! Between processes Rust has no settled memory model; the practical rule followed here is that
//! control words are atomics, and that plain data between trusting processes is ordered by them. A
//! worker that breaks the protocol can spoil values, never the pool's own memory.

mod actions;
mod arrivals;
mod cell;
mod claim;
mod columns;
mod control;
pub mod forks;
mod free_list;
mod headroom;
mod infos;
#[cfg(all(loom, test))]
mod interleavings;
mod mapping;
mod process_id;
mod progress;
mod queue;
mod receipts;
mod rollout;
mod slab;
mod tally;

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

pub(crate) use actions::ActionArea;
pub use actions::{ActionRows, ActionTag};
pub(crate) use arrivals::{Arrivals, OpenBatches, Places};
pub use cell::{Cell, Shape, bytes_of};
use claim::identity;
pub use columns::{ActionColumns, Columns, Outcomes};
pub(crate) use control::Control;
pub(crate) use free_list::FreeList;
pub use headroom::Headroom;
pub(crate) use infos::InfoArea;
use infos::MOST_INFO_BYTES;
pub use mapping::Scope;
pub(crate) use mapping::{Access, Backing, Mapping};
pub use process_id::process_id;
pub use queue::Work;
pub(crate) use queue::WorkQueue;
pub(crate) use receipts::Receipts;
pub use receipts::Told;
pub(crate) use rollout::RolloutMemory;
pub use rollout::{MOST_STEPS, RolloutLease};
pub(crate) use slab::SlabMemory;
pub use slab::{AddressLease, Lease, SlabPool, SlabRows};
pub use tally::{BUCKETS, Tally};

use crate::error::Error;
use crate::space::{Extent, Layout, Leaf, PAGE, too_large};

/// What memory a pool needs. Pool and workers compute every offset from it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Leaves of one observation.
    pub observations: Vec<Leaf>,
    /// Leaves of one action.
    pub actions: Vec<Leaf>,
    /// The rows of each shard; together `0..num_envs`, in order.
    pub shards: Vec<Range<usize>>,
    /// Rows of a batch: all of them, or fewer if the first to be done are to be received first.
    pub batch_size: usize,
    /// Most slabs that may exist at once, at least one more than [`Plan::open_batches`].
    pub max_slabs: usize,
    /// Bytes for the infos of each shard.
    pub info_bytes: usize,
}

impl Plan {
    /// Rows of all shards.
    pub fn rows(&self) -> usize {
        self.shards.last().map_or(0, |shard| shard.end)
    }

    /// Batches that are being filled at once when every row is in flight.
    pub fn open_batches(&self) -> usize {
        self.rows().div_ceil(self.batch_size.max(1))
    }
}

/// The four mappings of a pool; cheap to clone.
#[derive(Debug, Clone)]
pub struct Memory {
    plan: Arc<Plan>,
    scope: Scope,
    /// The control words.
    pub(crate) control: Control,
    /// The actions of the batch that is being stepped.
    pub(crate) actions: ActionArea,
    /// The infos of the batch that was stepped.
    pub(crate) infos: InfoArea,
    /// The slabs.
    pub(crate) slabs: Arc<SlabMemory>,
    /// Where the memory was made: what stands behind it.
    sharing: Option<Arc<Sharing>>,
}

/// What stands behind a pool's memory in the process that made it.
#[derive(Debug)]
pub struct Sharing {
    /// Behind control words, actions, infos and slabs.
    backings: [Backing; 4],
    slabs: Arc<SlabMemory>,
}

impl Sharing {
    /// Makes the slabs and rollouts that this process shows private to it, with their contents. Workers
    /// write no more batches for it.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] or [`Error::Os`] for the first that stays shared.
    pub fn part(&self) -> Result<(), Error> {
        let [.., slabs] = &self.backings;
        self.slabs.part(slabs)
    }
}

impl Memory {
    /// Makes the memory for `plan`, private to this process or shared with workers.
    ///
    /// Shared memory is reserved here, so that a machine without enough of it answers with an
    /// error now and not with a signal later; slabs beyond the first few are reserved when needed.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`], [`Error::OutOfMemory`] or [`Error::Os`].
    pub fn new(plan: Plan, scope: Scope) -> Result<Self, Error> {
        let layout = check(&plan)?;
        let make = |name: &'static str, bytes: usize, reserved: usize| {
            let (mapping, backing) = Mapping::new(name, bytes, scope)?;
            backing.reserve(0..reserved)?;
            Ok::<_, Error>((Arc::new(mapping), backing))
        };
        let bytes = Self::sizes(&plan, &layout)?;
        let reserved = layout.bytes() * (plan.open_batches() + 1);
        let all = bytes[..3].iter().fold(reserved, |all, &bytes| all.saturating_add(bytes));
        Headroom::require("a vector environment", all)?;
        let (control, behind_control) = make("cartwheel-control", bytes[0], bytes[0])?;
        let (actions, behind_actions) = make("cartwheel-actions", bytes[1], bytes[1])?;
        let (infos, behind_infos) = make("cartwheel-infos", bytes[2], bytes[2])?;
        let (slabs, behind_slabs) = make("cartwheel-slabs", bytes[3], reserved)?;
        let mut memory = Self::assemble(plan, scope, layout, [control, actions, infos, slabs]);
        let backings = [behind_control, behind_actions, behind_infos, behind_slabs];
        memory
            .control
            .initialise(identity(&memory.plan, backings.each_ref().map(Backing::descriptor))?);
        memory.sharing = Some(Arc::new(Sharing { backings, slabs: Arc::clone(&memory.slabs) }));
        Ok(memory)
    }

    /// Maps, in a worker, the memory that [`Memory::new`] made from the same plan; `descriptors`
    /// are those of [`Memory::descriptors`], in their order.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when the memory was made by another version or from another plan, or the
    /// descriptors are not those of one memory in their order; or [`Error::Os`].
    pub fn attach(plan: Plan, descriptors: [OwnedFd; 4]) -> Result<Self, Error> {
        let layout = check(&plan)?;
        let sizes = Self::sizes(&plan, &layout)?;
        let identity = identity(&plan, descriptors.each_ref().map(Some))?;
        // Workers only read actions; everything else they write.
        let access = [Access::Write, Access::Read, Access::Write, Access::Write];
        let [control, actions, infos, slabs] = descriptors;
        let map = |descriptor, which: usize| {
            Mapping::attach(descriptor, sizes[which], access[which]).map(Arc::new)
        };
        let mappings = [map(control, 0)?, map(actions, 1)?, map(infos, 2)?, map(slabs, 3)?];
        let memory = Self::assemble(plan, Scope::Shared, layout, mappings);
        memory.control.verify(identity)?;
        Ok(memory)
    }

    /// Bytes of control words, actions, infos and slabs.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when one of them does not fit into the address space.
    fn sizes(plan: &Plan, layout: &Layout) -> Result<[usize; 4], Error> {
        let (rows, shards, slabs) = (plan.rows(), plan.shards.len(), plan.max_slabs);
        let mut all_slabs = Extent::default();
        let all_slabs = all_slabs.take(slabs, layout.bytes(), PAGE).map(|_| all_slabs.bytes(PAGE));
        Ok([
            Control::bytes(plan).ok_or_else(|| too_large("the control words", rows, &[]))?,
            ActionArea::bytes(&plan.actions, rows)
                .ok_or_else(|| too_large("the actions", rows, &plan.actions))?,
            InfoArea::bytes(plan)
                .ok_or_else(|| too_large(&format!("the infos of {shards} shards"), rows, &[]))?,
            all_slabs.ok_or_else(|| {
                too_large(&format!("{slabs} slabs"), plan.batch_size, &plan.observations)
            })?,
        ])
    }

    fn assemble(plan: Plan, scope: Scope, layout: Layout, mappings: [Arc<Mapping>; 4]) -> Self {
        let [control, actions, infos, slabs] = mappings;
        let plan = Arc::new(plan);
        Self {
            control: Control::new(control, Arc::clone(&plan)),
            actions: ActionArea::new(actions, &plan.actions, plan.rows()),
            infos: InfoArea::new(infos, Arc::clone(&plan)),
            slabs: Arc::new(SlabMemory::new(slabs, layout, plan.max_slabs)),
            plan,
            scope,
            sharing: None,
        }
    }

    /// The plan it was made from.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Who shares it, and so who waits on its words.
    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    /// Whether both are clones of one memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.plan, &other.plan)
    }

    /// The descriptors of shared memory, for a worker's [`Memory::attach`]; `None` for private memory
    /// and in workers.
    pub fn descriptors(&self) -> Option<[BorrowedFd<'_>; 4]> {
        let [control, actions, infos, slabs] = &self.sharing.as_ref()?.backings;
        Some([
            control.descriptor()?.as_fd(),
            actions.descriptor()?.as_fd(),
            infos.descriptor()?.as_fd(),
            slabs.descriptor()?.as_fd(),
        ])
    }

    /// Makes the memory of a further rollout of `steps` steps, all of it reserved, and a lease on it; with
    /// the descriptor that workers in other processes attach it by.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`], [`Error::OutOfMemory`] or [`Error::Os`].
    pub(crate) fn new_rollout(
        &self,
        pool: &SlabPool,
        steps: usize,
    ) -> Result<(RolloutLease, Backing), Error> {
        let batches = self.rollout_batches(steps)?;
        let bytes = Control::signed_bytes(&batches[0]);
        Headroom::require("a rollout", bytes)?;
        let (mapping, backing) = Mapping::new("cartwheel-rollout", bytes, self.scope)?;
        backing.reserve(0..bytes)?;
        let sent = backing.try_clone()?;
        let index = pool.unused_rollout().unwrap_or_else(|| self.slabs.next_rollout());
        self.control.sign(&mapping, index);
        let memory = Arc::new(RolloutMemory::new(mapping, batches, Some(backing)));
        let lease = pool.new_rollout(index, memory);
        self.slabs.add_rollout(index, Arc::clone(lease.memory()));
        Ok((lease, sent))
    }

    /// The rollouts that a new worker process has to attach: number, steps and a descriptor of each.
    ///
    /// # Errors
    ///
    /// [`Error::Os`] when no descriptor is left.
    pub fn rollouts(&self) -> Result<Vec<(usize, usize, OwnedFd)>, Error> {
        let mut shared = Vec::new();
        for (index, rollout) in self.slabs.all_rollouts() {
            if let Some(descriptor) = rollout.descriptor()? {
                shared.push((index, rollout.steps(), descriptor));
            }
        }
        Ok(shared)
    }

    /// Maps, in a worker process, rollout `index` of `steps` steps, before a task refers to it.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] where the memory was made, which knows its rollouts; [`Error::Mismatch`] when it is
    /// another rollout than that; or [`Error::Os`].
    pub fn attach_rollout(
        &self,
        index: usize,
        steps: usize,
        descriptor: OwnedFd,
    ) -> Result<(), Error> {
        if self.sharing.is_some() {
            return Err(Error::BadPlan("rollouts are attached by workers only".to_owned()));
        }
        let batches = self.rollout_batches(steps)?;
        let bytes = Control::signed_bytes(&batches[0]);
        let mapping = Mapping::attach(descriptor, bytes, Access::Write)?;
        self.control.verify_signed(&mapping, index)?;
        self.slabs.add_rollout(index, Arc::new(RolloutMemory::new(mapping, batches, None)));
        Ok(())
    }

    fn rollout_batches(&self, steps: usize) -> Result<Vec<Layout>, Error> {
        if !(1..=MOST_STEPS).contains(&steps) {
            let most = MOST_STEPS;
            return Err(Error::BadPlan(format!("a rollout has 1 to {most} steps, not {steps}")));
        }
        Layout::rollout(&self.plan.observations, self.plan.rows(), steps)
    }

    /// What stands behind the slabs; `None` in workers, which make none.
    pub(crate) fn slab_backing(&self) -> Option<&Backing> {
        let [.., slabs] = &self.sharing.as_ref()?.backings;
        Some(slabs)
    }

    /// What stands behind the memory, for as long as the pool has it; `None` in workers.
    pub fn sharing(&self) -> Option<&Arc<Sharing>> {
        self.sharing.as_ref()
    }
}

/// Most rows of a pool: so many places of open batches, fewer than twice the rows, are numbered in 32 bits.
const MOST_ROWS: usize = 1 << 31;
/// Most slabs of a pool: numbers from there on are those of rollouts.
const MOST_SLABS: usize = 1 << 31;

/// Checks a plan before anything is made from it.
fn check(plan: &Plan) -> Result<Layout, Error> {
    let mut next = 0;
    for shard in &plan.shards {
        if shard.start != next || shard.is_empty() {
            return Err(Error::BadPlan(format!("shards {:?} do not tile the rows", plan.shards)));
        }
        next = shard.end;
    }
    if !(1..=MOST_ROWS).contains(&next) {
        return Err(Error::BadPlan(format!("a pool has 1 to {MOST_ROWS} rows, not {next}")));
    }
    if !(1..=next).contains(&plan.batch_size) {
        let size = plan.batch_size;
        return Err(Error::BadPlan(format!("batch_size is {size}, must be 1 to {next}")));
    }
    let least = plan.open_batches() + 1;
    if plan.max_slabs < least {
        let got = plan.max_slabs;
        return Err(Error::BadPlan(format!("max_slabs is {got}, at least {least} needed")));
    }
    if plan.max_slabs > MOST_SLABS {
        let got = plan.max_slabs;
        return Err(Error::BadPlan(format!("max_slabs is {got}, at most {MOST_SLABS} possible")));
    }
    if plan.info_bytes > MOST_INFO_BYTES {
        let (got, most) = (plan.info_bytes, MOST_INFO_BYTES);
        return Err(Error::BadPlan(format!("info_bytes is {got}, at most {most} possible")));
    }
    Layout::new(&plan.observations, plan.batch_size)
}
