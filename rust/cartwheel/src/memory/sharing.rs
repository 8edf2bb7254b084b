//! The memory that a pool shares, in the process that made it.

use std::sync::Arc;

use super::mapping::Backing;
use super::slab::SlabMemory;
use crate::error::Error;

/// The descriptors and rollouts of a pool's memory, in the process that made it.
#[derive(Debug)]
pub struct Sharing {
    /// Of the control words, actions, infos and slabs.
    pub(crate) backings: [Backing; 4],
    pub(crate) slabs: Arc<SlabMemory>,
}

impl Sharing {
    /// Makes slabs and rollouts that this process shows private to it, with their contents. Workers
    /// write no more batches for this process after that.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] or [`Error::Os`] for the first mapping that stays shared.
    pub fn part(&self) -> Result<(), Error> {
        let [.., slabs] = &self.backings;
        self.slabs.part(slabs)
    }
}
