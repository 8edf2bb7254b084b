//! The memory of a pool: control words, actions, infos and slabs, made from one plan.
//!
//! # Invariants
//!
//! 1. The descriptors of a memory reach nothing but [`WorkerToken::attach`](super::WorkerToken::attach) and
//!    [`Memory::attach_rollout`] in worker processes, so all that maps the memory is this code, with
//!    the same plan.
#![expect(unsafe_code, reason = "shares mapped memory with other processes, see the invariants")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::control::Control;
use crate::error::Error;
use crate::memory::{
    ActionArea, Backing, InfoArea, MAX_STEPS, Mapping, MemoryLimit, Plan, RolloutLease,
    RolloutMemory, Sharing, SlabMemory, SlabPool, check,
};
use crate::platform::{Access, look_at};
use crate::space::{Extent, Layout, PAGE, RolloutLayout, TooLarge};
use crate::wake::{Futex, Scope, Sleeper, TaskWord, publish_all};

/// The four mappings of a pool; cheap to clone, because a view steps nothing: see
/// [`Tokens`](super::Tokens).
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
    pub(crate) slabs: Arc<SlabMemory>,
    /// The descriptors and rollouts, where the memory was made.
    sharing: Option<Arc<Sharing>>,
}

impl Memory {
    /// Makes the memory for `plan`: see [`Memory::new`].
    pub(super) fn make(plan: Plan, scope: Scope) -> Result<Self, Error> {
        let layout = check(&plan)?;
        let make = |name: &'static str, bytes: usize, reserved: usize| {
            let (mapping, backing) = Mapping::new(name, bytes, scope)?;
            backing.reserve(0..reserved)?;
            Ok::<_, Error>((Arc::new(mapping), backing))
        };
        let bytes = Self::sizes(&plan, &layout)?;
        let reserved = layout.bytes() * (plan.open_batches() + 1);
        let all = bytes[..3].iter().fold(reserved, |all, &bytes| all.saturating_add(bytes));
        MemoryLimit::require("a vector environment", all)?;
        let (control, behind_control) = make("cartwheel-control", bytes[0], bytes[0])?;
        let (actions, behind_actions) = make("cartwheel-actions", bytes[1], bytes[1])?;
        let (infos, behind_infos) = make("cartwheel-infos", bytes[2], bytes[2])?;
        let (slabs, behind_slabs) = make("cartwheel-slabs", bytes[3], reserved)?;
        let mut memory = Self::assemble(plan, scope, layout, [control, actions, infos, slabs]);
        let backings = [behind_control, behind_actions, behind_infos, behind_slabs];
        memory
            .control
            .initialize(identity(&memory.plan, backings.each_ref().map(Backing::descriptor))?);
        memory.sharing = Some(Arc::new(Sharing::new(backings, Arc::clone(&memory.slabs))));
        Ok(memory)
    }

    /// Maps the memory that another process made: see
    /// [`WorkerToken::attach`](super::WorkerToken::attach).
    ///
    /// # Safety
    ///
    /// The descriptors come from [`Memory::descriptors`], so that nothing but a pool and its workers
    /// accesses the memory (invariant 1).
    pub(super) unsafe fn attach(plan: Plan, descriptors: [OwnedFd; 4]) -> Result<Self, Error> {
        let layout = check(&plan)?;
        let sizes = Self::sizes(&plan, &layout)?;
        let identity = identity(&plan, descriptors.each_ref().map(Some))?;
        // Workers only read actions; they write everything else.
        let access = [Access::Write, Access::Read, Access::Write, Access::Write];
        let [control, actions, infos, slabs] = descriptors;
        let map = |descriptor, which: usize| {
            // SAFETY: only this code maps the memory (invariant 1).
            unsafe { Mapping::attach(descriptor, sizes[which], access[which]) }.map(Arc::new)
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
            Control::bytes(plan).ok_or_else(|| TooLarge::new("the control words", rows, &[]))?,
            ActionArea::bytes(&plan.actions, rows)
                .ok_or_else(|| TooLarge::new("the actions", rows, &plan.actions))?,
            InfoArea::bytes(plan).ok_or_else(|| {
                TooLarge::new(&format!("the infos of {shards} shards"), rows, &[])
            })?,
            all_slabs.ok_or_else(|| {
                TooLarge::new(&format!("{slabs} slabs"), plan.batch_size, &plan.observations)
            })?,
        ])
    }

    fn assemble(plan: Plan, scope: Scope, layout: Layout, mappings: [Arc<Mapping>; 4]) -> Self {
        let [control, actions, infos, slabs] = mappings;
        let plan = Arc::new(plan);
        Self {
            control: Control::new(control, Arc::clone(&plan), scope),
            actions: ActionArea::new(actions, &plan.actions, plan.rows()),
            infos: InfoArea::new(infos, Arc::clone(&plan)),
            slabs: Arc::new(SlabMemory::new(slabs, layout, plan.max_slabs)),
            plan,
            scope,
            sharing: None,
        }
    }

    /// The plan from which the memory was made.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Processes that share it, and so may wait on its words.
    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    /// The sleeper of worker `worker`, which waits for task words.
    pub(crate) fn sleeper(&self, worker: usize) -> Sleeper<Futex<'_>, Futex<'_>> {
        let (control, scope) = (&self.control, self.scope);
        let word = Futex::new(&control.slot(worker).word, scope);
        Sleeper::new(worker, word, Futex::new(control.event_count(worker), scope))
    }

    /// The doorbell, on which the pool waits.
    pub(crate) fn doorbell(&self) -> Futex<'_> {
        Futex::new(&self.control.header().doorbell, self.scope)
    }

    /// Hands `task_word` to these workers, in the order of their numbers, and wakes those that sleep.
    pub(crate) fn publish(&self, workers: impl IntoIterator<Item = usize>, task_word: TaskWord) {
        publish_all(workers.into_iter().map(|worker| self.sleeper(worker)), task_word);
    }

    /// Whether both are clones of one memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.plan, &other.plan)
    }

    /// The descriptors of shared memory, for [`WorkerToken::attach`](super::WorkerToken::attach); `None` for private memory and in
    /// workers.
    ///
    /// # Safety
    ///
    /// They are only passed to [`WorkerToken::attach`](super::WorkerToken::attach), in worker processes of the pool that this
    /// memory has or will have. No other code may read, write or map them (invariant 1).
    pub unsafe fn descriptors(&self) -> Option<[BorrowedFd<'_>; 4]> {
        let [control, actions, infos, slabs] = &self.sharing.as_ref()?.backings;
        Some([
            control.descriptor()?.as_fd(),
            actions.descriptor()?.as_fd(),
            infos.descriptor()?.as_fd(),
            slabs.descriptor()?.as_fd(),
        ])
    }

    /// Makes the memory of another rollout of `steps` steps, all of it reserved. Returns a lease on
    /// it, and the descriptor with which workers in other processes attach it. Free rollouts make
    /// room for it where there are many of them, or where memory is short.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`], [`Error::OutOfMemory`] or [`Error::Os`].
    pub(crate) fn new_rollout(
        &self,
        pool: &SlabPool,
        steps: usize,
    ) -> Result<(RolloutLease, Backing), Error> {
        let layout = self.rollout_layout(steps)?;
        let bytes = Control::signed_bytes(&layout);
        pool.make_room_for_rollout()?;
        let (mapping, backing) = loop {
            match self.reserve_rollout(bytes) {
                Err(Error::OutOfMemory { .. }) if pool.discard_rollout() => {}
                made => break made?,
            }
        };
        let sent = backing.try_clone()?;
        let index = pool.unused_rollout().unwrap_or_else(|| self.slabs.next_rollout());
        self.control.sign(&mapping, index);
        let memory = Arc::new(RolloutMemory::new(mapping, layout, Some(backing)));
        let lease = pool.new_rollout(index, memory);
        self.slabs.add_rollout(index, Arc::clone(lease.memory()));
        Ok((lease, sent))
    }

    fn reserve_rollout(&self, bytes: usize) -> Result<(Mapping, Backing), Error> {
        MemoryLimit::require("a rollout", bytes)?;
        let (mapping, backing) = Mapping::new("cartwheel-rollout", bytes, self.scope)?;
        backing.reserve(0..bytes)?;
        Ok((mapping, backing))
    }

    /// The rollouts that a new worker process has to attach: number, steps and descriptor of each.
    ///
    /// # Safety
    ///
    /// As for [`Memory::descriptors`], for [`Memory::attach_rollout`].
    ///
    /// # Errors
    ///
    /// [`Error::Os`] when no descriptor is left.
    pub unsafe fn rollouts(&self) -> Result<Vec<(usize, usize, OwnedFd)>, Error> {
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
    /// # Safety
    ///
    /// The descriptor comes from [`Memory::rollouts`] or
    /// [`Recorded::into_parts`](crate::pool::Recorded::into_parts) (invariant 1).
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] in the process that made the memory, which knows its rollouts;
    /// [`Error::Mismatch`] when the mapping is another rollout; or [`Error::Os`].
    pub unsafe fn attach_rollout(
        &self,
        index: usize,
        steps: usize,
        descriptor: OwnedFd,
    ) -> Result<(), Error> {
        if self.sharing.is_some() {
            return Err(Error::BadPlan("rollouts are attached by workers only".to_owned()));
        }
        let layout = self.rollout_layout(steps)?;
        let bytes = Control::signed_bytes(&layout);
        // SAFETY: only this code maps the memory (invariant 1).
        let mapping = unsafe { Mapping::attach(descriptor, bytes, Access::Write) }?;
        self.control.verify_signed(&mapping, index)?;
        self.slabs.add_rollout(index, Arc::new(RolloutMemory::new(mapping, layout, None)));
        Ok(())
    }

    fn rollout_layout(&self, steps: usize) -> Result<RolloutLayout, Error> {
        if !(1..=MAX_STEPS).contains(&steps) {
            let max = MAX_STEPS;
            return Err(Error::BadPlan(format!("a rollout has 1 to {max} steps, not {steps}")));
        }
        let Plan { observations, dense_finals, reward_width, .. } = &*self.plan;
        let rows = self.plan.rows();
        Ok(RolloutLayout::new(observations, rows, steps, *dense_finals, *reward_width)?)
    }

    /// The memory behind the slabs; `None` in workers, which make no slabs.
    pub(crate) fn slab_backing(&self) -> Option<&Backing> {
        let [.., slabs] = &self.sharing.as_ref()?.backings;
        Some(slabs)
    }

    /// The descriptors and rollouts, as long as the pool keeps them; `None` in workers.
    pub fn sharing(&self) -> Option<&Arc<Sharing>> {
        self.sharing.as_ref()
    }
}

/// A number that identifies a memory, by the files behind it, and its plan. With another memory, or
/// another plan of the same size, two workers might write the same rows. Where files have no numbers (macOS),
/// the plan alone is compared.
fn identity(plan: &Plan, files: [Option<&OwnedFd>; 4]) -> Result<u32, Error> {
    // The hash is the same in all processes that run this code; nothing more is needed.
    let mut hasher = DefaultHasher::new();
    plan.hash(&mut hasher);
    for file in files.into_iter().flatten() {
        let (_, number) = look_at(file).map_err(Error::os("looking at a memory's file"))?;
        number.hash(&mut hasher);
    }
    Ok(u32::try_from(hasher.finish() >> 32).expect("the upper half"))
}
