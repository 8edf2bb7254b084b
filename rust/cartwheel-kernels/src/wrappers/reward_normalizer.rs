//! Rewards divided by the deviation of the discounted return.

use super::bits::each_set;
use super::compress::{gather, num_kept};
use super::kind::{RESET, SHOWN, TRANSITION};
use super::moments::Moments;
use super::places::{Places, StepResults, is_stepped};
use super::slot::Slot;
use crate::simd::{self, Loops};

/// Divides rewards by the deviation of the discounted return `G ← γG + r` of each episode.
#[derive(Debug, Clone)]
pub struct RewardNormalizer {
    gamma: f64,
    epsilon: f64,
    /// Of the discounted returns, one number for each transition while `updates` was true.
    pub moments: Moments,
    /// The discounted return of each environment.
    pub returns: Vec<f64>,
    /// Whether transitions change the moments.
    pub updates: bool,
    /// The returns of the transitions of a batch.
    gathered: Vec<f64>,
}

impl RewardNormalizer {
    /// Before any reward.
    pub fn new(num_envs: usize, gamma: f64, epsilon: f64) -> Self {
        let (moments, returns) = (Moments::new(1), vec![0.0; num_envs]);
        Self { gamma, epsilon, moments, returns, updates: true, gathered: Vec::new() }
    }

    /// Rows were reset: their returns begin again.
    pub fn reset(&mut self, places: Places<'_>) {
        for (place, &kind) in places.kinds().iter().enumerate() {
            if kind == RESET {
                self.returns[places.row(place)] = 0.0;
            }
        }
    }

    /// Adds the rewards of a batch and writes them normalized, all of `normalized`.
    ///
    /// Only transitions have a reward; the others get 0. A step of an episode of which a step was
    /// lost is divided, too, but its return is unknown and does not count. Returns are 0 again
    /// where an episode has ended, or has begun.
    ///
    /// # Panics
    ///
    /// When a slice does not have an entry for each place.
    pub fn normalize<S: Slot<f64>>(&mut self, results: &StepResults<'_>, normalized: &mut [S]) {
        results.check();
        let StepResults { places, rewards, terminations, truncations } = *results;
        let kinds = places.kinds();
        assert_eq!(normalized.len(), kinds.len(), "room for normalized rewards");
        let gamma = self.gamma;
        if places.are_all() {
            simd::run(Discounted { gamma, kinds, rewards, returns: &mut self.returns });
            if self.updates && places.all_are(|kind| kind == TRANSITION) {
                self.moments.merge(&self.returns);
            } else if self.updates {
                let counts = |kind| kind == TRANSITION;
                self.gathered.resize(num_kept(kinds, counts), 0.0);
                gather(&self.returns, kinds, counts, &mut self.gathered);
                self.moments.merge(&self.gathered);
            }
        } else {
            self.gathered.clear();
            for (place, &kind) in kinds.iter().enumerate() {
                let total = &mut self.returns[places.row(place)];
                *total = discounted(gamma, *total, rewards[place], kind);
                if kind == TRANSITION {
                    self.gathered.push(*total);
                }
            }
            if self.updates {
                self.moments.merge(&self.gathered);
            }
        }
        // A division for each row would take as long as all the rest.
        let scale = 1.0 / (self.moments.variance[0] + self.epsilon).sqrt();
        simd::run(Scaled { scale, kinds, rewards, normalized });
        each_set(terminations, truncations, |place| self.returns[places.row(place)] = 0.0);
    }
}

/// The discounted return after a step.
#[inline(always)]
fn discounted(gamma: f64, total: f64, reward: f64, kind: u8) -> f64 {
    let added = gamma * total + reward;
    let others = if kind == SHOWN { total } else { 0.0 };
    if kind == TRANSITION { added } else { others }
}

/// Discounts and adds, for all rows.
struct Discounted<'a> {
    gamma: f64,
    kinds: &'a [u8],
    rewards: &'a [f64],
    returns: &'a mut [f64],
}

impl Loops for Discounted<'_> {
    #[inline(always)]
    fn run(self) {
        let places = self.returns.iter_mut().zip(self.rewards).zip(self.kinds);
        for ((total, &reward), &kind) in places {
            *total = discounted(self.gamma, *total, reward, kind);
        }
    }
}

/// Scales the rewards of stepped rows.
struct Scaled<'a, S> {
    scale: f64,
    kinds: &'a [u8],
    rewards: &'a [f64],
    normalized: &'a mut [S],
}

impl<S: Slot<f64>> Loops for Scaled<'_, S> {
    #[inline(always)]
    fn run(self) {
        let places = self.normalized.iter_mut().zip(self.rewards).zip(self.kinds);
        for ((room, &reward), &kind) in places {
            let scaled = reward * self.scale;
            *room = S::of(if is_stepped(kind) { scaled } else { 0.0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::{FAILED, INCOMPLETE};
    use super::*;

    /// Kinds, rewards, ends, and the returns afterwards.
    type Step = ([u8; 2], [f64; 2], [u8; 2], [f64; 2]);

    #[test]
    fn returns_are_discounted_within_an_episode_and_only_transitions_count() {
        let mut to = RewardNormalizer::new(2, 0.5, 0.0);
        let mut count = 1e-4;
        let steps: [Step; 5] = [
            ([TRANSITION, TRANSITION], [1.0, 2.0], [0, 0], [1.0, 2.0]),
            ([TRANSITION, TRANSITION], [1.0, 2.0], [1, 0], [0.0, 3.0]),
            ([RESET, FAILED], [0.0, 0.0], [0, 1], [0.0, 0.0]),
            ([TRANSITION, INCOMPLETE], [4.0, 4.0], [0, 0], [4.0, 0.0]),
            ([TRANSITION, SHOWN], [1.0, 7.0], [0, 1], [3.0, 0.0]),
        ];
        for (kinds, rewards, terminations, returns) in steps {
            let mut normalized = [f64::NAN; 2];
            let results = StepResults {
                places: Places::new(None, &kinds, 2),
                rewards: &rewards,
                terminations: &terminations,
                truncations: &[0, 0],
            };
            to.normalize(&results, &mut normalized);
            count += kinds.iter().map(|&kind| f64::from(u8::from(kind == TRANSITION))).sum::<f64>();
            assert_eq!(to.returns, returns);
            let scale = 1.0 / to.moments.variance[0].sqrt();
            for (place, &kind) in kinds.iter().enumerate() {
                let expected = if is_stepped(kind) { rewards[place] * scale } else { 0.0 };
                assert_eq!(normalized[place].to_bits(), expected.to_bits());
            }
        }
        assert!((to.moments.count - count).abs() < 1e-12);
    }

    #[test]
    fn resets_and_parts_change_their_rows_only() {
        let mut to = RewardNormalizer::new(3, 0.5, 0.0);
        let step = |to: &mut RewardNormalizer, rows: &[usize], ended: &[u8]| {
            let results = StepResults {
                places: Places::new(Some(rows), &[TRANSITION; 2], 3),
                rewards: &[1.0; 2],
                terminations: &[0; 2],
                truncations: ended,
            };
            to.normalize(&results, &mut [0.0; 2]);
        };
        step(&mut to, &[2, 0], &[0, 0]);
        step(&mut to, &[0, 1], &[0, 1]);
        assert_eq!(to.returns, [1.5, 0.0, 1.0]);
        to.reset(Places::new(None, &[RESET, SHOWN, SHOWN], 3));
        assert_eq!(to.returns, [0.0, 0.0, 1.0]);
        to.reset(Places::new(Some(&[2]), &[RESET], 3));
        assert_eq!(to.returns, [0.0; 3]);
    }
}
