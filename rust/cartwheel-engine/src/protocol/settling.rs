//! What a dead worker left to be done, whichever access to a word was its last one.
//!
//! Two instructions leave a doubt: the exchange of the ticket in `claiming`, and the addition to
//! `filled` in `leaving` (`progress.rs`). The note names the places, and the words of their batch
//! say whether the instruction was carried out. For each batch,
//!
//! ```text
//! places drawn = places counted + places of rows that are not counted
//! ```
//!
//! The last ones are known for every worker that is not in doubt. So the places that are missing on
//! the right side are those of the doubt:
//!
//! | doubt | places are missing | none is missing |
//! |---|---|---|
//! | claim | the first rows of the dead worker have these places | its rows have no places |
//! | count | its rows are written and not counted: the pool counts them | they were counted |
//!
//! Where the pool deals places, those dealt take the part of those drawn. If the batch was received
//! before the death was noticed, the places in the ring belong to a later batch. No place of the
//! dead worker is missing there, and the answer is right: the places were counted, or drawn by
//! another worker.
//!
//! # Living workers
//!
//! Living workers go on meanwhile. So the pool looks at all workers, reads the words of the batch,
//! and looks at all workers again. If both looks are equal, and no living worker is in doubt, the
//! words are those of one moment:
//!
//! * What a worker did before the first look is in the words, by the `Acquire` of the look.
//! * If the words contain what a worker did after the first look, then the second look finds the
//!   note that the worker made before, by the `Acquire` of the words, or fewer rows in its queue.
//!
//! A look reads the end of the queue, the note, and the end again. The first read makes sure that
//! the note is not older than the end, and the last one that the end is not older than the note.
//!
//! If the looks differ, or a living worker is in doubt, the pool tries again later. It hands out no
//! rows until then, so no rows are sent, and the workers come to rest.
//!
//! # Several dead workers
//!
//! Counts of several dead workers in one batch are completed one after the other. It does not
//! matter which of them are missing, since all rows are written. If one of the doubts is a claim,
//! and some but not all places are missing, the workers cannot be told apart.

use super::arrivals::OpenBatches;
use super::progress::{Progress, Run};
use super::queue::{Work, WorkQueue, turn};

/// What a worker would leave if it died now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    /// The rows that were not counted, without those in doubt; one `Work` for each row.
    pub(super) work: Vec<Work>,
    pub(super) doubt: Option<Doubt>,
}

impl Left {
    /// Known work of a worker that died before.
    pub(crate) fn known(work: Vec<Work>) -> Self {
        Self { work, doubt: None }
    }

    /// Whether it is unknown what the worker did last.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }
}

/// A step of a worker that it may or may not have made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It drew these places for its first rows.
    Claim(Run),
    /// It counted the rows in these places, which have left its queue.
    Count(Run),
}

impl Doubt {
    fn run(self) -> Run {
        match self {
            Self::Claim(run) | Self::Count(run) => run,
        }
    }
}

impl WorkQueue<'_> {
    /// What the worker would leave if it died now; `None` if rows leave the queue meanwhile.
    pub(crate) fn left(&self) -> Option<Left> {
        let taken = self.taken();
        let progress = self.notes.progress();
        if self.taken() != taken {
            return None;
        }
        let mut work = self.work(taken);
        let doubt = match progress {
            Progress::Waiting => None,
            Progress::Claiming(run) => Some(Doubt::Claim(run)),
            Progress::Claimed(run, before) if before == turn(taken) => {
                run.give(&mut work);
                None
            }
            Progress::Claimed(run, _) => Some(Doubt::Count(run)),
        };
        Some(Left { work, doubt })
    }
}

impl Run {
    /// Gives these places to the first rows.
    pub(super) fn give(self, work: &mut [Work]) {
        for (nth, work) in (0..self.count).zip(work) {
            work.place = Some(self.first.wrapping_add(nth));
        }
    }
}

/// The result of [`Settling::settle`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The rows that were not counted, one `Work` for each row, with the places that they have.
    Left(Vec<Work>),
    /// Living workers are claiming or counting: try again.
    Later,
    /// Several workers died in doubt about the same batch, and cannot be told apart.
    Never,
}

/// What the pool knows about the open batches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settling<'a> {
    pub(crate) batches: OpenBatches<'a>,
    /// Number of the batch that is received next.
    pub(crate) next: u64,
    /// Number of places that the pool dealt; `None` where workers draw them.
    pub(crate) dealt: Option<u32>,
}

impl Settling<'_> {
    /// Finds out what worker `dead` of `workers` left. `look` returns what a worker would leave,
    /// or `None` for a living one that is in doubt.
    pub(crate) fn settle(
        &self,
        dead: usize,
        workers: usize,
        look: impl Fn(usize) -> Option<Left>,
    ) -> Settled {
        let Some(Left { work, doubt, .. }) = look(dead) else { return Settled::Later };
        let Some(doubt) = doubt else { return Settled::Left(work) };
        let look_at_all = || (0..workers).map(&look).collect::<Option<Vec<_>>>();
        let Some(mut all) = look_at_all() else { return Settled::Later };
        let at = self.batches.batch_of(doubt.run().first);
        let drawn = self.dealt.unwrap_or_else(|| self.batches.drawn(at, self.next));
        let counted = self.batches.counted(at);
        if look_at_all().is_none_or(|again| again != all) {
            return Settled::Later;
        }
        let is_here = |place: u32| self.batches.batch_of(place) == at;
        let places = all.iter().flat_map(|left| &left.work).filter_map(|work| work.place);
        let held = number(places.filter(|&place| is_here(place)).count());
        let missing = drawn.saturating_sub(counted).saturating_sub(held);
        let doubts = all.iter().filter_map(|left| left.doubt);
        let doubts: Vec<_> = doubts.filter(|doubt| is_here(doubt.run().first)).collect();
        let in_doubt = doubts.iter().fold(0_u32, |all, one| all.saturating_add(one.run().count));
        let only_counts = doubts.iter().all(|doubt| matches!(doubt, Doubt::Count(_)));
        let mut work = all.swap_remove(dead).work;
        match doubt {
            _ if missing == 0 => {}
            Doubt::Count(run) if only_counts || missing == in_doubt => {
                self.batches.count(at, missing.min(run.count));
            }
            Doubt::Claim(run) if missing == in_doubt => run.give(&mut work),
            Doubt::Count(_) | Doubt::Claim(_) => return Settled::Never,
        }
        Settled::Left(work)
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
