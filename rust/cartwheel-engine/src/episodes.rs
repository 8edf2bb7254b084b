//! Positions of rows in their episodes, as seen by the caller that receives the results.
//!
//! Workers know that too, but they are ahead of what has been received. [`Episodes`] gets the rows that
//! are reset and every batch that a [`Pool`](crate::pool::Pool) returns; the pool does not need it.

use std::ops::Range;

use cartwheel_core::schedule::runs;

use crate::autoreset::AutoresetMode;
use crate::error::Error;
use crate::memory::Lease;

/// The rows' episodes. A row has one from its first reset on, until its last result is lost.
#[derive(Debug)]
pub struct Episodes {
    mode: AutoresetMode,
    /// Steps of the episode to which the last received reward belongs.
    elapsed: Vec<i32>,
    /// 1 where that step was the last of its episode.
    ended: Vec<u8>,
    /// Rows without an episode: never reset, or their last result was lost.
    fresh: Vec<bool>,
    any_fresh: bool,
    /// Rows that were sent for a reset and not received: none while no row is in flight.
    resetting: Vec<bool>,
    /// For each place of the batch that is being received, whether its row is over; kept to reuse
    /// the memory.
    over: Vec<u8>,
    truncations: Vec<u8>,
}

impl Episodes {
    /// Of rows that were never reset.
    pub fn new(mode: AutoresetMode, rows: usize) -> Self {
        Self {
            mode,
            elapsed: vec![0; rows],
            ended: vec![0; rows],
            fresh: vec![true; rows],
            any_fresh: rows > 0,
            resetting: vec![false; rows],
            over: Vec::new(),
            truncations: Vec::new(),
        }
    }

    /// Reads which rows in `rows` places of a batch are over, from the first one of the lease on.
    fn load(&mut self, lease: &Lease, rows: usize) {
        let layout = lease.layout();
        self.over.resize(rows, 0);
        self.truncations.resize(rows, 0);
        lease.read(layout.terminations_offset() + lease.first(), &mut self.over);
        lease.read(layout.truncations_offset() + lease.first(), &mut self.truncations);
        for (over, truncated) in self.over.iter_mut().zip(&self.truncations) {
            *over = u8::from(*over | truncated != 0);
        }
    }

    /// For each row, the steps of the episode to which the last received reward and flags belong, 0
    /// where they belong to a reset. Of an episode with more steps than the largest count: that count.
    pub fn elapsed(&self) -> &[i32] {
        &self.elapsed
    }

    /// The rows that have no episode.
    pub fn without_episode(&self) -> Vec<usize> {
        (0..self.fresh.len()).filter(|&row| self.fresh[row]).collect()
    }

    /// For each row, 1 where the last received step was the last of its episode.
    pub fn ended(&self) -> &[u8] {
        &self.ended
    }

    /// For each row, whether it has no episode.
    pub fn fresh(&self) -> &[bool] {
        &self.fresh
    }

    /// Continues with the episodes of as many rows, while no row is in flight; `false`, and no change,
    /// if there are more or fewer.
    #[must_use]
    pub fn restore(&mut self, elapsed: &[i32], ended: &[bool], fresh: &[bool]) -> bool {
        let fits = [elapsed.len(), ended.len(), fresh.len()] == [self.elapsed.len(); 3];
        if fits {
            self.elapsed.copy_from_slice(elapsed);
            self.ended = ended.iter().map(|&ended| u8::from(ended)).collect();
            self.fresh.copy_from_slice(fresh);
            self.any_fresh = fresh.contains(&true);
        }
        fits
    }

    /// Checks whether each of these rows has an episode, and can be stepped as far as that is concerned. Rows
    /// that do not exist are left to the pool.
    ///
    /// # Errors
    ///
    /// [`Error::NoEpisode`].
    pub fn check(&self, rows: impl Iterator<Item = usize>) -> Result<(), Error> {
        if !self.any_fresh {
            return Ok(());
        }
        let rows: Vec<usize> = rows.filter(|&row| self.fresh.get(row) == Some(&true)).collect();
        if rows.is_empty() { Ok(()) } else { Err(Error::NoEpisode { rows }) }
    }

    /// A batch of all rows was stepped.
    pub fn stepped(&mut self, lease: &Lease) {
        self.load(lease, self.elapsed.len());
        self.count(0..self.elapsed.len(), 0);
    }

    /// Rows that were sent were received, in this order, in the places of a lease.
    ///
    /// # Panics
    ///
    /// When one of the rows does not exist.
    pub fn received(&mut self, lease: &Lease, rows: &[usize]) {
        self.load(lease, rows.len());
        let mut place = 0;
        for run in runs(rows) {
            self.count(run.clone(), place);
            place += run.len();
            let resetting = &mut self.resetting[run.clone()];
            if resetting.iter().fold(false, |any, resetting| any | resetting) {
                for (elapsed, resetting) in self.elapsed[run].iter_mut().zip(resetting) {
                    *elapsed *= i32::from(!std::mem::take(resetting));
                }
            }
        }
    }

    /// Counts a step of neighboring rows, whose results are in the places from `place` on.
    fn count(&mut self, rows: Range<usize>, place: usize) {
        let over = &self.over[place..place + rows.len()];
        let steps = self.elapsed[rows.clone()].iter_mut().zip(&mut self.ended[rows]).zip(over);
        // A loop for each mode, without branches: this is a part of every step of thousands of rows.
        match self.mode {
            AutoresetMode::NextStep => steps.for_each(|((elapsed, ended), over)| {
                *elapsed = after(AutoresetMode::NextStep, *elapsed, *ended);
                *ended = *over;
            }),
            AutoresetMode::SameStep => steps.for_each(|((elapsed, ended), over)| {
                *elapsed = after(AutoresetMode::SameStep, *elapsed, *ended);
                *ended = *over;
            }),
            AutoresetMode::Disabled => steps.for_each(|((elapsed, ended), over)| {
                *elapsed = after(AutoresetMode::Disabled, *elapsed, *ended);
                *ended = *over;
            }),
        }
    }

    /// These rows were sent for a reset: they begin an episode.
    ///
    /// # Panics
    ///
    /// When one of the rows does not exist.
    pub fn resets_sent(&mut self, rows: &[usize]) {
        self.begin(rows);
        for &row in rows {
            self.resetting[row] = true;
        }
    }

    /// A reset of all rows returned, which concerned `rows`: they begin an episode. The others show their last
    /// observation.
    ///
    /// # Panics
    ///
    /// When one of the rows does not exist.
    pub fn reset(&mut self, rows: &[usize]) {
        self.begin(rows);
        self.show();
    }

    fn begin(&mut self, rows: &[usize]) {
        for &row in rows {
            (self.elapsed[row], self.ended[row], self.fresh[row]) = (0, 0, false);
        }
        self.any_fresh = self.fresh.contains(&true);
    }

    /// Every row shows its observation again. In `SAME_STEP` that is the first observation of the
    /// next episode where the last step ended one, and the reward of that step is not shown with
    /// it.
    fn show(&mut self) {
        if self.mode == AutoresetMode::SameStep {
            for (elapsed, ended) in self.elapsed.iter_mut().zip(&mut self.ended) {
                *elapsed *= i32::from(1 - *ended);
                *ended = 0;
            }
        }
    }

    /// The last results of these rows will not be seen, so their episodes are over.
    ///
    /// # Panics
    ///
    /// When one of the rows does not exist.
    pub fn lose(&mut self, rows: impl Iterator<Item = usize>) {
        for row in rows {
            self.fresh[row] = true;
            self.any_fresh = true;
        }
    }
}

/// The count after another step, where `ended` is 1 if the step before was the last of its episode. The
/// largest count stays: 0 would mean a reset.
#[inline]
fn after(mode: AutoresetMode, elapsed: i32, ended: u8) -> i32 {
    let goes_on = i32::from(ended ^ 1);
    match mode {
        AutoresetMode::NextStep => elapsed.saturating_add(1) & -goes_on,
        AutoresetMode::SameStep => (elapsed & -goes_on).saturating_add(1),
        AutoresetMode::Disabled => elapsed.saturating_add(goes_on), // a frozen row stays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_count_stays_until_the_episode_ends() {
        use AutoresetMode::{Disabled, NextStep, SameStep};

        for (mode, first) in [(NextStep, 0), (SameStep, 1), (Disabled, i32::MAX)] {
            assert_eq!(after(mode, i32::MAX - 1, 0), i32::MAX);
            assert_eq!(after(mode, i32::MAX, 0), i32::MAX);
            assert_eq!(after(mode, i32::MAX, 1), first, "{mode:?}");
        }
    }
}
