//! Mean and variance of all numbers seen so far.

use cartwheel_core::simd::{self, Loops};

/// Numbers for each turn of the loop: enough to hide the latency of additions.
const LANES: usize = 8;
/// The same where the number of columns does not divide [`LANES`].
const MANY_LANES: usize = 64;
/// Columns that are summed together; their sums stay in the first cache.
const COLUMNS: usize = 512;

/// Running mean and variance of each column of rows of numbers.
///
/// They begin as Gymnasium's, with mean 0, variance 1 and a count of 1e-4. Each batch is merged by
/// the formulas of Chan, Golub and `LeVeque` (1979), *Updating formulae and a pairwise algorithm for
/// computing sample variances*.
///
/// The moments of a batch are computed in one pass, from the distances `d` to its first row:
/// `n · variance = Σ d² − (Σ d)² / n`. The first row is at most `sqrt(n · variance)` away from the
/// mean, whatever the numbers are, so the subtraction loses at most a factor of `n + 1` of the
/// precision of `f64`.
///
/// The order of all additions follows from the numbers of rows and columns alone, so equal rows in
/// equal order give equal bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// The mean of each column.
    pub mean: Vec<f64>,
    /// The variance of each column, of the whole population.
    pub variance: Vec<f64>,
    /// The number of rows.
    pub count: f64,
}

impl Moments {
    /// Moments of this many columns, before any row.
    pub fn new(columns: usize) -> Self {
        Self { mean: vec![0.0; columns], variance: vec![1.0; columns], count: 1e-4 }
    }

    /// Merges rows, which lie one after the other.
    ///
    /// # Panics
    ///
    /// When the last row is not complete.
    pub fn merge<T: Copy + Into<f64>>(&mut self, rows: &[T]) {
        let columns = self.mean.len();
        if rows.is_empty() {
            return;
        }
        assert_eq!(rows.len() % columns, 0, "numbers of {columns} columns");
        match columns {
            1 | 2 | 4 | 8 => self.merge_few(rows),
            _ if columns <= COLUMNS => self.merge_tiles(rows),
            _ => self.merge_blocks(rows),
        }
        self.count += to_f64(rows.len() / columns);
    }

    /// [Merges](Self::merge) rows and copies them. One pass, where that takes no longer than the
    /// additions alone.
    ///
    /// # Panics
    ///
    /// As for [`merge`](Self::merge); when the copy has another length.
    pub(crate) fn merge_and_copy<T: Copy + Into<f64>>(&mut self, rows: &[T], copy: &mut [T]) {
        let columns = self.mean.len();
        if !rows.is_empty() && matches!(columns, 1 | 2 | 4 | 8) {
            assert_eq!(rows.len() % columns, 0, "numbers of {columns} columns");
            assert_eq!(copy.len(), rows.len(), "room for a copy");
            self.sum_few(rows, |few| simd::run(Copied { few, copy }));
            self.count += to_f64(rows.len() / columns);
        } else {
            copy.copy_from_slice(rows);
            self.merge(copy);
        }
    }

    /// Merges `count` numbers of the only column.
    pub(super) fn merge_distances(&mut self, count: usize, distances: &Distances) {
        let Distances { shift, sums, squares } = distances;
        if count > 0 {
            self.take(0, count, &[*shift], sums, squares);
            self.count += to_f64(count);
        }
    }

    /// Few columns, of which [`LANES`] has a multiple: sums stay in registers.
    fn merge_few<T: Copy + Into<f64>>(&mut self, rows: &[T]) {
        self.sum_few(rows, |few| simd::run(few));
    }

    /// Merges the sums that `add` adds up.
    fn sum_few<T: Copy + Into<f64>>(&mut self, rows: &[T], add: impl FnOnce(Few<'_, T>)) {
        let columns = self.mean.len();
        let shift: [f64; LANES] = std::array::from_fn(|lane| rows[lane % columns].into());
        let (mut sums, mut squares) = ([0.0; LANES], [0.0; LANES]);
        add(Few { rows, shift: &shift, sums: &mut sums, squares: &mut squares });
        self.take(0, rows.len() / columns, &shift[..columns], &sums, &squares);
    }

    /// Several rows at a time, side by side.
    fn merge_tiles<T: Copy + Into<f64>>(&mut self, rows: &[T]) {
        let columns = self.mean.len();
        let lanes = columns * MANY_LANES.div_ceil(columns);
        let shift: Vec<f64> = (0..lanes).map(|lane| rows[lane % columns].into()).collect();
        let (mut sums, mut squares) = (vec![0.0; lanes], vec![0.0; lanes]);
        let stride = lanes;
        simd::run(Many { rows, stride, shift: &shift, sums: &mut sums, squares: &mut squares });
        self.take(0, rows.len() / columns, &shift[..columns], &sums, &squares);
    }

    /// Some columns of all rows, then the next ones.
    fn merge_blocks<T: Copy + Into<f64>>(&mut self, rows: &[T]) {
        let columns = self.mean.len();
        let count = rows.len() / columns;
        for first in (0..columns).step_by(COLUMNS) {
            let block = first..columns.min(first + COLUMNS);
            let shift: Vec<f64> = rows[block.clone()].iter().map(|&number| number.into()).collect();
            let (mut sums, mut squares) = (vec![0.0; shift.len()], vec![0.0; shift.len()]);
            let (rows, stride) = (&rows[first..], columns);
            simd::run(Many { rows, stride, shift: &shift, sums: &mut sums, squares: &mut squares });
            self.take(first, count, &shift, &sums, &squares);
        }
    }

    /// Merges the sums of some columns, from `first` on: lane `i` has those of column `i % columns`.
    fn take(&mut self, first: usize, rows: usize, shift: &[f64], sums: &[f64], squares: &[f64]) {
        let (columns, rows) = (shift.len(), to_f64(rows));
        let total = self.count + rows;
        for column in 0..columns {
            let sum: f64 = sums[column..].iter().step_by(columns).sum();
            let square: f64 = squares[column..].iter().step_by(columns).sum();
            let batch_mean = shift[column] + sum / rows;
            let batch_m2 = square - sum * sum / rows;
            let batch_m2 = if batch_m2 < 0.0 { 0.0 } else { batch_m2 }; // NaN stays NaN
            let at = first + column;
            let delta = batch_mean - self.mean[at];
            let m2 = self.variance[at] * self.count
                + batch_m2
                + delta * delta * (self.count * rows / total);
            self.mean[at] += delta * (rows / total);
            self.variance[at] = m2 / total;
        }
    }
}

/// The sums of the distances of numbers to one of them, for a loop that also does something else.
#[derive(Debug, Clone, Copy)]
pub(super) struct Distances {
    shift: f64,
    sums: [f64; LANES],
    squares: [f64; LANES],
}

impl Distances {
    /// Before any distance to this number.
    pub(super) fn new(shift: f64) -> Self {
        Self { shift, sums: [0.0; LANES], squares: [0.0; LANES] }
    }

    /// The distance of a number.
    #[inline(always)]
    pub(super) fn of(&self, number: f64) -> f64 {
        number - self.shift
    }

    /// Adds distances, each to the lane of its place. To add 0 changes nothing.
    #[inline(always)]
    pub(super) fn add<const COUNT: usize>(&mut self, distances: &[f64; COUNT]) {
        const { assert!(COUNT.is_multiple_of(LANES), "all lanes") }
        let (mut sums, mut squares) = (self.sums, self.squares);
        for eight in distances.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                sums[lane] += eight[lane];
                squares[lane] += eight[lane] * eight[lane];
            }
        }
        (self.sums, self.squares) = (sums, squares);
    }
}

/// Adds the distances of all numbers to [`LANES`] lanes, which stay in registers.
struct Few<'a, T> {
    rows: &'a [T],
    shift: &'a [f64; LANES],
    sums: &'a mut [f64; LANES],
    squares: &'a mut [f64; LANES],
}

impl<T: Copy + Into<f64>> Loops for Few<'_, T> {
    #[inline(always)]
    fn run(mut self) {
        let (tiles, rest) = self.rows.as_chunks();
        self.add(tiles.iter(), rest);
    }
}

impl<T: Copy + Into<f64>> Few<'_, T> {
    #[inline(always)]
    fn add<'a>(&mut self, tiles: impl Iterator<Item = &'a [T; LANES]>, rest: &[T])
    where
        T: 'a,
    {
        let (mut sums, mut squares) = (*self.sums, *self.squares);
        for tile in tiles {
            for lane in 0..LANES {
                let distance = tile[lane].into() - self.shift[lane];
                sums[lane] += distance;
                squares[lane] += distance * distance;
            }
        }
        add(rest, self.shift, &mut sums, &mut squares);
        (*self.sums, *self.squares) = (sums, squares);
    }
}

/// The same, and copies the numbers.
struct Copied<'a, T> {
    few: Few<'a, T>,
    copy: &'a mut [T],
}

impl<T: Copy + Into<f64>> Loops for Copied<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { mut few, copy } = self;
        let ((tiles, rest), (rooms, last)) = (few.rows.as_chunks(), copy.as_chunks_mut());
        last.copy_from_slice(rest);
        few.add(
            tiles.iter().zip(rooms).map(|(tile, room)| {
                *room = *tile;
                tile
            }),
            rest,
        );
    }
}

/// Adds the distances of the first numbers of every `stride` to as many lanes, which stay in the first
/// cache. Four are added before the sums are stored, one after the other.
struct Many<'a, T> {
    rows: &'a [T],
    stride: usize,
    shift: &'a [f64],
    sums: &'a mut [f64],
    squares: &'a mut [f64],
}

impl<T: Copy + Into<f64>> Loops for Many<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { rows, stride, shift, sums, squares } = self;
        let fours = rows.chunks_exact(4 * stride);
        let rest = fours.remainder();
        for four in fours {
            let rows = [0, 1, 2, 3].map(|row| &four[row * stride..][..shift.len()]);
            add_four(rows, shift, sums, squares);
        }
        for row in rest.chunks(stride) {
            add(&row[..row.len().min(shift.len())], shift, sums, squares);
        }
    }
}

/// [Adds](add) the numbers of four rows, in their order.
#[inline(always)]
fn add_four<T: Copy + Into<f64>>(
    [first, second, third, fourth]: [&[T]; 4],
    shift: &[f64],
    sums: &mut [f64],
    squares: &mut [f64],
) {
    let numbers = first.iter().zip(second).zip(third.iter().zip(fourth));
    let lanes = sums.iter_mut().zip(squares).zip(shift);
    for (((sum, square), shift), ((&first, &second), (&third, &fourth))) in lanes.zip(numbers) {
        let (mut total, mut total_square) = (*sum, *square);
        for number in [first, second, third, fourth] {
            let distance = number.into() - shift;
            total += distance;
            total_square += distance * distance;
        }
        (*sum, *square) = (total, total_square);
    }
}

/// Adds the distances of some numbers to their lanes.
#[inline(always)]
fn add<T: Copy + Into<f64>>(numbers: &[T], shift: &[f64], sums: &mut [f64], squares: &mut [f64]) {
    let lanes = sums.iter_mut().zip(squares).zip(shift);
    for (((sum, square), shift), &number) in lanes.zip(numbers) {
        let distance = number.into() - shift;
        *sum += distance;
        *square += distance * distance;
    }
}

#[expect(clippy::cast_precision_loss, reason = "no batch has 2^53 rows")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance in two passes, with the initial row of Gymnasium.
    fn by_hand(rows: &[f64], columns: usize, column: usize) -> (f64, f64) {
        let numbers: Vec<f64> = rows.iter().skip(column).step_by(columns).copied().collect();
        let total = 1e-4 + to_f64(numbers.len());
        let mean = numbers.iter().sum::<f64>() / total; // the initial row is 0
        let spread: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        (mean, (spread + 1e-4 * (1.0 + mean * mean)) / total)
    }

    fn close(a: f64, b: f64, scale: f64) -> bool {
        (a - b).abs() <= 1e-11 * scale
    }

    fn numbers(count: usize, offset: f64) -> Vec<f64> {
        let mut state = 1_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            offset + to_f64(usize::try_from(state >> 40).expect("24 bits")) / 1e5
        };
        (0..count).map(|_| draw()).collect()
    }

    #[test]
    fn any_number_of_columns_and_rows_gives_the_moments_of_all_rows() {
        for columns in [1, 2, 3, 4, 5, 8, 17, 64, 65, 512, 513, 1100] {
            for batches in [vec![1], vec![1, 2, 3], vec![7, 64, 5], vec![33]] {
                let all = numbers(columns * batches.iter().sum::<usize>(), -20.0);
                let (mut moments, mut rest) = (Moments::new(columns), &all[..]);
                for rows in batches {
                    let (batch, others) = rest.split_at(rows * columns);
                    moments.merge(batch);
                    rest = others;
                }
                for column in 0..columns {
                    let (mean, variance) = by_hand(&all, columns, column);
                    assert!(close(moments.mean[column], mean, 200.0), "{columns} {column}");
                    assert!(close(moments.variance[column], variance, variance + 200.0));
                }
            }
        }
    }

    #[test]
    fn numbers_far_from_zero_keep_their_variance() {
        let near: Vec<f64> = (0..4096).map(|row| f64::from(row % 7)).collect();
        let far: Vec<f64> = near.iter().map(|number| number + 1e9).collect();
        let (mut moments, mut shifted) = (Moments::new(1), Moments::new(1));
        for moments in [&mut moments, &mut shifted] {
            moments.count = 0.0;
            moments.variance[0] = 0.0;
        }
        moments.merge(&near);
        shifted.merge(&far);
        assert!((moments.variance[0] - shifted.variance[0]).abs() < 1e-9, "{shifted:?}");
    }

    #[test]
    fn equal_rows_have_no_variance_and_nan_stays_visible() {
        let mut moments = Moments { mean: vec![0.0], variance: vec![0.0], count: 0.0 };
        moments.merge(&[0.1_f32; 1000]);
        assert_eq!(moments.variance, [0.0]);
        assert_eq!(moments.mean, [f64::from(0.1_f32)]);
        moments.merge(&[f32::NAN, 1.0]);
        assert!(moments.mean[0].is_nan() && moments.variance[0].is_nan());
    }
}
