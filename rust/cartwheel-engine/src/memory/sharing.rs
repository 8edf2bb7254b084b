//! The memory that a pool shares, in the process that made it.
#![expect(unsafe_code, reason = "makes mapped memory private, see the invariants")]

use std::sync::Arc;

use super::mapping::Backing;
use super::slab::SlabMemory;
use crate::error::Error;
use crate::platform::{MAKES_PRIVATE_AT_ONCE, process_id};

/// The descriptors and rollouts of a pool's memory, in the process that made it.
#[derive(Debug)]
pub struct Sharing {
    /// Of the control words, actions, infos and slabs.
    pub(crate) backings: [Backing; 4],
    pub(crate) slabs: Arc<SlabMemory>,
    /// The process that made the memory.
    owner: u32,
}

impl Sharing {
    pub(crate) fn new(backings: [Backing; 4], slabs: Arc<SlabMemory>) -> Self {
        Self { backings, slabs, owner: process_id() }
    }

    /// Makes slabs and rollouts private to a forked child, with their contents; later writes of the
    /// workers stay with the parent. Does nothing in the process that made the memory.
    ///
    /// A forked child calls it before it starts threads: until it returns, they might read zeros.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] or [`Error::Os`] for the first mapping that stays shared.
    pub fn make_private(&self) -> Result<(), Error> {
        if self.owner == process_id() {
            return Ok(());
        }
        // SAFETY: a pool refuses every call in a forked child, so nothing waits there for what
        // workers write (invariant 8).
        unsafe { self.make_private_now() }
    }

    /// Makes slabs and rollouts private to this process when its pool ends, so that arrays which
    /// outlive the pool are not shared with children that are forked later. Closes the descriptors of
    /// rollouts, which these arrays would keep.
    ///
    /// Where there is no memory for the copy, or other threads would notice, they stay shared.
    ///
    /// # Safety
    ///
    /// This process waits for nothing that a worker writes (invariant 8).
    pub(crate) unsafe fn make_private_at_the_end(&self) {
        if MAKES_PRIVATE_AT_ONCE {
            // SAFETY: as the caller promises.
            let _ = unsafe { self.make_private_now() };
        } else {
            self.slabs.all_rollouts().iter().for_each(|(_, rollout)| rollout.close());
        }
        self.slabs.forget_rollouts();
    }

    /// As [`Sharing::make_private`], in any process.
    ///
    /// # Safety
    ///
    /// This process waits for nothing that a worker writes (invariant 8).
    unsafe fn make_private_now(&self) -> Result<(), Error> {
        let [.., slabs] = &self.backings;
        // SAFETY: as the caller promises.
        unsafe { self.slabs.make_private(slabs) }
    }
}
