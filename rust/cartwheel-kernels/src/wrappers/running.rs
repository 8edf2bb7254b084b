//! The sums of the running episodes of all rows.

use super::bits::each_set;
use super::places::{At, FAILED, INCOMPLETE, Places, RESET, StepResults, TRANSITION};
use super::slot::Slot;
use cartwheel_core::simd::{self, Loops};

/// The effect of a step on episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Number of complete episodes that ended.
    pub complete: usize,
    /// Number of episodes that ended by a failure, or with a step that was lost.
    pub dropped: usize,
}

/// A place that is not just one more transition, with the values before the batch that it goes on with.
#[derive(Debug, Clone, Copy)]
pub(super) struct OtherPlace {
    pub(super) at: At,
    pub(super) kind: u8,
    /// Whether the place goes on with the values that its row had.
    pub(super) keeps: bool,
    total: f64,
    length: i64,
}

impl OtherPlace {
    /// Whether the place is a transition.
    pub(super) fn counts(&self) -> bool {
        self.kind == TRANSITION
    }
}

/// The returns and lengths of the running episodes.
///
/// The row of an episode that ended keeps its values: until it is reset, or in `SAME_STEP`, where the
/// row shows the next episode already, until the row's next batch.
///
/// Most places of a batch are transitions. Their rewards are added in a loop without branches, and the
/// others are put right afterwards. Lengths are differences of numbers of steps, so that the rows that
/// go on need not be touched.
#[derive(Debug, Clone)]
pub struct Running {
    is_same_step: bool,
    returns: Vec<f64>,
    /// The steps of all rows so far.
    steps: i64,
    /// The number of `steps` before each row's episode, whose length is the difference. A step of some
    /// rows adds nothing to `steps`, and lengthens their episodes at the front.
    begun: Vec<i64>,
    /// 1 where the values are those of an episode before the present one.
    stale: Vec<u8>,
    /// `stale` of the rows of a batch in parts.
    gathered: Vec<u8>,
    pub(super) odd: Vec<OtherPlace>,
    pub(super) ended: Vec<At>,
    pub(super) over: Vec<At>,
}

impl Running {
    /// No row has had a step. In `SAME_STEP` the step that ends an episode begins the next one.
    pub fn new(num_envs: usize, is_same_step: bool) -> Self {
        Self {
            is_same_step,
            returns: vec![0.0; num_envs],
            steps: 0,
            begun: vec![0; num_envs],
            stale: vec![0; num_envs],
            gathered: Vec::new(),
            odd: Vec::new(),
            ended: Vec::new(),
            over: Vec::new(),
        }
    }

    /// The number of rows.
    pub fn num_envs(&self) -> usize {
        self.returns.len()
    }

    /// Whether the step that ends an episode begins the next one.
    pub fn is_same_step(&self) -> bool {
        self.is_same_step
    }

    /// The sum of the rewards of each row.
    pub fn returns(&self) -> &[f64] {
        &self.returns
    }

    /// The number of transitions of each row.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = i64> {
        self.begun.iter().map(|begun| self.steps.wrapping_sub(*begun)) // no check to wait for
    }

    /// The number of transitions of one row.
    ///
    /// # Panics
    ///
    /// When the row does not exist.
    pub fn length(&self, row: usize) -> i64 {
        self.steps - self.begun[row]
    }

    /// 1 for each row whose values are those of an episode before the present one.
    pub fn stale(&self) -> &[u8] {
        &self.stale
    }

    /// Writes the return, the length and the mean reward of each row, all of the three; the mean is 0
    /// where a row has no step. One pass: a processor writes numbers while it divides.
    ///
    /// # Panics
    ///
    /// When there is not room for each row.
    pub fn write<F: Slot<f64>, I: Slot<i64>>(
        &self,
        returns: &mut [F],
        lengths: &mut [I],
        means: &mut [F],
    ) {
        let rooms = [returns.len(), lengths.len(), means.len()];
        assert_eq!(rooms, [self.num_envs(); 3], "room for the values of each row");
        simd::run(Values { running: self, returns, lengths, means });
    }

    /// The mean reward of one row; 0 if it has no step.
    ///
    /// # Panics
    ///
    /// When the row does not exist.
    pub fn mean_reward(&self, row: usize) -> f64 {
        self.returns[row] / to_f64(self.length(row)).max(1.0)
    }

    /// Where complete episodes ended in the last step, by place.
    pub fn ended(&self) -> &[At] {
        &self.ended
    }

    /// Goes on with the values of another run.
    ///
    /// # Panics
    ///
    /// When they are not those of as many rows.
    pub fn resume(&mut self, returns: Vec<f64>, lengths: Vec<i64>, stale: Vec<u8>) {
        let num_envs = self.num_envs();
        assert_eq!([returns.len(), lengths.len(), stale.len()], [num_envs; 3], "rows");
        (self.returns, self.stale, self.steps) = (returns, stale, 0);
        for (row, length) in lengths.into_iter().enumerate() {
            self.set_length(row, length);
        }
    }

    /// A reset returned: places that it reset begin an episode, the others stay.
    pub fn begin(&mut self, places: Places<'_>) {
        self.ended.clear();
        self.over.clear();
        self.find_odd(places);
        self.put_odd_right(|_| 0.0);
    }

    /// Adds a step.
    ///
    /// # Panics
    ///
    /// When the slices differ in length.
    pub fn step(&mut self, results: &StepResults<'_>) -> Ends {
        results.check();
        let StepResults { places, rewards, .. } = *results;
        self.find_odd(places);
        let ends = self.find_ends(results);
        match places.rows() {
            None => {
                simd::run(Added { returns: &mut self.returns, rewards });
                self.steps += 1;
            }
            Some(rows) => {
                for (&row, reward) in rows.iter().zip(rewards) {
                    self.returns[row] += reward;
                    self.begun[row] -= 1;
                }
            }
        }
        self.put_odd_right(|place| rewards[place]);
        if self.is_same_step {
            let ended = self.ended.iter().map(|at| at.row);
            let failed = self.odd.iter().filter(|odd| odd.kind == FAILED).map(|odd| odd.at.row);
            ended.chain(failed).for_each(|row| self.stale[row] = 1);
        }
        ends
    }

    /// Finds the places that are not transitions, or do not go on with their row's values.
    fn find_odd(&mut self, places: Places<'_>) {
        let Self { returns, steps, begun, stale, gathered, odd, .. } = self;
        let stale = match places.rows() {
            None => &**stale,
            Some(rows) => {
                gathered.clear();
                gathered.extend(rows.iter().map(|&row| stale[row]));
                &**gathered
            }
        };
        odd.clear();
        each_set(places.kinds(), stale, |place| {
            let (at, kind) = (places.at(place), places.kinds()[place]);
            let keeps = kind != RESET && kind != INCOMPLETE && stale[place] == 0;
            let (total, length) =
                if keeps { (returns[at.row], *steps - begun[at.row]) } else { (0.0, 0) };
            odd.push(OtherPlace { at, kind, keeps, total, length });
        });
    }

    /// Finds the places whose episodes ended.
    fn find_ends(&mut self, results: &StepResults<'_>) -> Ends {
        let StepResults { places, terminations, truncations, .. } = *results;
        let Self { ended, over, .. } = self;
        ended.clear();
        over.clear();
        let mut dropped = 0;
        each_set(terminations, truncations, |place| {
            over.push(places.at(place));
            match places.kinds()[place] {
                TRANSITION => ended.push(places.at(place)),
                FAILED | INCOMPLETE => dropped += 1,
                _ => {}
            }
        });
        Ends { complete: ended.len(), dropped }
    }

    fn set_length(&mut self, row: usize, length: i64) {
        self.begun[row] = self.steps - length;
    }

    fn put_odd_right(&mut self, reward: impl Fn(usize) -> f64) {
        let odd = std::mem::take(&mut self.odd);
        for odd in &odd {
            let row = odd.at.row;
            let (mut total, mut length) = (odd.total, odd.length);
            if odd.counts() {
                total += reward(odd.at.place);
                length += 1;
            }
            self.returns[row] = total;
            self.set_length(row, length);
            self.stale[row] = 0;
        }
        self.odd = odd;
    }
}

/// A length of an episode, below 2^51. Processors convert integers of 64 bits one at a time; these
/// become the last bits of a number whose last bit counts 1.
fn to_f64(length: i64) -> f64 {
    const ZERO: f64 = 6_755_399_441_055_744.0; // 2^52 + 2^51
    f64::from_bits(ZERO.to_bits().wrapping_add(length.cast_unsigned())) - ZERO
}

/// Values of all rows.
struct Values<'a, F, I> {
    running: &'a Running,
    returns: &'a mut [F],
    lengths: &'a mut [I],
    means: &'a mut [F],
}

impl<F: Slot<f64>, I: Slot<i64>> Loops for Values<'_, F, I> {
    #[inline(always)]
    fn run(self) {
        let Self { running: Running { returns, steps, begun, .. }, .. } = self;
        let rooms = self.returns.iter_mut().zip(self.lengths).zip(self.means);
        let rows = returns.iter().zip(begun);
        for (((return_room, length_room), mean_room), (&total, &begun)) in rooms.zip(rows) {
            let length = steps.wrapping_sub(begun); // no check to wait for
            *return_room = F::of(total);
            *length_room = I::of(length);
            *mean_room = F::of(total / to_f64(length).max(1.0));
        }
    }
}

/// Adds rewards to returns.
struct Added<'a> {
    returns: &'a mut [f64],
    rewards: &'a [f64],
}

impl Loops for Added<'_> {
    #[inline(always)]
    fn run(self) {
        let rows = self.returns.iter_mut().zip(self.rewards);
        rows.for_each(|(total, reward)| *total += reward);
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::SHOWN;
    use super::*;

    fn step(running: &mut Running, rows: Option<&[usize]>, kinds: &[u8], over: &[u8]) -> Ends {
        let rewards = [1.0, 2.0, 3.0, 4.0, 5.0];
        let rewards = &rewards[..kinds.len()];
        let truncations = vec![0; kinds.len()];
        let places = Places::new(rows, kinds, running.num_envs());
        let truncations = &truncations;
        running.step(&StepResults { places, rewards, terminations: over, truncations })
    }

    /// The returns, lengths and mean rewards of all rows, which must be written.
    fn values(running: &Running) -> [Vec<f64>; 3] {
        let count = running.num_envs();
        let [mut returns, mut means] = [(); 2].map(|()| vec![f64::NAN; count]);
        let mut lengths = vec![-1; count];
        running.write(&mut returns, &mut lengths, &mut means);
        let one_by_one = (0..count).map(|row| running.mean_reward(row));
        assert!(means.iter().copied().eq(one_by_one));
        [returns, lengths.into_iter().map(to_f64).collect(), means]
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "they are below 2^51")]
    fn lengths_are_converted_exactly() {
        for length in [0, 1, 2, 3, 500, 1 << 31, (1 << 51) - 1] {
            assert_eq!(to_f64(length).to_bits(), (length as f64).to_bits());
        }
    }

    #[test]
    fn kinds_decide_what_is_summed_up() {
        let mut running = Running::new(5, false);
        step(&mut running, None, &[TRANSITION; 5], &[0; 5]);
        let kinds = [TRANSITION, RESET, SHOWN, FAILED, INCOMPLETE];
        let ends = step(&mut running, None, &kinds, &[0, 0, 1, 1, 1]);
        assert_eq!(ends, Ends { complete: 0, dropped: 2 });
        assert_eq!(running.returns(), [2.0, 0.0, 3.0, 4.0, 0.0]);
        assert_eq!(running.lengths().collect::<Vec<_>>(), [2, 0, 1, 1, 0]);
        assert_eq!(
            values(&running),
            [
                running.returns().to_vec(),
                vec![2.0, 0.0, 1.0, 1.0, 0.0],
                vec![1.0, 0.0, 3.0, 4.0, 0.0]
            ]
        );
    }

    #[test]
    fn an_ended_row_keeps_its_values_until_the_next_episode_of_the_mode() {
        for is_same_step in [false, true] {
            let mut running = Running::new(2, is_same_step);
            let ends = step(&mut running, None, &[TRANSITION; 2], &[1, 0]);
            assert_eq!(ends, Ends { complete: 1, dropped: 0 });
            assert_eq!(running.ended(), [At { place: 0, row: 0 }]);
            assert_eq!(running.returns(), [1.0, 2.0]);
            let next = if is_same_step { TRANSITION } else { RESET };
            step(&mut running, None, &[next, TRANSITION], &[0, 0]);
            assert_eq!(running.returns(), [if is_same_step { 1.0 } else { 0.0 }, 4.0]);
        }
    }

    #[test]
    fn the_step_after_a_failure_begins_an_episode_in_same_step_mode() {
        let mut running = Running::new(2, true);
        step(&mut running, None, &[TRANSITION; 2], &[0; 2]);
        let ends = step(&mut running, None, &[FAILED, TRANSITION], &[1, 0]);
        assert_eq!(ends, Ends { complete: 0, dropped: 1 });
        assert_eq!((running.returns(), running.stale()), (&[1.0, 4.0][..], &[1, 0][..]));
        step(&mut running, None, &[TRANSITION; 2], &[0; 2]);
        assert_eq!(running.returns(), [1.0, 6.0]);
        assert!(running.lengths().eq([1, 3]));
    }

    #[test]
    fn rewards_that_do_not_count_may_be_anything() {
        let mut running = Running::new(2, true);
        for kinds in [[TRANSITION; 2], [SHOWN, FAILED], [RESET; 2]] {
            let rewards = if kinds[0] == TRANSITION { [1.0; 2] } else { [f64::NAN; 2] };
            let flags = [0; 2];
            running.step(&StepResults {
                places: Places::new(None, &kinds, 2),
                rewards: &rewards,
                terminations: &flags,
                truncations: &flags,
            });
            assert!(running.returns().iter().all(|total| !total.is_nan()));
        }
    }

    #[test]
    fn parts_of_a_batch_in_any_order_give_the_sums_of_whole_batches() {
        for is_same_step in [false, true] {
            let (mut whole, mut parts) =
                (Running::new(19, is_same_step), Running::new(19, is_same_step));
            for turn in 0..40_u8 {
                let kind = |row: u8| if turn % 3 == 0 { 0 } else { ((row * 7 + turn) % 11).min(4) };
                let kinds: Vec<u8> = (0..19).map(kind).collect();
                let over: Vec<u8> = (0..19).map(|row| u8::from((row + turn) % 4 == 0)).collect();
                let rewards: Vec<f64> =
                    (0..19).map(|row: u8| f64::from(row) * f64::from(turn)).collect();
                let none = [0; 19];
                let ends = whole.step(&StepResults {
                    places: Places::new(None, &kinds, 19),
                    rewards: &rewards,
                    terminations: &over,
                    truncations: &none,
                });
                let order: Vec<usize> =
                    (0..19).map(|place| (place * 8 + usize::from(turn)) % 19).collect();
                let mut found = Ends { complete: 0, dropped: 0 };
                for rows in order.chunks(6) {
                    let [kinds, over] = [&kinds, &over]
                        .map(|of_rows| rows.iter().map(|&row| of_rows[row]).collect::<Vec<u8>>());
                    let rewards: Vec<f64> = rows.iter().map(|&row| rewards[row]).collect();
                    let part = parts.step(&StepResults {
                        places: Places::new(Some(rows), &kinds, 19),
                        rewards: &rewards,
                        terminations: &over,
                        truncations: &none[..rows.len()],
                    });
                    found.complete += part.complete;
                    found.dropped += part.dropped;
                }
                assert_eq!(found, ends);
                assert_eq!(parts.returns(), whole.returns());
                assert!(parts.lengths().eq(whole.lengths()));
                assert_eq!(values(&parts), values(&whole));
                assert_eq!(parts.stale(), whole.stale());
            }
        }
    }
}
