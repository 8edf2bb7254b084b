//! Where each row is in its episode, as whoever receives its results sees it.
//!
//! Workers know that too, but they are ahead of what has been received. So the pool counts along, if it
//! is asked to: from what a row was sent for, and from the flags that came back.

use super::Pool;
use crate::autoreset::AutoresetMode;
use crate::call::Call;
use crate::error::Error;
use crate::memory::Lease;

/// The rows' episodes.
#[derive(Debug)]
pub(super) struct Episodes {
    mode: AutoresetMode,
    /// Steps of the episode to which the reward that was received last belongs.
    elapsed: Vec<i32>,
    /// 1 where that step was the episode's last.
    ended: Vec<u8>,
    /// Rows without an episode: never reset, or what they returned last was lost.
    fresh: Vec<bool>,
    any_fresh: bool,
    /// Of the batch that is being received, whether the row in each place is over; kept for its memory.
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

    /// Reads which of the first `rows` places of a batch are over.
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

    /// A batch of all rows was stepped.
    pub(super) fn stepped(&mut self, lease: &Lease) {
        self.load(lease, self.elapsed.len());
        let rows = self.elapsed.iter_mut().zip(&mut self.ended).zip(&self.over);
        // Without branches: it is a part of every step of thousands of rows.
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

    /// Rows that were sent are in the first places of a batch. `calls` says of each row of the pool what
    /// it was sent for.
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

    /// Rows begin an episode: they are being reset.
    pub(super) fn begin(&mut self, rows: &[usize]) {
        for &row in rows {
            (self.elapsed[row], self.ended[row], self.fresh[row]) = (0, 0, false);
        }
        self.any_fresh = self.fresh.contains(&true);
    }

    /// Every row shows its observation again. In `SAME_STEP` that is the next episode's first where the last
    /// step ended one, and no reward of that step is shown with it.
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

    /// Raises unless each of these rows has an episode.
    pub(super) fn check(&self, rows: impl Iterator<Item = usize>) -> Result<(), Error> {
        if !self.any_fresh {
            return Ok(());
        }
        let rows: Vec<usize> = rows.filter(|&row| self.fresh[row]).collect();
        if rows.is_empty() { Ok(()) } else { Err(Error::NoEpisode { rows }) }
    }
}

impl Pool {
    /// From now on, counts the steps of every row's episode, and refuses to step rows that have none:
    /// those that were never reset, and those whose last result was lost.
    ///
    /// Rows that are sent for a reset begin an episode; of a reset of all rows only the caller knows
    /// whom it concerns, and tells by [`Pool::begin_episodes`].
    pub fn count_episodes(&mut self, mode: AutoresetMode) {
        self.episodes = Some(Episodes::new(mode, self.phases.len()));
    }

    /// Of each row, steps of the episode to which the reward and flags that were received last belong,
    /// 0 where they are those of a reset; `None` where nobody counts.
    pub fn elapsed(&self) -> Option<&[i32]> {
        self.episodes.as_ref().map(|episodes| &*episodes.elapsed)
    }

    /// The rows that have no episode; none where nobody counts.
    pub fn without_episode(&self) -> Vec<usize> {
        let fresh = self.episodes.iter().flat_map(|episodes| &episodes.fresh).enumerate();
        fresh.filter(|(_, fresh)| **fresh).map(|(row, _)| row).collect()
    }

    /// A reset of all rows returned, which concerned these; the others show their last observation.
    ///
    /// # Panics
    ///
    /// When there is no such row.
    pub fn begin_episodes(&mut self, rows: &[usize]) {
        if let Some(episodes) = &mut self.episodes {
            episodes.begin(rows);
            episodes.show();
        }
    }

    /// What these rows returned last is not going to be seen by anybody, so their episodes are over.
    ///
    /// # Panics
    ///
    /// When there is no such row.
    pub fn lose(&mut self, rows: impl Iterator<Item = usize>) {
        if let Some(episodes) = &mut self.episodes {
            episodes.lose(rows);
        }
    }
}
