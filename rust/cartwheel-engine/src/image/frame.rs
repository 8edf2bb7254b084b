//! One frame, row by row.

use super::axis::Axis;
use super::lanes::Lanes;
use super::plan::Plan;
use super::precision::Precision;

/// Rows of the result that are computed at once: a vector has one value of each.
const ROWS: usize = 8;

/// The memory that frames pass through, used for one frame after another.
pub(super) struct Frame<'a, P: Precision> {
    plan: &'a Plan,
    /// The source row that was read last, grey or the maximum of two.
    row: Vec<u8>,
    /// The sums of columns, for each of [`ROWS`] rows of the result.
    sums: Vec<P::Sum>,
    /// The same, column by column.
    columns: Vec<[P::Real; ROWS]>,
    /// The weights of the horizontal axis.
    weights: Vec<P::Real>,
    /// The levels of these rows, in the order of a row's memory.
    levels: Vec<[u8; ROWS]>,
    reciprocal: P::Real,
}

/// A frame, and the second one of a pair.
pub(super) type Pair<'a> = (&'a [u8], Option<&'a [u8]>);

impl<'a, P: Precision> Frame<'a, P> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let (vertical, horizontal) = (plan.vertical(), plan.horizontal());
        let width = horizontal.len() * plan.out_channels();
        let total = u64::from(vertical.total()) * u64::from(horizontal.total());
        Self {
            plan,
            row: vec![0; width],
            sums: vec![P::Sum::default(); ROWS * width],
            columns: vec![[P::Real::default(); ROWS]; width],
            weights: horizontal.weights().iter().map(|&weight| P::weight(weight)).collect(),
            levels: vec![[0; ROWS]; horizontal.out_len() * plan.out_channels()],
            reciprocal: P::reciprocal(total),
        }
    }

    /// Writes the resized frame.
    #[inline(always)]
    pub(super) fn resize(&mut self, lanes: impl Lanes, frames: Pair<'_>, out: &mut [u8]) {
        let plan = self.plan;
        let out_height = plan.vertical().out_len();
        let mut last = None;
        for first in (0..out_height).step_by(ROWS) {
            let rows = ROWS.min(out_height - first);
            for (at, row) in (first..first + rows).enumerate() {
                self.sum_columns(lanes, frames, row, at, &mut last);
            }
            self.transpose();
            if plan.channel_first() {
                self.sum_rows::<true>();
            } else {
                self.sum_rows::<false>();
            }
            self.store(first..first + rows, out);
        }
    }

    /// Sums the source rows that `row` of the result covers. `last` is the source row in
    /// `self.row`.
    #[inline(always)]
    fn sum_columns(
        &mut self,
        lanes: impl Lanes,
        frames: Pair<'_>,
        row: usize,
        at: usize,
        last: &mut Option<usize>,
    ) {
        let axis: &Axis = self.plan.vertical();
        let span = &axis.spans()[row];
        let width = self.row.len();
        let sums = &mut self.sums[at * width..][..width];
        for (source, &weight) in (span.first..).zip(&axis.weights()[span.weights.clone()]) {
            if *last != Some(source) {
                self.plan.read_row(lanes, frames, source, &mut self.row);
                *last = Some(source);
            }
            if source == span.first {
                for (sum, &level) in sums.iter_mut().zip(&self.row) {
                    *sum = P::weighted(level, weight);
                }
            } else {
                for (sum, &level) in sums.iter_mut().zip(&self.row) {
                    *sum = P::add(*sum, P::weighted(level, weight));
                }
            }
        }
    }

    /// Brings the sums of each column together.
    #[inline(always)]
    fn transpose(&mut self) {
        let width = self.row.len();
        let mut rows = self.sums.chunks_exact(width);
        let rows: [&[P::Sum]; ROWS] = std::array::from_fn(|_| rows.next().expect("as many rows"));
        let rows = rows.map(|row| &row[..self.columns.len()]);
        for (at, column) in self.columns.iter_mut().enumerate() {
            *column = rows.map(|row| P::real(row[at]));
        }
    }

    /// Sums along the rows, and takes the means.
    #[inline(always)]
    fn sum_rows<const CHANNEL_FIRST: bool>(&mut self) {
        let axis = self.plan.horizontal();
        let channels = self.plan.out_channels();
        for (at, span) in axis.spans().iter().enumerate() {
            let weights = &self.weights[span.weights.clone()];
            let columns = &self.columns[span.first * channels..];
            for channel in 0..channels {
                let mut sums = [P::Real::default(); ROWS];
                for (&weight, column) in
                    weights.iter().zip(columns[channel..].iter().step_by(channels))
                {
                    for (sum, &real) in sums.iter_mut().zip(column) {
                        *sum = P::add_weighted(*sum, weight, real);
                    }
                }
                let place = if CHANNEL_FIRST {
                    channel * axis.out_len() + at
                } else {
                    at * channels + channel
                };
                self.levels[place] = sums.map(|sum| P::level(sum, self.reciprocal));
            }
        }
    }

    /// Writes the levels of some rows.
    #[inline(always)]
    fn store(&self, rows: std::ops::Range<usize>, out: &mut [u8]) {
        let plan = self.plan;
        // Channel by channel if these are first, otherwise all at once.
        let planes = if plan.channel_first() { plan.out_channels() } else { 1 };
        let width = self.levels.len() / planes;
        let planes = out.chunks_exact_mut(plan.vertical().out_len() * width);
        for (plane, levels) in planes.zip(self.levels.chunks_exact(width)) {
            let lines = plane[rows.start * width..rows.end * width].chunks_exact_mut(width);
            for (at, line) in lines.enumerate() {
                for (pixel, levels) in line.iter_mut().zip(levels) {
                    *pixel = levels[at];
                }
            }
        }
    }
}
