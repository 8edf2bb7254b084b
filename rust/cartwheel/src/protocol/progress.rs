//! What a worker has in its hands of the rows that were sent: read by the pool when it died.
//!
//! ```text
//! nothing ──taken from the queue──▶ taken ──▶ claiming ──place known──▶ claimed ──row written──▶ counting ──▶ nothing
//! ```
//!
//! Each note is written before what it announces begins, so the pool, who reads them only after the
//! worker's death, knows what the dead one may have done: in `taken` the row has no place, or the one that it
//! was given by the pool; in `claimed` it has a place that nobody has counted. In `claiming` and `counting`
//! the pool cannot know whether the one instruction that matters was carried out.
//!
//! All stores are `Release`, so that the compiler does not move one before another; the death itself orders
//! them before the pool's loads. A thread of a crew writes notes too, for nobody: threads do not die alone.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const NOTHING: u64 = 0;
const TAKEN: u64 = 1;
const CLAIMING: u64 = 2;
const CLAIMED: u64 = 3;
const COUNTING: u64 = 4;
/// The place, or [`NO_PLACE`], is kept above the stage.
const STAGE_BITS: u32 = 3;
const NO_PLACE: u64 = u32::MAX as u64;

/// What a worker had in its hands when it died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InHand {
    /// No row.
    Nothing,
    /// A row, with its place in the ring of batches if it had one.
    Row(u32, Option<u32>),
    /// A row whose place cannot be told.
    Unknown,
}

/// The word for a stage and a place.
fn note(stage: u64, place: Option<u32>) -> u64 {
    stage | place.map_or(NO_PLACE, u64::from) << STAGE_BITS
}

/// The words of the notes.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Notes {
    /// The row that was sent and is in the worker's hands.
    row: AtomicU32,
    /// Stage and place of it.
    progress: AtomicU64,
}

impl Notes {
    /// A row is about to leave the queue, with its place if it was given one.
    pub(super) fn note_taken(&self, row: u32, place: Option<u32>) {
        self.row.store(row, Ordering::Release);
        self.progress.store(note(TAKEN, place), Ordering::Release);
    }

    /// The row is about to claim a place.
    pub(crate) fn note_claiming(&self) {
        self.progress.store(CLAIMING, Ordering::Release);
    }

    /// The row has this place, counted through the ring of open batches.
    pub(crate) fn note_claimed(&self, place: u32) {
        self.progress.store(note(CLAIMED, Some(place)), Ordering::Release);
    }

    /// The row is written and about to be counted.
    pub(crate) fn note_counting(&self) {
        self.progress.store(COUNTING, Ordering::Release);
    }

    /// The row was counted.
    pub(crate) fn note_counted(&self) {
        self.progress.store(NOTHING, Ordering::Release);
    }

    /// Forgets what a dead worker had in its hands.
    pub(super) fn forget(&self) {
        self.progress.store(NOTHING, Ordering::Release);
    }

    /// What a dead worker had in its hands.
    pub(super) fn in_hand(&self) -> InHand {
        let (row, progress) =
            (self.row.load(Ordering::Acquire), self.progress.load(Ordering::Acquire));
        let place = progress >> STAGE_BITS;
        let place = u32::try_from(place).ok().filter(|&place| u64::from(place) != NO_PLACE);
        match progress & ((1 << STAGE_BITS) - 1) {
            NOTHING => InHand::Nothing,
            TAKEN | CLAIMED => InHand::Row(row, place),
            _ => InHand::Unknown,
        }
    }
}
