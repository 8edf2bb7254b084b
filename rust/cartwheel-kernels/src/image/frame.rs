//! One frame, row by row.

use std::ops::Range;

use super::axis::Axis;
use super::plan::{Pair, Plan};
use super::precision::Precision;
use super::simd::{ROWS, Simd};

/// The memory that frames pass through, used for one frame after another.
pub(super) struct FrameScratch<'a, P: Precision> {
    plan: &'a Plan,
    /// The source row that was read last, gray or the maximum of two.
    row: Vec<u8>,
    /// The sums of columns, for each of [`ROWS`] rows of the result.
    sums: Vec<P::Sum>,
    /// The same, column by column.
    columns: Vec<[P::Float; ROWS]>,
    /// The weights of the horizontal axis.
    weights: Vec<P::Float>,
    /// The levels of these rows, in the order of a row's memory.
    levels: Vec<[u8; ROWS]>,
    /// The same, row by row.
    lines: Vec<u8>,
    reciprocal: P::Float,
}

impl<'a, P: Precision> FrameScratch<'a, P> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let (vertical, horizontal) = (&plan.vertical, &plan.horizontal);
        let width = horizontal.len * plan.out_channels();
        let out_width = horizontal.out_len() * plan.out_channels();
        let total = u64::from(vertical.total) * u64::from(horizontal.total);
        Self {
            plan,
            row: vec![0; width],
            sums: vec![P::Sum::default(); ROWS * width],
            columns: vec![[P::Float::default(); ROWS]; width],
            weights: horizontal.weights.iter().map(|&weight| P::weight(weight)).collect(),
            levels: vec![[0; ROWS]; out_width],
            lines: vec![0; ROWS * out_width],
            reciprocal: P::reciprocal(total),
        }
    }

    #[inline(always)]
    pub(super) fn resize(&mut self, simd: impl Simd, frames: Pair<'_>, out: &mut [u8]) {
        let plan = self.plan;
        let out_height = plan.vertical.out_len();
        let mut last = None;
        for first in (0..out_height).step_by(ROWS) {
            let rows = ROWS.min(out_height - first);
            for (at, row) in (first..first + rows).enumerate() {
                self.sum_columns(simd, frames, row, at, &mut last);
            }
            P::columns(simd, &self.sums, &mut self.columns);
            match plan.out_channels() {
                1 => self.sum_rows(1),
                3 => self.sum_rows(3),
                channels => self.sum_rows(channels),
            }
            self.store(simd, first..first + rows, out);
        }
    }

    /// Sums the source rows that `row` of the result covers. `last` is the source row in
    /// `self.row`.
    #[inline(always)]
    fn sum_columns(
        &mut self,
        simd: impl Simd,
        frames: Pair<'_>,
        row: usize,
        at: usize,
        last: &mut Option<usize>,
    ) {
        let axis: &Axis = &self.plan.vertical;
        let span = &axis.spans[row];
        let width = self.row.len();
        let sums = &mut self.sums[at * width..][..width];
        for (source, &weight) in (span.first..).zip(&axis.weights[span.weights.clone()]) {
            if *last != Some(source) {
                self.plan.read_row(simd, frames, source, &mut self.row);
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

    /// Sums along the rows, and takes the means. `channels` is the plan's number of channels, as an
    /// argument so that usual numbers are constants.
    #[inline(always)]
    fn sum_rows(&mut self, channels: usize) {
        let axis = &self.plan.horizontal;
        // From one pixel to the next, and from one channel to the next.
        let (pixel, plane) =
            if self.plan.channel_first() { (1, axis.out_len()) } else { (channels, 1) };
        let mut first = 0;
        for span in &axis.spans {
            let weights = &self.weights[span.weights.clone()];
            let columns = &self.columns[span.first * channels..];
            let mut at = first;
            for channel in 0..channels {
                let mut sums = [P::START; ROWS];
                for (&weight, columns) in weights.iter().zip(columns.chunks_exact(channels)) {
                    for (sum, &real) in sums.iter_mut().zip(&columns[channel]) {
                        *sum = P::add_weighted(*sum, weight, real);
                    }
                }
                let levels = &mut self.levels[at];
                for (level, &sum) in levels.iter_mut().zip(&sums) {
                    *level = P::level(sum, self.reciprocal);
                }
                at += plane;
            }
            first += pixel;
        }
    }

    /// Writes the levels of some rows.
    #[inline(always)]
    fn store(&mut self, simd: impl Simd, rows: Range<usize>, out: &mut [u8]) {
        simd.lines(&self.levels, &mut self.lines);
        let plan = self.plan;
        // Channel by channel if these are first, otherwise all at once.
        let planes = if plan.channel_first() { plan.out_channels() } else { 1 };
        let width = self.levels.len() / planes;
        let out = out.chunks_exact_mut(plan.vertical.out_len() * width);
        for (plane, out) in out.enumerate() {
            let written = out[rows.start * width..rows.end * width].chunks_exact_mut(width);
            for (row, line) in written.enumerate() {
                line.copy_from_slice(&self.lines[(row * planes + plane) * width..][..width]);
            }
        }
    }
}
