//! One task, as a shard sees it.
#![expect(unsafe_code, reason = "stores infos in mapped memory, see the invariants of the module")]

use std::ops::Range;

use crate::memory::{ActionRows, InfoArea, SlabRows};
use crate::protocol::Counters;
use crate::wake::Op;

/// One task, as a shard sees it.
#[derive(Debug)]
pub struct Task<'a> {
    /// The operation: [`Op::Step`], [`Op::Reset`] or [`Op::Call`].
    pub op: Op,
    /// The rows to do it to, counted from the first row of the pool: all rows of the shard, or some
    /// of them that were sent.
    pub rows: Range<usize>,
    /// The first row of the shard.
    pub first: usize,
    /// Flags that the pool's caller passes to the shards: [`FULL_RESET`](crate::FULL_RESET) for resets; those of steps
    /// have the meaning that the caller and the shards agree on.
    pub flags: u32,
    /// The rows' places in the batch, in order; only step and reset write them.
    pub slab: SlabRows<'a>,
    /// Their actions.
    pub actions: ActionRows<'a>,
    /// The counters of the shard's rows.
    pub counters: Counters<'a>,
    pub(super) infos: &'a InfoArea,
    /// The shard, and for sent rows the rows themselves: they determine where the infos go, even if
    /// the public fields above are changed.
    pub(super) shard: usize,
    pub(super) cells: Option<Range<usize>>,
    pub(super) info_bytes: usize,
}

impl Task<'_> {
    /// Whether the rows were sent.
    pub fn is_sent(&self) -> bool {
        self.cells.is_some()
    }

    /// The rows, counted from the first row of the shard.
    pub fn own_rows(&self) -> Range<usize> {
        self.rows.start - self.first..self.rows.end - self.first
    }

    /// Stores the rows' info stream; returns `false` when it does not fit and has to be sent in
    /// another way.
    pub fn store_infos(&mut self, stream: &[u8]) -> bool {
        // SAFETY: the shard and its cells are those of this task, which is not acknowledged or
        // counted as long as it exists (invariant 3).
        let stored = unsafe { self.infos.store(self.shard, self.cells.as_ref(), stream) };
        self.info_bytes = if stored { stream.len() } else { 0 };
        stored
    }
}
