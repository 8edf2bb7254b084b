//! Observations with mean 0 and variance 1.

use cartwheel_core::AutoresetMode;

use super::moments::Moments;
use super::places::{EndedPlaces, FAILED, Places, RESET, SHOWN, is_stepped};
use super::slot::Slot;
use cartwheel_core::simd::{self, Loops};

/// Numbers that are normalized together, a multiple of the usual numbers of columns: enough that the
/// compiler makes a loop of vectors, and not a list of single conversions.
const TILE: usize = 32;

/// Normalizes the observations of a vector environment by their running moments, and remembers
/// what each row last showed.
#[derive(Debug, Clone)]
pub struct ObservationNormalizer {
    /// In `NEXT_STEP` a batch is one update; otherwise stepped rows are the first, and reset rows
    /// the second.
    is_one_update: bool,
    /// The number that is added to the variances.
    pub epsilon: f64,
    /// Of everything seen while `updates` was true.
    pub moments: Moments,
    /// The last observation of each environment.
    pub shown: Vec<f32>,
    /// Whether observations change the moments.
    pub updates: bool,
    /// Places of the second update.
    later: Vec<usize>,
    /// One over the deviation of each column.
    scale: Vec<f64>,
}

impl ObservationNormalizer {
    /// Before any observation, of which each has `columns` numbers.
    pub fn new(num_envs: usize, columns: usize, epsilon: f64, mode: AutoresetMode) -> Self {
        Self {
            is_one_update: mode == AutoresetMode::NextStep,
            epsilon,
            moments: Moments::new(columns),
            shown: vec![0.0; num_envs * columns],
            updates: true,
            later: Vec::new(),
            scale: vec![0.0; columns],
        }
    }

    /// Counts and normalizes the observations of a batch; `shown` has the results.
    ///
    /// Observations of steps are new, except where the environment failed or the row was left alone.
    /// The true observation of a place that ended an episode is its final one, if that is known. It
    /// is normalized into `normalized_finals`, or what the row last showed if the environment
    /// failed. The place itself shows the first observation of the next episode, which is new, unless
    /// the row is left alone.
    ///
    /// # Panics
    ///
    /// When the arrays do not have a row for each place or each final observation.
    pub fn normalize<T: Copy + Into<f64>>(
        &mut self,
        places: Places<'_>,
        observations: &[T],
        ends: EndedPlaces<'_>,
        finals: &[T],
        normalized_finals: &mut [f32],
        gathered: &mut Vec<T>,
    ) {
        let columns = self.moments.mean.len();
        assert_eq!(observations.len(), places.len() * columns, "observations");
        assert_eq!(finals.len(), ends.num_finals() * columns, "final observations");
        assert_eq!(normalized_finals.len(), finals.len(), "room for final observations");
        if columns == 0 {
            return;
        }
        let is_one_update = self.is_one_update;
        let counted = |kind| counts(is_one_update, kind);
        let row = |number: usize| number * columns..(number + 1) * columns;
        gathered.clear();
        self.later.clear();
        if places.are_all() && ends.have_finals() && places.all_are(counted) {
            // Most steps in which episodes end: a pass of vectors, and few rows that are another's.
            gathered.extend_from_slice(observations);
            for (number, place) in ends.finals().enumerate() {
                gathered[row(place)].copy_from_slice(&finals[row(number)]);
            }
            self.later.extend(ends.places());
            self.merge(gathered);
            normalize(gathered, &self.moments.mean, &self.scale, &Unlimited, &mut self.shown);
            for (number, place) in ends.finals().enumerate() {
                normalized_finals[row(number)].copy_from_slice(&self.shown[row(place)]);
            }
        } else {
            self.normalize_counted(places, observations, ends, finals, normalized_finals, gathered);
        }
        if self.later.is_empty() {
            return;
        }
        gathered.clear();
        for &place in &self.later {
            gathered.extend_from_slice(&observations[row(place)]);
        }
        self.merge(gathered);
        for &place in &self.later {
            let room = &mut self.shown[row(places.row(place))];
            normalize(&observations[row(place)], &self.moments.mean, &self.scale, &Unlimited, room);
        }
    }

    /// The first update of [`normalize`](Self::normalize), row by row; `later` gets the others.
    fn normalize_counted<T: Copy + Into<f64>>(
        &mut self,
        places: Places<'_>,
        observations: &[T],
        ends: EndedPlaces<'_>,
        finals: &[T],
        normalized_finals: &mut [f32],
        gathered: &mut Vec<T>,
    ) {
        let (is_one_update, columns) = (self.is_one_update, self.moments.mean.len());
        let counted = |kind| counts(is_one_update, kind);
        let row = |number: usize| number * columns..(number + 1) * columns;
        let (mut walk, mut final_places, mut number) = (ends.walk(), ends.finals().peekable(), 0);
        for (place, &kind) in places.kinds().iter().enumerate() {
            let has_ended = walk.at(place);
            if has_ended && final_places.peek() == Some(&place) {
                final_places.next();
                if kind != FAILED {
                    gathered.extend_from_slice(&finals[row(number)]);
                }
                number += 1;
            }
            if (has_ended && kind != SHOWN) || (kind == RESET && !counted(kind)) {
                self.later.push(place);
            } else if counted(kind) {
                gathered.extend_from_slice(&observations[row(place)]);
            }
        }
        self.merge(gathered);
        for (number, place) in ends.finals().enumerate() {
            let room = &mut normalized_finals[row(number)];
            if places.kinds()[place] == FAILED {
                room.copy_from_slice(&self.shown[row(places.row(place))]);
            } else {
                normalize(&finals[row(number)], &self.moments.mean, &self.scale, &Unlimited, room);
            }
        }
        let mut walk = ends.walk();
        for (place, &kind) in places.kinds().iter().enumerate() {
            if !walk.at(place) && counted(kind) {
                let room = &mut self.shown[row(places.row(place))];
                normalize(
                    &observations[row(place)],
                    &self.moments.mean,
                    &self.scale,
                    &Unlimited,
                    room,
                );
            }
        }
    }

    /// Whether a batch is one of all rows whose observations all count, in one update. It may go
    /// through [`normalize_all`](Self::normalize_all).
    pub fn counts_all(&self, places: Places<'_>, ends: EndedPlaces<'_>) -> bool {
        let counted = |kind| counts(self.is_one_update, kind);
        places.are_all() && ends.is_empty() && places.all_are(counted)
    }

    /// Counts the observations of a batch that [`counts_all`](Self::counts_all), and writes the bytes
    /// of the results, within `limit` if there is one, all of `out`. `shown` stays: it is behind until
    /// [`show`](Self::show), which needs the copy of the observations.
    ///
    /// # Panics
    ///
    /// When there is not one observation for each row, or room for it.
    pub fn normalize_all<T: Copy + Into<f64>, B: Slot<u8>>(
        &mut self,
        observations: &[T],
        copy: &mut [T],
        limit: Option<f32>,
        out: &mut [B],
    ) {
        assert_eq!(observations.len(), self.shown.len(), "observations");
        assert_eq!(out.len(), size_of_val(&self.shown[..]), "room for observations");
        if out.is_empty() {
            return;
        }
        if self.updates {
            self.moments.merge_and_copy(observations, copy);
        } else {
            copy.copy_from_slice(observations);
        }
        self.scale();
        let (mean, scale, out) = (&self.moments.mean, &self.scale, out.as_chunks_mut().0);
        match limit {
            None => normalize(copy, mean, scale, &Unlimited, out),
            Some(limit) => normalize(copy, mean, scale, &Within(limit), out),
        }
    }

    /// Writes `shown` of the observations of the last batch, which went through
    /// [`normalize_all`](Self::normalize_all): the same results once more.
    ///
    /// # Panics
    ///
    /// When there is not one observation for each row.
    pub fn show<T: Copy + Into<f64>>(&mut self, observations: &[T]) {
        assert_eq!(observations.len(), self.shown.len(), "observations");
        if !observations.is_empty() {
            normalize(observations, &self.moments.mean, &self.scale, &Unlimited, &mut self.shown);
        }
    }

    /// Writes the bytes of the last observation of the environment of each place, within `limit` if there
    /// is one, all of `out`.
    ///
    /// # Panics
    ///
    /// When there is not room for each place.
    pub fn write_shown<B: Slot<u8>>(&self, places: Places<'_>, limit: Option<f32>, out: &mut [B]) {
        let columns = self.moments.mean.len();
        assert_eq!(out.len(), places.len() * columns * size_of::<f32>(), "room for observations");
        let rooms = out.as_chunks_mut().0;
        let Some(rows) = places.rows() else { return write_within(&self.shown, limit, rooms) };
        for (&row, room) in rows.iter().zip(rooms.chunks_exact_mut(columns.max(1))) {
            write_within(&self.shown[row * columns..][..columns], limit, room);
        }
    }

    fn merge<T: Copy + Into<f64>>(&mut self, rows: &[T]) {
        if self.updates {
            self.moments.merge(rows);
        }
        self.scale();
    }

    /// Computes the scale anew.
    fn scale(&mut self) {
        for (scale, variance) in self.scale.iter_mut().zip(&self.moments.variance) {
            *scale = 1.0 / (variance + self.epsilon).sqrt();
        }
    }
}

/// Whether the observation of a place of this kind is part of the first update.
#[inline(always)]
fn counts(is_one_update: bool, kind: u8) -> bool {
    is_stepped(kind) || (is_one_update && kind == RESET)
}

/// Room for a result.
trait Room {
    fn put(&mut self, result: f32);
}

impl Room for f32 {
    #[inline(always)]
    fn put(&mut self, result: f32) {
        *self = result;
    }
}

impl<B: Slot<u8>> Room for [B; size_of::<f32>()] {
    #[inline(always)]
    fn put(&mut self, result: f32) {
        *self = result.to_ne_bytes().map(B::of);
    }
}

/// Limits of results.
trait Limits {
    /// The result, or the limit that it is beyond.
    fn of(&self, result: f32) -> f32;
}

/// None.
struct Unlimited;

impl Limits for Unlimited {
    #[inline(always)]
    fn of(&self, result: f32) -> f32 {
        result
    }
}

/// This number, and its negative. NaN stays.
struct Within(f32);

impl Limits for Within {
    #[inline(always)]
    fn of(&self, result: f32) -> f32 {
        let above = if result < -self.0 { -self.0 } else { result };
        if above > self.0 { self.0 } else { above }
    }
}

/// Replaces numbers beyond `limit`, or its negative, by it, if there is one.
pub fn limit_to(limit: Option<f32>, numbers: &mut [f32]) {
    if let Some(limit) = limit {
        for number in numbers {
            *number = Within(limit).of(*number);
        }
    }
}

/// Writes the bytes of numbers, within a limit if there is one.
fn write_within<R: Room>(numbers: &[f32], limit: Option<f32>, rooms: &mut [R]) {
    let rooms = rooms.iter_mut().zip(numbers);
    match limit {
        None => rooms.for_each(|(room, &number)| room.put(number)),
        Some(limit) => rooms.for_each(|(room, &number)| room.put(Within(limit).of(number))),
    }
}

/// Writes `(number - mean) * scale`, for rows that lie one after the other.
fn normalize<T: Copy + Into<f64>, L: Limits, R: Room>(
    rows: &[T],
    mean: &[f64],
    scale: &[f64],
    limits: &L,
    out: &mut [R],
) {
    let normalized = Normalized { rows, mean, scale, limits, out };
    if rows.len() == mean.len() {
        normalized.run(); // one row: the look at the processor takes longer
    } else {
        simd::run(normalized);
    }
}

struct Normalized<'a, T, L, R> {
    rows: &'a [T],
    mean: &'a [f64],
    scale: &'a [f64],
    limits: &'a L,
    out: &'a mut [R],
}

impl<T: Copy + Into<f64>, L: Limits, R: Room> Loops for Normalized<'_, T, L, R> {
    #[inline(always)]
    fn run(self) {
        let Self { rows, mean, scale, limits, out } = self;
        let columns = mean.len();
        if TILE.is_multiple_of(columns) && rows.len() > columns {
            let mean: [f64; TILE] = std::array::from_fn(|lane| mean[lane % columns]);
            let scale: [f64; TILE] = std::array::from_fn(|lane| scale[lane % columns]);
            let ((tiles, rest), (rooms, others)) = (rows.as_chunks(), out.as_chunks_mut());
            for (tile, room) in tiles.iter().zip(rooms) {
                let (tile, room): (&[T; TILE], &mut [R; TILE]) = (tile, room);
                write::<T, L, R>(tile, &mean, &scale, limits, room);
            }
            write(rest, &mean, &scale, limits, others);
            return;
        }
        let count = if rows.len() > columns { 2 * TILE / columns } else { 0 };
        let repeated = [mean, scale].map(|numbers| numbers.repeat(count));
        let are_short = count > 1; // such rows are written together, too
        let [mean, scale] =
            if are_short { [&repeated[0][..], &repeated[1]] } else { [mean, scale] };
        for (rows, out) in rows.chunks(mean.len()).zip(out.chunks_mut(mean.len())) {
            write(rows, mean, scale, limits, out);
        }
    }
}

/// Normalizes numbers that have a mean and a scale each.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "observations are emitted as float32")]
fn write<T: Copy + Into<f64>, L: Limits, R: Room>(
    numbers: &[T],
    mean: &[f64],
    scale: &[f64],
    limits: &L,
    out: &mut [R],
) {
    for (((&number, mean), scale), room) in numbers.iter().zip(mean).zip(scale).zip(out) {
        room.put(limits.of(((number.into() - mean) * scale) as f32));
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::TRANSITION;
    use super::*;

    /// Normalizes a batch of all rows and returns the final observations.
    fn step(
        to: &mut ObservationNormalizer,
        kinds: &[u8],
        observations: &[f64],
        ends: (&[i64], &[i64], &[f64]),
    ) -> Vec<f32> {
        let columns = to.moments.mean.len();
        let num_envs = to.shown.len() / columns;
        let places = Places::new(None, kinds, num_envs);
        let ended = EndedPlaces::new(ends.0, ends.1, num_envs).expect("places");
        let mut finals = vec![0.0; ends.2.len()];
        if !to.counts_all(places, ended) {
            to.normalize(places, observations, ended, ends.2, &mut finals, &mut Vec::new());
            return finals;
        }
        let mut other = to.clone();
        other.normalize(places, observations, ended, &[], &mut [], &mut Vec::new());
        let mut bytes = vec![0; size_of_val(&to.shown[..])];
        let mut copy = vec![-1.0; observations.len()];
        let numbers = |bytes: &[u8]| -> Vec<f32> {
            bytes.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect()
        };
        let (mut limited, mut clipped) = (to.clone(), bytes.clone());
        limited.normalize_all(observations, &mut copy, Some(0.75), &mut clipped);
        to.normalize_all(observations, &mut copy, None, &mut bytes);
        assert_eq!(copy, observations);
        to.show(observations);
        assert_eq!(numbers(&bytes), to.shown, "results are those that are shown");
        let nearest: Vec<f32> = to.shown.iter().map(|shown| shown.clamp(-0.75, 0.75)).collect();
        assert_eq!((numbers(&clipped), &limited.moments), (nearest.clone(), &to.moments));
        to.write_shown(places, Some(0.75), &mut clipped);
        assert_eq!(numbers(&clipped), nearest);
        to.write_shown(places, None, &mut clipped);
        assert_eq!(clipped, bytes);
        assert_eq!((&to.shown, &to.moments), (&other.shown, &other.moments), "of both ways");
        finals
    }

    #[test]
    fn same_step_is_a_step_and_then_a_masked_reset_to_the_bit() {
        for columns in [1, 3, 4, 600] {
            let make = |mode| ObservationNormalizer::new(5, columns, 1e-8, mode);
            let (mut same, mut disabled) =
                (make(AutoresetMode::SameStep), make(AutoresetMode::Disabled));
            let number = |seed: usize| f64::from(u32::try_from(seed * 7919 % 1009).expect("small"));
            let rows =
                |seed: usize| (0..5 * columns).map(|at| number(seed + at)).collect::<Vec<_>>();
            for seed in 0..20 {
                let (stepped, begun) = (rows(seed), rows(seed + 500));
                let (mut shows, mut finals) = (stepped.clone(), Vec::new());
                for row in [1, 4] {
                    let row = row * columns..(row + 1) * columns;
                    finals.extend_from_slice(&stepped[row.clone()]);
                    shows[row.clone()].copy_from_slice(&begun[row]);
                }
                let ends = (&[1, 4][..], &[1, 4][..], &finals[..]);
                let normalized = step(&mut same, &[TRANSITION; 5], &shows, ends);
                step(&mut disabled, &[TRANSITION; 5], &stepped, (&[], &[], &[]));
                let then = [&disabled.shown[columns..2 * columns], &disabled.shown[4 * columns..]];
                assert_eq!(normalized, then.concat());
                let kinds = [SHOWN, RESET, SHOWN, SHOWN, RESET];
                step(&mut disabled, &kinds, &shows, (&[], &[], &[]));
                assert_eq!(same.shown, disabled.shown);
                assert_eq!(same.moments, disabled.moments);
            }
        }
    }

    #[test]
    fn rows_that_failed_or_were_left_alone_show_what_they_showed() {
        let mut to = ObservationNormalizer::new(3, 2, 1e-8, AutoresetMode::SameStep);
        step(&mut to, &[RESET; 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], (&[], &[], &[]));
        let before = to.clone();
        step(&mut to, &[SHOWN, FAILED, SHOWN], &[9.0; 6], (&[], &[], &[]));
        assert_eq!((&to.shown, &to.moments), (&before.shown, &before.moments));
        let ends = (&[1][..], &[1][..], &[9.0, 9.0][..]);
        let finals = step(&mut to, &[SHOWN, FAILED, SHOWN], &[7.0; 6], ends);
        assert_eq!(finals, before.shown[2..4]);
        assert_eq!(to.moments.count.to_bits(), (before.moments.count + 1.0).to_bits());
        assert_eq!(to.shown[..2], before.shown[..2]);
    }

    #[test]
    fn a_row_whose_episode_ended_and_that_shows_no_next_one_counts_its_last_observation_alone() {
        let mut to = ObservationNormalizer::new(2, 1, 1e-8, AutoresetMode::SameStep);
        step(&mut to, &[RESET; 2], &[1.0, 2.0], (&[], &[], &[]));
        let mut other = to.clone();
        let ends = (&[0][..], &[0][..], &[3.0][..]);
        let finals = step(&mut to, &[SHOWN, TRANSITION], &[0.0, 4.0], ends);
        step(&mut other, &[TRANSITION; 2], &[3.0, 4.0], (&[], &[], &[]));
        assert_eq!((&finals[..], &to.moments), (&other.shown[..1], &other.moments));
        assert_eq!(to.shown[1..], other.shown[1..]);
    }

    #[test]
    fn some_rows_show_what_they_showed_in_the_order_of_their_places() {
        let mut to = ObservationNormalizer::new(3, 2, 1e-8, AutoresetMode::Disabled);
        to.shown = vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let mut bytes = [0; 4 * size_of::<f32>()];
        to.write_shown(Places::new(Some(&[2, 0]), &[SHOWN; 2], 3), Some(4.5), &mut bytes);
        let numbers = bytes.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes));
        assert!(numbers.eq([4.0, 4.5, 0.0, 1.0]));
    }

    #[test]
    fn without_updates_the_moments_stay() {
        let mut to = ObservationNormalizer::new(2, 1, 0.0, AutoresetMode::NextStep);
        to.updates = false;
        step(&mut to, &[RESET, TRANSITION], &[5.0, -3.0], (&[], &[], &[]));
        assert_eq!((&to.moments, &to.shown[..]), (&Moments::new(1), &[5.0, -3.0][..]));
    }
}
