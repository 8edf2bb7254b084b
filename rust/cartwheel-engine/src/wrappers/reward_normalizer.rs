//! Rewards divided by the deviation of the discounted return.

use super::kind::{RESET, SHOWN, TRANSITION};
use super::moments::Moments;
use super::place_kinds::{PlaceKinds, is_stepped};

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
    pub fn reset(&mut self, places: PlaceKinds<'_>) {
        for (place, &kind) in places.kinds().iter().enumerate() {
            if kind == RESET {
                self.returns[places.env(place)] = 0.0;
            }
        }
    }

    /// Adds the rewards of a batch and normalizes them in place.
    ///
    /// Only transitions have a reward; the others get 0. A step of an episode of which a step was
    /// lost is divided, too, but its return is unknown and does not count. Returns are 0 again
    /// where an episode has ended, or has begun.
    ///
    /// # Panics
    ///
    /// When a slice does not have an entry for each place.
    pub fn normalize(
        &mut self,
        places: PlaceKinds<'_>,
        rewards: &mut [f64],
        terminations: &[u8],
        truncations: &[u8],
    ) {
        let count = places.len();
        assert_eq!(rewards.len(), count, "rewards");
        assert_eq!(terminations.len(), count, "terminations");
        assert_eq!(truncations.len(), count, "truncations");
        let kinds = places.kinds();
        let is_plain = places.are_all() && places.all_are(|kind| kind == TRANSITION);
        if is_plain {
            for (total, reward) in self.returns.iter_mut().zip(&*rewards) {
                *total = self.gamma * *total + reward;
            }
            if self.updates {
                self.moments.merge(&self.returns);
            }
        } else {
            self.gathered.clear();
            for (place, &kind) in kinds.iter().enumerate() {
                let total = &mut self.returns[places.env(place)];
                *total = match kind {
                    TRANSITION => self.gamma * *total + rewards[place],
                    SHOWN => *total,
                    _ => 0.0,
                };
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
        for (reward, &kind) in rewards.iter_mut().zip(kinds) {
            *reward = if is_stepped(kind) { *reward * scale } else { 0.0 };
        }
        if places.are_all() {
            let flags = terminations.iter().zip(truncations);
            for (total, (terminated, truncated)) in self.returns.iter_mut().zip(flags) {
                *total = if terminated | truncated == 0 { *total } else { 0.0 };
            }
        } else {
            for (place, (terminated, truncated)) in terminations.iter().zip(truncations).enumerate()
            {
                if terminated | truncated != 0 {
                    self.returns[places.env(place)] = 0.0;
                }
            }
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
        for (kinds, rewards, ended, returns) in steps {
            let places = PlaceKinds::new(None, &kinds, 2).expect("all rows");
            let mut normalized = rewards;
            to.normalize(places, &mut normalized, &ended, &[0, 0]);
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
        let step = |to: &mut RewardNormalizer, rows: &[i64], ended: &[u8]| {
            let kinds = vec![TRANSITION; rows.len()];
            let places = PlaceKinds::new(Some(rows), &kinds, 3).expect("rows");
            to.normalize(places, &mut vec![1.0; rows.len()], &vec![0; rows.len()], ended);
        };
        step(&mut to, &[2, 0], &[0, 0]);
        step(&mut to, &[0, 1], &[0, 1]);
        assert_eq!(to.returns, [1.5, 0.0, 1.0]);
        to.reset(PlaceKinds::new(None, &[RESET, SHOWN, SHOWN], 3).expect("all rows"));
        assert_eq!(to.returns, [0.0, 0.0, 1.0]);
        to.reset(PlaceKinds::new(Some(&[2]), &[RESET], 3).expect("rows"));
        assert_eq!(to.returns, [0.0; 3]);
    }
}
