//! The infos of one batch, which the workers pass to the pool: one region for each shard. In a task
//! the whole shard uses the region; rows that are sent on their own each have an equal cell of it.
#![expect(unsafe_code, reason = "copies into and out of mapped memory, see the invariants")]

use std::ops::Range;
use std::sync::Arc;

use super::mapping::Mapping;
use super::plan::Plan;
use crate::space::{Extent, LEAF_ALIGN, PAGE};

/// The info mapping; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct InfoArea {
    mapping: Arc<Mapping>,
    plan: Arc<Plan>,
    region: usize,
}

impl InfoArea {
    fn region(plan: &Plan) -> usize {
        plan.info_bytes.max(LEAF_ALIGN).next_multiple_of(PAGE)
    }

    /// Bytes of all regions; `None` when they do not fit into the address space.
    pub(crate) fn bytes(plan: &Plan) -> Option<usize> {
        let mut extent = Extent::default();
        extent.take(plan.shards.len(), Self::region(plan), PAGE)?;
        Some(extent.bytes(PAGE))
    }

    pub(crate) fn new(mapping: Arc<Mapping>, plan: Arc<Plan>) -> Self {
        Self { mapping, region: Self::region(&plan), plan }
    }

    /// The region of shard `shard`, or the cells of `rows` in it, counted from the first row of the
    /// pool.
    fn room(&self, shard: usize, rows: Option<&Range<usize>>) -> Range<usize> {
        let start = shard * self.region;
        let all = &self.plan.shards[shard];
        let Some(rows) = rows else { return start..start + self.region };
        assert!(rows.start >= all.start && rows.end <= all.end, "{rows:?} are in shard {shard}");
        let cell = self.region / all.len();
        start + cell * (rows.start - all.start)..start + cell * (rows.end - all.start)
    }

    /// Stores the infos of shard `shard`, or of some of its rows; returns `false`, and stores
    /// nothing, when they do not fit.
    ///
    /// # Safety
    ///
    /// The caller is that shard's worker, between taking a task and acknowledging it, or before it
    /// counts the places of those rows as filled (invariant 6).
    pub(crate) unsafe fn store(
        &self,
        shard: usize,
        rows: Option<&Range<usize>>,
        stream: &[u8],
    ) -> bool {
        let room = self.room(shard, rows);
        if stream.len() > room.len() {
            return false;
        }
        // SAFETY: only this worker accesses the region or the cells now (invariant 6).
        unsafe { self.mapping.write(room.start, stream) }
        true
    }

    /// Copies `bytes` bytes of infos into `into`, replacing its contents: those of shard `shard`,
    /// or those that begin in the cell of row `row` of the shard.
    ///
    /// A length that is too large, which only a corrupt worker writes, is cut to the region.
    ///
    /// # Safety
    ///
    /// That shard's worker has acknowledged its task, or the rows were received, and neither a task
    /// nor these rows were given to it since (invariant 6).
    pub(crate) unsafe fn load(
        &self,
        shard: usize,
        row: Option<usize>,
        bytes: usize,
        into: &mut Vec<u8>,
    ) {
        let region = self.room(shard, None);
        let start = row.map_or(region.start, |row| self.room(shard, Some(&(row..row + 1))).start);
        into.clear();
        into.resize(bytes.min(region.end - start), 0);
        // SAFETY: the worker has finished and no longer writes there (invariant 6).
        unsafe { self.mapping.read(start, into) }
    }

    /// Whether `bytes` bytes of infos fit into the cells of these rows of shard `shard`.
    pub(crate) fn fit(&self, shard: usize, rows: &Range<usize>, bytes: usize) -> bool {
        bytes <= self.room(shard, Some(rows)).len()
    }

    /// The rows of shard `shard` whose cells hold `bytes` bytes that begin in the cell of row
    /// `row`.
    pub(crate) fn rows_of(&self, shard: usize, row: usize, bytes: usize) -> Range<usize> {
        let all = &self.plan.shards[shard];
        let cell = (self.region / all.len()).max(1);
        row..row.saturating_add(bytes.div_ceil(cell).max(1)).min(all.end)
    }
}

/// Location of the infos of a row that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfosAt {
    /// They begin in the row's cell and have this many bytes; they include the infos of the rows
    /// after it.
    Memory(u32),
    /// They follow through the shard's own channel.
    Channel,
}

impl InfosAt {
    const SPILLED: u32 = u32::MAX;

    pub(crate) fn to_word(self) -> u32 {
        match self {
            Self::Memory(bytes) => bytes,
            Self::Channel => Self::SPILLED,
        }
    }

    pub(crate) fn from_word(word: u32) -> Self {
        if word == Self::SPILLED { Self::Channel } else { Self::Memory(word) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::Scope;

    #[test]
    fn infos_end_with_the_region_of_their_shard_however_long_a_worker_says_they_are() {
        let plan = Arc::new(Plan { info_bytes: PAGE, ..Plan::new(vec![0..2, 2..4]) });
        let bytes = InfoArea::bytes(&plan).expect("two pages");
        let (mapping, _) = Mapping::new("cartwheel-test", bytes, Scope::Private).expect("memory");
        let infos = InfoArea::new(Arc::new(mapping), plan);
        for (row, expected) in [(None, PAGE), (Some(1), PAGE / 2)] {
            let mut stream = Vec::new();
            // SAFETY: there is no worker (invariant 6).
            unsafe { infos.load(0, row, PAGE + 1, &mut stream) }
            assert_eq!(stream.len(), expected);
        }
    }
}
