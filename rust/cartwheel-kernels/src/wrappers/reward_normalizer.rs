//! Rewards divided by the deviation of the discounted return.

use super::compress::num_kept;
use super::moments::{Distances, Moments};
use super::places::{Places, RESET, SHOWN, StepResults, TRANSITION, is_stepped};
use super::slot::Slot;
use cartwheel_core::simd::{self, Loops};

/// Rows whose returns are computed before any is added to the sums: two short loops of vectors.
const TILE: usize = 64;

/// Divides rewards by the deviation of the discounted return `G ← γG + r` of each episode.
#[derive(Debug, Clone)]
pub struct RewardNormalizer {
    /// The discount.
    pub gamma: f64,
    /// The number that is added to the variance.
    pub epsilon: f64,
    /// Of the discounted returns, one number for each transition while `updates` was true.
    pub moments: Moments,
    /// The discounted return of each environment.
    pub returns: Vec<f64>,
    /// Whether transitions change the moments.
    pub updates: bool,
    /// The returns of the rows of a batch in parts.
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
        let StepResults { places, rewards, .. } = *results;
        let kinds = places.kinds();
        assert_eq!(normalized.len(), kinds.len(), "room for normalized rewards");
        let Self { returns, gathered, .. } = self;
        let distances = if let Some(rows) = places.rows() {
            gathered.clear();
            gathered.extend(rows.iter().map(|&row| returns[row]));
            let distances = discount(self.gamma, results, gathered);
            rows.iter().zip(&*gathered).for_each(|(&row, total)| returns[row] = *total);
            distances
        } else {
            discount(self.gamma, results, returns)
        };
        if self.updates {
            let count = num_kept(kinds, |kind| kind == TRANSITION);
            self.moments.merge_distances(count, &distances);
        }
        // A division for each row would take as long as all the rest.
        let scale = 1.0 / (self.moments.variance[0] + self.epsilon).sqrt();
        simd::run(Scaled { scale, kinds, rewards, normalized });
    }
}

/// Adds a step to the returns of its places, and returns the sums of those of transitions: numbers that
/// are read, written and summed in one pass need not be gathered.
fn discount(gamma: f64, results: &StepResults<'_>, returns: &mut [f64]) -> Distances {
    let StepResults { places, rewards, .. } = *results;
    assert_eq!(returns.len(), places.len(), "returns");
    let first = places.kinds().iter().position(|&kind| kind == TRANSITION);
    let first = first.map(|place| discounted(gamma, returns[place], rewards[place], TRANSITION));
    let mut distances = Distances::new(first.unwrap_or(0.0));
    simd::run(Discounted { gamma, results, returns, distances: &mut distances });
    distances
}

/// The discounted return after a step.
#[inline(always)]
fn discounted(gamma: f64, total: f64, reward: f64, kind: u8) -> f64 {
    let added = gamma * total + reward;
    let others = if kind == SHOWN { total } else { 0.0 };
    if kind == TRANSITION { added } else { others }
}

/// Discounts and adds, place by place, and adds the distances of the returns of transitions.
struct Discounted<'a> {
    gamma: f64,
    results: &'a StepResults<'a>,
    returns: &'a mut [f64],
    distances: &'a mut Distances,
}

impl Loops for Discounted<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { gamma, results, returns, distances } = self;
        let StepResults { places, rewards, terminations, truncations } = *results;
        let mut sums = *distances; // in registers
        let ends = terminations.chunks(TILE).zip(truncations.chunks(TILE));
        let tiles = rewards.chunks(TILE).zip(places.kinds().chunks(TILE)).zip(ends);
        for (totals, ((rewards, kinds), (terminations, truncations))) in
            returns.chunks_mut(TILE).zip(tiles)
        {
            let mut apart = [0.0; TILE];
            let ends = terminations.iter().zip(truncations);
            let places = totals.iter_mut().zip(rewards).zip(kinds).zip(ends).zip(&mut apart);
            for ((((total, &reward), &kind), (&terminated, &truncated)), distance) in places {
                let sum = discounted(gamma, *total, reward, kind);
                *distance = if kind == TRANSITION { sums.of(sum) } else { 0.0 };
                *total = if terminated | truncated == 0 { sum } else { 0.0 };
            }
            sums.add(&apart);
        }
        *distances = sums;
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
    use super::super::places::{FAILED, INCOMPLETE};
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
    fn moments_are_those_of_the_returns_of_transitions_in_any_number_of_rows() {
        const KINDS: [u8; 7] =
            [RESET, TRANSITION, SHOWN, TRANSITION, FAILED, TRANSITION, INCOMPLETE];
        let number = |seed: usize| f64::from(u32::try_from(seed * 7919 % 1009).expect("small"));
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-11 * b.abs();
        let counts = [1, 7, 63, 64, 65, 200].map(|count| [(count, true), (count, false)]);
        for (count, all_count) in counts.concat() {
            let kind = |row: usize| if all_count { TRANSITION } else { KINDS[row % KINDS.len()] };
            let kinds: Vec<u8> = (0..count).map(kind).collect();
            let rows: Vec<usize> = (0..count).collect();
            let [mut whole, mut parts] = [(); 2].map(|()| RewardNormalizer::new(count, 0.9, 1e-8));
            let (mut expected, mut returns) = (Moments::new(1), vec![0.0; count]);
            for step in 0..5 {
                let rewards: Vec<f64> = rows.iter().map(|row| number(row + 31 * step)).collect();
                let ended: Vec<u8> =
                    rows.iter().map(|row| u8::from((row + step).is_multiple_of(5))).collect();
                for (to, rows) in [(&mut whole, None), (&mut parts, Some(&rows[..]))] {
                    let results = StepResults {
                        places: Places::new(rows, &kinds, count),
                        rewards: &rewards,
                        terminations: if step == 2 { &ended } else { &[0; 200][..count] },
                        truncations: if step == 3 { &ended } else { &[0; 200][..count] },
                    };
                    to.normalize(&results, &mut vec![0.0; count]);
                }
                let mut counted = Vec::new();
                for (row, total) in returns.iter_mut().enumerate() {
                    match kinds[row] {
                        TRANSITION => {
                            *total = 0.9 * *total + rewards[row];
                            counted.push(*total);
                        }
                        SHOWN => {}
                        _ => *total = 0.0,
                    }
                    if matches!(step, 2 | 3) && ended[row] != 0 {
                        *total = 0.0;
                    }
                }
                expected.merge(&counted);
                assert_eq!((&whole.returns, whole.moments.count), (&returns, expected.count));
                assert!(close(whole.moments.mean[0], expected.mean[0]), "{count} rows");
                assert!(close(whole.moments.variance[0], expected.variance[0]), "{count} rows");
                assert_eq!((&parts.returns, &parts.moments), (&returns, &whole.moments));
                if all_count {
                    assert_eq!(whole.moments, expected, "the same order of additions");
                }
            }
        }
    }

    #[test]
    fn a_row_that_does_not_count_may_have_any_return() {
        let mut to = RewardNormalizer::new(3, 0.5, 0.0);
        to.returns = vec![f64::NAN, 1.0, f64::INFINITY];
        let results = StepResults {
            places: Places::new(None, &[SHOWN, TRANSITION, RESET], 3),
            rewards: &[f64::NAN, 2.0, f64::NAN],
            terminations: &[0; 3],
            truncations: &[0; 3],
        };
        let mut normalized = [9.0; 3];
        to.normalize(&results, &mut normalized);
        assert!(to.moments.mean[0].is_finite() && to.moments.variance[0].is_finite());
        assert!(to.returns[0].is_nan());
        assert_eq!(to.returns[1..], [2.5, 0.0]);
        assert_eq!([normalized[0], normalized[2]].map(f64::to_bits), [0; 2]);
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
