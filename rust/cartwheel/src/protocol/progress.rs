//! A worker's progress with the first rows of its queue; the pool reads it when the worker died.
//!
//! ```text
//! waiting ──▶ claiming ──places known──▶ claimed ──rows written──▶ counting ──▶ waiting
//! ```
//!
//! Rows stay in the queue until `counting`, so the pool finds every row there that was not counted.
//! Each note is written before the step that it announces begins. So the pool, which reads the note
//! only after the worker's death, knows what the dead worker may have done. In `waiting` no row has
//! a place, except for places that the pool dealt; in `claimed` the first rows have places that
//! were not counted. In `claiming` and `counting` the pool cannot know whether the one instruction
//! that matters was carried out.
//!
//! All stores are `Release`, so that the compiler does not move one before another; the death
//! itself orders them before the pool's loads. A thread of a crew writes notes too, although they
//! are never read: threads do not die alone.

use crate::sync::{AtomicU64, Ordering};

const WAITING: u64 = 0;
const CLAIMING: u64 = 1;
const CLAIMED: u64 = 2;
const COUNTING: u64 = 3;
const STAGE_BITS: u32 = 2;
/// The number of places is kept above the stage, and the first place above it.
const COUNT_BITS: u32 = u32::BITS - STAGE_BITS;
/// Maximum number of rows that a worker takes at once, so that their number fits in a note.
pub(super) const MOST_TAKEN: u32 = (1 << COUNT_BITS) - 1;

/// The lower half of a word.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is the result")]
pub(super) const fn low(word: u64) -> u32 {
    word as u32
}

/// What a worker had done to the first rows of its queue when it died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing.
    Waiting,
    /// The first `count` rows have places that were not counted as filled, starting at place
    /// `first` of the ring of batches.
    Claimed { first: u32, count: u32 },
    /// The worker had claimed or counted places, or was about to.
    Unknown,
}

/// The word of the notes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Notes(AtomicU64);

impl Notes {
    /// The first rows of the queue are about to claim places.
    pub(super) fn note_claiming(&self) {
        self.0.store(CLAIMING, Ordering::Release);
    }

    /// The first `count` rows have places, starting at place `first` of the ring of open batches.
    pub(super) fn note_claimed(&self, first: u32, count: u32) {
        debug_assert!(count <= MOST_TAKEN, "no more are taken");
        let note = CLAIMED | u64::from(count) << STAGE_BITS | u64::from(first) << u32::BITS;
        self.0.store(note, Ordering::Release);
    }

    /// The rows are written, and about to leave the queue and to be counted.
    pub(super) fn note_counting(&self) {
        self.0.store(COUNTING, Ordering::Release);
    }

    /// The rows were counted; or the pool clears what a dead worker left.
    pub(super) fn clear(&self) {
        self.0.store(WAITING, Ordering::Release);
    }

    /// What a dead worker had done.
    pub(super) fn progress(&self) -> Progress {
        let note = self.0.load(Ordering::Acquire);
        match note & ((1 << STAGE_BITS) - 1) {
            WAITING => Progress::Waiting,
            CLAIMED => {
                let count = low(note >> STAGE_BITS) & MOST_TAKEN;
                Progress::Claimed { first: low(note >> u32::BITS), count }
            }
            _ => Progress::Unknown,
        }
    }
}
