//! A plan is carried out: the frames are divided among threads.

use std::num::NonZero;
use std::ops::Range;

use super::dispatch::with_lanes;
use super::error::Error;
use super::frame::Frame;
use super::lanes::{Lanes, Work};
use super::plan::{Pair, Plan};
use super::precision::{Narrow, Precision, Wide};
use crate::schedule::{compute_each, shards, usable_cpus};

/// Minimum number of bytes for each thread. Computing these takes some 100 µs, starting the thread
/// a fifth of that.
const FEWEST_BYTES: usize = 1 << 20;

impl Plan {
    /// Writes the image of each frame to `out`. With `second`, the larger one of each pair of
    /// levels counts.
    ///
    /// There is one thread, unless there is enough to do for more or `num_threads` is set. Their
    /// number changes no bit.
    ///
    /// # Errors
    ///
    /// Slices that are not whole frames, or not the same number of them.
    pub fn run(
        &self,
        frames: &[u8],
        second: Option<&[u8]>,
        num_threads: Option<NonZero<usize>>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let expected = count("frames", frames.len(), self.shape().len())?;
        let second_count = second.map(|second| count("second", second.len(), self.shape().len()));
        let out_count = count("out", out.len(), self.out_shape().len())?;
        let counts = [("second", second_count.transpose()?), ("out", Some(out_count))];
        for (what, got) in counts {
            if let Some(got) = got.filter(|&got| got != expected) {
                return Err(Error::WrongCount { what, expected, got });
            }
        }
        let threads = match num_threads {
            Some(threads) => threads.get(),
            None => usable_cpus().min(frames.len() / FEWEST_BYTES),
        };
        let shares = shards(expected, threads);
        let mut rest = out;
        let mut outputs = Vec::with_capacity(shares.len());
        for share in &shares {
            let (mine, others) = rest.split_at_mut(share.len() * self.out_shape().len());
            outputs.push(mine);
            rest = others;
        }
        compute_each(shares, outputs, |share: Range<usize>, out| {
            let bytes = share.start * self.shape().len()..share.end * self.shape().len();
            let second = second.map(|second| &second[bytes.clone()]);
            with_lanes(Share { plan: self, frames: (&frames[bytes], second), out });
        });
        Ok(())
    }
}

/// Number of frames in a slice.
fn count(what: &'static str, got: usize, frame: usize) -> Result<usize, Error> {
    if got.is_multiple_of(frame) {
        Ok(got / frame)
    } else {
        Err(Error::WrongLength { what, got, frame })
    }
}

/// The frames of one thread.
struct Share<'a> {
    plan: &'a Plan,
    frames: Pair<'a>,
    out: &'a mut [u8],
}

impl Work for Share<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let plan = self.plan;
        if plan.keeps_places() {
            // A row that holds all frames.
            let width = plan.out_shape().width * plan.out_channels();
            for (row, out) in self.out.chunks_exact_mut(width).enumerate() {
                plan.read_row(lanes, self.frames, row, out);
            }
        } else if Narrow::holds(plan.vertical(), plan.horizontal()) {
            self.resize::<Narrow>(lanes);
        } else {
            self.resize::<Wide>(lanes);
        }
    }
}

impl Share<'_> {
    #[inline(always)]
    fn resize<P: Precision>(self, lanes: impl Lanes) {
        let (first, second) = self.frames;
        let mut frame = Frame::<P>::new(self.plan);
        let len = self.plan.shape().len();
        for (at, out) in self.out.chunks_exact_mut(self.plan.out_shape().len()).enumerate() {
            let bytes = at * len..(at + 1) * len;
            let pair = (&first[bytes.clone()], second.map(|second| &second[bytes]));
            frame.resize(lanes, pair, out);
        }
    }
}
