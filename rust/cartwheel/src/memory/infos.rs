//! The infos of one batch, on their way from the workers to the pool: one region per shard.
#![expect(unsafe_code, reason = "copies into and out of mapped memory, see the invariants")]

use std::sync::Arc;

use super::{Mapping, Plan};
use crate::space::{LEAF_ALIGN, PAGE};

/// The info mapping; cheap to clone.
#[derive(Debug, Clone)]
pub struct InfoArea {
    mapping: Arc<Mapping>,
    region: usize,
    shards: usize,
}

impl InfoArea {
    fn region(plan: &Plan) -> usize {
        plan.info_bytes.max(LEAF_ALIGN).next_multiple_of(PAGE)
    }

    pub(super) fn bytes(plan: &Plan) -> usize {
        Self::region(plan) * plan.shards.len()
    }

    pub(super) fn new(mapping: Arc<Mapping>, plan: &Plan) -> Self {
        Self { mapping, region: Self::region(plan), shards: plan.shards.len() }
    }

    /// Stores the infos of shard `shard`; `false`, and nothing stored, when they do not fit.
    ///
    /// Only that shard's worker calls this, between taking a task and acknowledging it.
    pub(crate) fn store(&self, shard: usize, stream: &[u8]) -> bool {
        assert!(shard < self.shards, "there is no shard {shard}");
        if stream.len() > self.region {
            return false;
        }
        // SAFETY: the region is this worker's until it acknowledges (invariant 6).
        unsafe { self.mapping.write(shard * self.region, stream) }
        true
    }

    /// Copies the `bytes` bytes of infos of shard `shard` into `into`, in place of what it held.
    ///
    /// Only the pool calls this, after that shard's acknowledgement. A length that no honest
    /// worker gives is cut to the region.
    pub(crate) fn load(&self, shard: usize, bytes: usize, into: &mut Vec<u8>) {
        assert!(shard < self.shards, "there is no shard {shard}");
        into.clear();
        into.resize(bytes.min(self.region), 0);
        // SAFETY: the worker has acknowledged and writes no more (invariant 6).
        unsafe { self.mapping.read(shard * self.region, into) }
    }
}
