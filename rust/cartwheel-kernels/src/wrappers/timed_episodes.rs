//! Episodes with the time that they took.

use std::collections::VecDeque;

use super::places::{At, Places, RESET, StepResults};
use super::running::{Ends, Running};

/// Returns, lengths and durations of episodes. Times are seconds from any beginning.
#[derive(Debug, Clone)]
pub struct TimedEpisodes {
    /// Returns and lengths.
    pub running: Running,
    /// Start time of each row's present episode.
    pub begun: Vec<f64>,
    /// The last complete episodes that were not taken.
    recent: VecDeque<Timed>,
    max: usize,
    /// The numbers of complete episodes and of dropped ones, while `updates` was true.
    pub counts: (u64, u64),
    /// Whether episodes that end are counted.
    pub updates: bool,
}

/// A complete episode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// The sum of its rewards.
    pub total: f64,
    /// Its transitions.
    pub length: i64,
    /// Its duration, rounded to microseconds.
    pub seconds: f64,
}

impl TimedEpisodes {
    /// Episodes begin at `now`. Keeps the last `max` episodes until they are taken.
    pub fn new(num_envs: usize, is_same_step: bool, max: usize, now: f64) -> Self {
        let running = Running::new(num_envs, is_same_step);
        let (begun, recent) = (vec![now; num_envs], VecDeque::new());
        Self { running, begun, recent, max, counts: (0, 0), updates: true }
    }

    /// Takes the last complete episodes that were not taken yet.
    pub fn take_recent(&mut self) -> VecDeque<Timed> {
        std::mem::take(&mut self.recent)
    }

    /// A reset returned.
    pub fn begin(&mut self, places: Places<'_>, now: f64) {
        self.running.begin(places);
        self.go_on(now);
    }

    /// Adds a step. Calls `then` for each place at which a complete episode ended, in order.
    ///
    /// # Panics
    ///
    /// As for [`Running::step`].
    pub fn step(
        &mut self,
        results: &StepResults<'_>,
        now: f64,
        mut then: impl FnMut(usize, Timed),
    ) -> Ends {
        let ends = self.running.step(results);
        if self.updates {
            self.counts.0 += ends.complete as u64;
            self.counts.1 += ends.dropped as u64;
        }
        let returns = self.running.returns();
        for &At { place, row } in &self.running.ended {
            let seconds = rounded((now - self.begun[row]) * 1e6) / 1e6;
            let episode = Timed { total: returns[row], length: self.running.length(row), seconds };
            then(place, episode);
            if self.recent.len() == self.max {
                self.recent.pop_front();
            }
            self.recent.push_back(episode);
        }
        self.go_on(now);
        ends
    }

    /// Begins the episodes that the last batch began, by a reset or, in `SAME_STEP`, by an end.
    fn go_on(&mut self, now: f64) {
        for odd in self.running.odd.iter().filter(|odd| odd.kind == RESET) {
            self.begun[odd.at.row] = now;
        }
        if self.running.is_same_step() {
            for at in &self.running.over {
                self.begun[at.row] = now;
            }
        }
    }
}

/// [`f64::round`], which is a call of a function where processors need not have an instruction for it.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "below 2^52")]
fn rounded(number: f64) -> f64 {
    const ALL_ARE_WHOLE: f64 = 4_503_599_627_370_496.0; // 2^52
    if !(0.0..ALL_ARE_WHOLE).contains(&number) {
        return number.round();
    }
    let below = number as i64 as f64;
    below + f64::from(u8::from(number - below >= 0.5)) // without a branch
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn numbers_are_rounded_as_by_the_standard_library() {
        let near =
            [0.0, 0.5, 1.0, 1.5, 2.5, 1e6 + 0.5, 4_503_599_627_370_495.5, 4_503_599_627_370_496.0];
        for number in
            near.into_iter().flat_map(|near: f64| [near.next_down(), near, near.next_up()])
        {
            assert_eq!(rounded(number).to_bits(), number.round().to_bits(), "{number}");
        }
        assert!(rounded(f64::NAN).is_nan());
        assert!(rounded(f64::INFINITY).is_infinite());
    }
}
