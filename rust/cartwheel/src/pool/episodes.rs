//! Where each row is in its episode, as seen by the caller that receives its results.
//!
//! Workers know that too, but they are ahead of what has been received. So the pool counts as well,
//! on request: from what a row was sent for, and from the flags that were received.

use super::Pool;
use crate::autoreset::AutoresetMode;
use crate::call::Call;
use crate::error::Error;
use crate::memory::Lease;

/// The rows' episodes.
#[derive(Debug)]
pub(super) struct Episodes {
    mode: AutoresetMode,
    /// Steps of the episode to which the last received reward belongs.
    elapsed: Vec<i32>,
    /// 1 where that step was the last of its episode.
    ended: Vec<u8>,
    /// Rows without an episode: never reset, or their last result was lost.
    fresh: Vec<bool>,
    any_fresh: bool,
    /// For each place of the batch that is being received, whether its row is over; kept to reuse
    /// the memory.
    over: Vec<u8>,
    truncations: Vec<u8>,
}

impl Episodes {
    fn new(mode: AutoresetMode, rows: usize) -> Self {
        Self {
            mode,
            elapsed: vec![0; rows],
            ended: vec![0; rows],
            fresh: vec![true; rows],
            any_fresh: rows > 0,
            over: Vec::new(),
            truncations: Vec::new(),
        }
    }

    /// Reads which rows in the first `rows` places of a batch are over.
    fn load(&mut self, lease: &Lease, rows: usize) {
        let layout = lease.layout();
        self.over.resize(rows, 0);
        self.truncations.resize(rows, 0);
        lease.read(layout.terminations_offset(), &mut self.over);
        lease.read(layout.truncations_offset(), &mut self.truncations);
        for (over, truncated) in self.over.iter_mut().zip(&self.truncations) {
            *over = u8::from(*over | truncated != 0);
        }
    }

    /// All rows of a batch were stepped.
    pub(super) fn stepped(&mut self, lease: &Lease) {
        self.load(lease, self.elapsed.len());
        let rows = self.elapsed.iter_mut().zip(&mut self.ended).zip(&self.over);
        // Without branches: this is a part of every step of thousands of rows.
        match self.mode {
            AutoresetMode::NextStep => rows.for_each(|((elapsed, ended), over)| {
                *elapsed = (*elapsed + 1) * i32::from(1 - *ended);
                *ended = *over;
            }),
            AutoresetMode::SameStep => rows.for_each(|((elapsed, ended), over)| {
                *elapsed = *elapsed * i32::from(1 - *ended) + 1;
                *ended = *over;
            }),
            AutoresetMode::Disabled => rows.for_each(|((elapsed, ended), over)| {
                *elapsed += i32::from(1 - *ended); // a frozen row stays
                *ended = *over;
            }),
        }
    }

    /// Rows that were sent are in the first places of a batch. `calls` holds, for each row of the
    /// pool, what it was sent for.
    pub(super) fn received(
        &mut self,
        lease: &Lease,
        rows: impl ExactSizeIterator<Item = usize>,
        calls: &[Option<Call>],
    ) {
        self.load(lease, rows.len());
        for (row, &over) in rows.zip(&self.over) {
            let Some(&Some(call)) = calls.get(row) else { continue };
            let (elapsed, goes_on) = (self.elapsed[row], i32::from(1 - self.ended[row]));
            let is_step = i32::from(call == Call::Step);
            self.elapsed[row] = is_step
                * match self.mode {
                    AutoresetMode::NextStep => (elapsed + 1) * goes_on,
                    AutoresetMode::SameStep => elapsed * goes_on + 1,
                    AutoresetMode::Disabled => elapsed + goes_on,
                };
            self.ended[row] = over;
        }
    }

    /// These rows begin an episode: they are being reset.
    pub(super) fn begin(&mut self, rows: &[usize]) {
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

    fn lose(&mut self, rows: impl Iterator<Item = usize>) {
        for row in rows {
            self.fresh[row] = true;
            self.any_fresh = true;
        }
    }

    /// Fails unless each of these rows has an episode.
    pub(super) fn check(&self, rows: impl Iterator<Item = usize>) -> Result<(), Error> {
        if !self.any_fresh {
            return Ok(());
        }
        let rows: Vec<usize> = rows.filter(|&row| self.fresh[row]).collect();
        if rows.is_empty() { Ok(()) } else { Err(Error::NoEpisode { rows }) }
    }
}

impl Pool {
    /// From now on, counts the steps of every row's episode, and refuses to step rows without one:
    /// rows that were never reset, and rows whose last result was lost.
    ///
    /// Rows that are sent for a reset begin an episode. After a reset of all rows only the caller
    /// knows which rows it concerned, and calls [`Pool::begin_episodes`].
    pub fn count_episodes(&mut self, mode: AutoresetMode) {
        self.episodes = Some(Episodes::new(mode, self.phases.len()));
    }

    /// For each row, the steps of the episode to which the last received reward and flags belong, 0
    /// where they belong to a reset; `None` where episodes are not counted.
    pub fn elapsed(&self) -> Option<&[i32]> {
        self.episodes.as_ref().map(|episodes| &*episodes.elapsed)
    }

    /// The rows that have no episode; empty where episodes are not counted.
    pub fn without_episode(&self) -> Vec<usize> {
        let fresh = self.episodes.iter().flat_map(|episodes| &episodes.fresh).enumerate();
        fresh.filter(|(_, fresh)| **fresh).map(|(row, _)| row).collect()
    }

    /// A reset of all rows returned, which concerned `rows`; the others show their last
    /// observation.
    ///
    /// # Panics
    ///
    /// When one of the rows does not exist.
    pub fn begin_episodes(&mut self, rows: &[usize]) {
        if let Some(episodes) = &mut self.episodes {
            episodes.begin(rows);
            episodes.show();
        }
    }

    /// The last results of these rows will not be seen, so their episodes are over.
    ///
    /// # Panics
    ///
    /// When one of the rows does not exist.
    pub fn lose(&mut self, rows: impl Iterator<Item = usize>) {
        if let Some(episodes) = &mut self.episodes {
            episodes.lose(rows);
        }
    }
}
