//! What the running episodes of all rows have summed up.

use super::kind::{FAILED, INCOMPLETE, RESET, TRANSITION};

/// The results of a step, place by place. Flags are bytes, of which every one but zero is true.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The environment of each place; `None` for all in order.
    pub rows: Option<&'a [usize]>,
    /// What each place is: [`TRANSITION`], [`RESET`] and so on.
    pub kinds: &'a [u8],
    /// Rewards.
    pub rewards: &'a [f64],
    /// Which flags were set.
    pub terminations: &'a [u8],
    /// Which flags were set.
    pub truncations: &'a [u8],
}

impl Places<'_> {
    /// Checks that a step fits `num_envs` rows; everything below counts on that.
    ///
    /// # Panics
    ///
    /// When the slices differ in length, or a row does not exist.
    pub(super) fn check(&self, num_envs: usize) {
        let places = self.kinds.len();
        check_rows(self.rows, places, num_envs);
        assert_eq!(self.rewards.len(), places, "rewards");
        assert_eq!(self.terminations.len(), places, "terminations");
        assert_eq!(self.truncations.len(), places, "truncations");
    }
}

/// Checks that places are those of rows.
///
/// # Panics
///
/// When they are not.
fn check_rows(rows: Option<&[usize]>, places: usize, num_envs: usize) {
    assert_eq!(rows.map_or(num_envs, <[usize]>::len), places, "kinds");
    for &row in rows.unwrap_or_default() {
        assert!(row < num_envs, "row {row} of {num_envs}");
    }
}

/// What a step did to episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// How many complete episodes ended.
    pub complete: usize,
    /// How many ended by a failure, or with a step that was lost.
    pub dropped: usize,
}

/// The returns and lengths of the running episodes.
///
/// The row of an episode that ended keeps its values: until it is reset, or in `SAME_STEP`, where the
/// row shows the next episode already, until the row's next batch.
#[derive(Debug, Clone)]
pub struct Running {
    is_same_step: bool,
    /// Sums of rewards.
    pub returns: Vec<f64>,
    /// Numbers of transitions.
    pub lengths: Vec<i64>,
    /// 1 where the values are those of an episode before the present one.
    pub stale: Vec<u8>,
    /// For each place of the last batch, 1 where it goes on with the values that the row had.
    pub(super) keeps: Vec<u8>,
    /// For each place of the last batch, 1 where it is a transition.
    pub(super) counts: Vec<u8>,
    /// For each place of the last batch, 1 where a complete episode ended.
    pub(super) ended: Vec<u8>,
}

impl Running {
    /// No row has had a step. In `SAME_STEP` the step that ends an episode begins the next one.
    pub fn new(num_envs: usize, is_same_step: bool) -> Self {
        Self {
            is_same_step,
            returns: vec![0.0; num_envs],
            lengths: vec![0; num_envs],
            stale: vec![0; num_envs],
            keeps: Vec::new(),
            counts: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// The number of rows.
    pub fn num_envs(&self) -> usize {
        self.lengths.len()
    }

    /// For each place of the last step, 1 where a complete episode ended.
    pub fn ended(&self) -> &[u8] {
        &self.ended
    }

    /// Whether the step that ends an episode begins the next one.
    pub fn is_same_step(&self) -> bool {
        self.is_same_step
    }

    /// A reset returned: places that it reset begin an episode, the others stay.
    ///
    /// # Panics
    ///
    /// When `rows` and `kinds` differ in length, or a row does not exist.
    pub fn begin(&mut self, rows: Option<&[usize]>, kinds: &[u8]) {
        check_rows(rows, kinds.len(), self.num_envs());
        self.counts.clear();
        self.counts.resize(kinds.len(), 0);
        self.ended.clear();
        self.ended.resize(kinds.len(), 0);
        self.tell_kept(rows, kinds);
        let keeps = &self.keeps;
        let (returns, lengths, stale) = (&mut self.returns, &mut self.lengths, &mut self.stale);
        each_place(rows, keeps.len(), |place, row| {
            returns[row] = if keeps[place] == 0 { 0.0 } else { returns[row] };
            lengths[row] *= i64::from(keeps[place]);
            stale[row] = 0;
        });
    }

    /// Adds a step.
    ///
    /// # Panics
    ///
    /// When the slices differ in length, or a row does not exist.
    pub fn step(&mut self, places: &Places<'_>) -> Ends {
        places.check(self.num_envs());
        let Places { rows, kinds, rewards, .. } = *places;
        self.tell_kept(rows, kinds);
        let ends = self.tell_ends(places);
        let (keeps, counts) = (&self.keeps[..], &self.counts[..]);
        let (returns, lengths) = (&mut self.returns[..], &mut self.lengths[..]);
        let Some(rows) = rows else {
            let flags = keeps.iter().zip(counts);
            for ((total, &reward), (&keeps, &counts)) in returns.iter_mut().zip(rewards).zip(flags)
            {
                *total = added(*total, reward, keeps, counts);
            }
            for (length, (&keeps, &counts)) in lengths.iter_mut().zip(keeps.iter().zip(counts)) {
                *length = *length * i64::from(keeps) + i64::from(counts);
            }
            return ends;
        };
        for (place, &row) in rows.iter().enumerate() {
            let (keeps, counts) = (keeps[place], counts[place]);
            returns[row] = added(returns[row], rewards[place], keeps, counts);
            lengths[row] = lengths[row] * i64::from(keeps) + i64::from(counts);
        }
        ends
    }

    /// Tells which places go on with their row's values.
    fn tell_kept(&mut self, rows: Option<&[usize]>, kinds: &[u8]) {
        let keeps = |kind: u8, stale: u8| {
            u8::from(kind != RESET) & u8::from(kind != INCOMPLETE) & u8::from(stale == 0)
        };
        self.keeps.clear();
        let stale = &self.stale;
        match rows {
            None => {
                let places = kinds.iter().zip(stale);
                self.keeps.extend(places.map(|(&kind, &stale)| keeps(kind, stale)));
            }
            Some(rows) => {
                let places = kinds.iter().zip(rows);
                self.keeps.extend(places.map(|(&kind, &row)| keeps(kind, stale[row])));
            }
        }
    }

    /// Tells which places are transitions, where episodes ended, and whose values are stale now.
    fn tell_ends(&mut self, places: &Places<'_>) -> Ends {
        let Places { rows, kinds, terminations, truncations, .. } = *places;
        let transition = |&kind: &u8| u8::from(kind == TRANSITION);
        self.counts.clear();
        self.counts.extend(kinds.iter().map(transition));
        let flags = terminations.iter().zip(truncations).zip(&self.counts);
        let over = |term: u8, trunc: u8| u8::from((term | trunc) != 0);
        self.ended.clear();
        self.ended.extend(flags.map(|((&term, &trunc), counts)| over(term, trunc) & counts));
        let failed = kinds.contains(&FAILED);
        let has_gaps = failed || kinds.contains(&INCOMPLETE);
        let is_dropped = |place: usize| {
            let is_over = over(terminations[place], truncations[place]) == 1;
            kinds[place] == FAILED || (kinds[place] == INCOMPLETE && is_over)
        };
        let dropped =
            if has_gaps { (0..kinds.len()).filter(|&place| is_dropped(place)).count() } else { 0 };
        let (ended, stale, is_same_step) = (&self.ended, &mut self.stale, self.is_same_step);
        match rows {
            None if is_same_step && !failed => stale.copy_from_slice(ended),
            _ => each_place(rows, kinds.len(), |place, row| {
                let is_over = ended[place] | u8::from(kinds[place] == FAILED);
                stale[row] = u8::from(is_same_step) & is_over;
            }),
        }
        Ends { complete: count(ended), dropped }
    }
}

/// The ones among bytes that are 0 or 1.
fn count(flags: &[u8]) -> usize {
    // Sums of bytes that cannot overflow become vector instructions.
    let sum = |flags: &[u8]| flags.iter().fold(0_u8, |sum, flag| sum.wrapping_add(*flag));
    flags.chunks(255).map(|flags| usize::from(sum(flags))).sum()
}

fn added(total: f64, reward: f64, keeps: u8, counts: u8) -> f64 {
    // Selected, not multiplied: what does not count may be NaN.
    let kept = if keeps == 0 { 0.0 } else { total };
    if counts == 0 { kept } else { kept + reward }
}

/// Calls `then(place, row)` for each place.
pub(super) fn each_place(
    rows: Option<&[usize]>,
    places: usize,
    mut then: impl FnMut(usize, usize),
) {
    match rows {
        None => (0..places).for_each(|place| then(place, place)),
        Some(rows) => rows.iter().enumerate().for_each(|(place, &row)| then(place, row)),
    }
}
