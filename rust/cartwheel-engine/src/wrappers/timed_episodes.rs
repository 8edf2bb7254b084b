//! Episodes with the time that they took.

use super::kind::RESET;
use super::running::{At, Ends, Places, Running};

/// Returns, lengths and durations of episodes. Times are seconds from any beginning.
#[derive(Debug, Clone)]
pub struct TimedEpisodes {
    running: Running,
    /// When the present episode of each row began.
    begun: Vec<f64>,
}

impl TimedEpisodes {
    /// Episodes begin at `now`.
    pub fn new(num_envs: usize, is_same_step: bool, now: f64) -> Self {
        Self { running: Running::new(num_envs, is_same_step), begun: vec![now; num_envs] }
    }

    /// Returns and lengths.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// The same, to be set to what they were in another run.
    pub fn running_mut(&mut self) -> &mut Running {
        &mut self.running
    }

    /// When the present episode of each row began.
    pub fn begun(&self) -> &[f64] {
        &self.begun
    }

    /// The same, to be set.
    pub fn begun_mut(&mut self) -> &mut [f64] {
        &mut self.begun
    }

    /// A reset returned.
    ///
    /// # Panics
    ///
    /// As for [`Running::begin`].
    pub fn begin(&mut self, rows: Option<&[usize]>, kinds: &[u8], now: f64) {
        self.running.begin(rows, kinds);
        self.go_on(now);
    }

    /// Adds a step; [`report`](Self::report) and [`go_on`](Self::go_on) are to be called
    /// before the next one.
    ///
    /// # Panics
    ///
    /// As for [`Running::step`].
    pub fn step(&mut self, places: &Places<'_>) -> Ends {
        self.running.step(places)
    }

    /// Calls `then(place, return, length, seconds)` for each place at which a complete episode
    /// ended, in order. Seconds are rounded to microseconds.
    pub fn report(&self, now: f64, mut then: impl FnMut(usize, f64, i64, f64)) {
        let (returns, lengths) = (self.running.returns(), self.running.lengths());
        for &At { place, row } in &self.running.ended {
            let seconds = ((now - self.begun[row]) * 1e6).round() / 1e6;
            then(place, returns[row], lengths[row], seconds);
        }
    }

    /// Begins the episodes that the last step began, by a reset or, in `SAME_STEP`, by an end.
    pub fn go_on(&mut self, now: f64) {
        for odd in self.running.odd.iter().filter(|odd| odd.kind == RESET) {
            self.begun[odd.at.row] = now;
        }
        if self.running.is_same_step() {
            self.running.over.iter().for_each(|at| self.begun[at.row] = now);
        }
    }
}
