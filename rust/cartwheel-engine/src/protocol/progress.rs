//! A worker's progress with the first rows of its queue; the pool reads it when a worker died.
//!
//! ```text
//! waiting ──▶ claiming ──places drawn──▶ claimed ──rows written──▶ leaving ──rows counted──▶ waiting
//! ```
//!
//! Each note is written before the step that it announces begins, and names the places that the
//! step is about. So the pool knows of which places a dead worker may have drawn or counted the
//! rows, and in `claiming` and `leaving` only does not know whether the worker did it:
//! `settling.rs` finds out.
//!
//! `leaving` is not noted: `claimed` becomes `leaving` when the rows leave the queue. The end of
//! the queue turns with every removal, and `claimed` notes the turn before it.
//!
//! All stores are `Release`, so that the compiler does not move one before another. They pair with
//! the `Acquire` in [`Notes::progress`]: a pool that reads a note finds what the worker did before.
//! A thread of a crew writes notes too, although they are never read: threads do not die alone.

use crate::sync::{AtomicU64, Ordering};

const WAITING: u64 = 0;
const CLAIMING: u64 = 1;
/// The first of two stages, one for each turn.
const CLAIMED: u64 = 2;
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

/// Neighbouring places, counted through the ring of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) count: u32,
}

/// What a worker is doing with the first rows of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing.
    Waiting,
    /// They may have these places.
    Claiming(Run),
    /// The rows have these places, which were not counted, as long as the queue is at this turn.
    /// After it, the rows have left the queue, and may have been counted.
    Claimed(Run, bool),
}

/// The word of the notes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Notes(AtomicU64);

impl Notes {
    /// The first rows of the queue are about to draw these places.
    pub(super) fn note_claiming(&self, run: Run) {
        self.note(CLAIMING, run);
    }

    /// The first rows of the queue, which is at this turn, have these places.
    pub(super) fn note_claimed(&self, run: Run, turn: bool) {
        self.note(CLAIMED + u64::from(turn), run);
    }

    fn note(&self, stage: u64, Run { first, count }: Run) {
        debug_assert!(count <= MOST_TAKEN, "no more are taken");
        let note = stage | u64::from(count) << STAGE_BITS | u64::from(first) << u32::BITS;
        self.0.store(note, Ordering::Release);
    }

    /// The rows were counted; or the pool clears what a dead worker left.
    pub(super) fn clear(&self) {
        self.0.store(WAITING, Ordering::Release);
    }

    /// What the worker has noted.
    pub(super) fn progress(&self) -> Progress {
        let note = self.0.load(Ordering::Acquire);
        let run =
            Run { first: low(note >> u32::BITS), count: low(note >> STAGE_BITS) & MOST_TAKEN };
        match note & ((1 << STAGE_BITS) - 1) {
            WAITING => Progress::Waiting,
            CLAIMING => Progress::Claiming(run),
            stage => Progress::Claimed(run, stage != CLAIMED),
        }
    }
}
