//! The delivery of sent rows, from a worker's queue to places of open batches.
//!
//! Only this file says what a worker stores, and in which order: rows leave the queue before they are
//! committed, so the pool can send them again. How the rows themselves are stepped is the worker's task.

use std::ops::Range;

use super::batch_ring::{BatchRing, Places};
use super::queue::{QueuedRows, RowQueue};
use crate::wake::{Word, ring};

/// The steps of a worker that carries out sent rows.
pub(crate) trait Filling {
    /// Called when the rows were taken and have no places yet.
    fn prepare(&mut self, queued: &QueuedRows);

    /// Number of these rows that may get their places together, at least one.
    fn together(&mut self, rows: Range<usize>) -> usize;

    /// Carries out some of the work: `rows`, into `places`.
    fn fill(&mut self, queued: &QueuedRows, rows: Range<usize>, places: Places);

    /// Called when the places that were filled last are counted: the pool may hand them out.
    fn counted(&mut self);
}

/// The words that a worker and the pool share for sent rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery<'a, W> {
    pub(crate) queue: RowQueue<'a>,
    pub(crate) batches: BatchRing<'a>,
    pub(crate) doorbell: &'a W,
}

impl<W: Word> Delivery<'_, W> {
    /// Delivers at most `max` rows of the work that was pushed first; returns how many rows it
    /// was, 0 when there was none.
    pub(crate) fn deliver(&self, max: usize, filling: &mut impl Filling) -> usize {
        let Self { queue, batches, doorbell } = self;
        let Some(queued) = queue.first(max) else { return 0 };
        filling.prepare(&queued);
        let mut done = 0;
        while done < queued.rows.len() {
            let first = queued.rows.start + done;
            let max = filling.together(first..queued.rows.end);
            let places = match queued.place {
                None => batches.claim_next(max, first),
                Some(place) => batches.claim_given(place as usize + done, max),
            };
            filling.fill(&queued, first..first + places.count, places);
            queue.remove(places.count);
            if batches.filled(places) {
                ring(*doorbell);
            }
            filling.counted();
            done += places.count;
        }
        done
    }
}
