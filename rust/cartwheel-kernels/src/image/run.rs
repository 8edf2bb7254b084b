//! A plan is carried out: the frames are divided among threads.

use std::num::NonZero;

use super::dispatch::with_lanes;
use super::error::Error;
use super::frame::FrameScratch;
use super::plan::{Pair, Plan};
use super::precision::{Narrow, Precision, Wide};
use super::simd::{ImageKernel, Simd};
use crate::threads::{compute_rows, threads_for};

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
        let threads = num_threads.map_or_else(|| threads_for(frames.len()), NonZero::get);
        compute_rows(threads, expected, out, |share, out| {
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

impl ImageKernel for Share<'_> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let plan = self.plan;
        if plan.keeps_places() {
            // A row that holds all frames.
            let width = plan.out_shape().width * plan.out_channels();
            for (row, out) in self.out.chunks_exact_mut(width).enumerate() {
                plan.read_row(simd, self.frames, row, out);
            }
        } else if Narrow::holds(&plan.vertical, &plan.horizontal) {
            self.resize::<Narrow>(simd);
        } else {
            self.resize::<Wide>(simd);
        }
    }
}

impl Share<'_> {
    #[inline(always)]
    fn resize<P: Precision>(self, simd: impl Simd) {
        let (first, second) = self.frames;
        let mut frame = FrameScratch::<P>::new(self.plan);
        let len = self.plan.shape().len();
        for (at, out) in self.out.chunks_exact_mut(self.plan.out_shape().len()).enumerate() {
            let bytes = at * len..(at + 1) * len;
            let pair = (&first[bytes.clone()], second.map(|second| &second[bytes]));
            frame.resize(simd, pair, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Shape;
    use crate::image::gray::gray_level;

    /// The levels of an image, by the definition: the mean over all points of a grid that is fine
    /// enough for both sizes.
    fn oracle(frame: &[u8], shape: Shape, [height, width]: [usize; 2]) -> Vec<u8> {
        let Shape { channels, .. } = shape;
        let mut image = Vec::new();
        for at in 0..height * width * channels {
            let (row, column, channel) =
                (at / channels / width, at / channels % width, at % channels);
            let mut sum = 0;
            for y in row * shape.height..(row + 1) * shape.height {
                for x in column * shape.width..(column + 1) * shape.width {
                    let pixel = y / height * shape.width + x / width;
                    sum += usize::from(frame[pixel * channels + channel]);
                }
            }
            let points = shape.height * shape.width;
            image.push(u8::try_from((2 * sum + points) / (2 * points)).expect("a level"));
        }
        image
    }

    fn frames(count: usize, shape: Shape) -> Vec<u8> {
        let bytes = 0..u32::try_from(count * shape.len()).expect("few");
        bytes.map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
    }

    #[test]
    fn every_pixel_is_the_mean_of_its_area() {
        let sizes = [(1, 1), (7, 5), (12, 18), (13, 17), (24, 9)];
        let mut pairs: Vec<_> = sizes.iter().flat_map(|&from| sizes.map(|to| (from, to))).collect();
        // Totals that are too large for sums of 16 bits and reals of 32.
        pairs.extend([((67, 71), (12, 18)), ((300, 2), (7, 3)), ((2, 4097), (1, 2))]);
        for ((height, width), (out_height, out_width)) in pairs {
            for channels in [1, 2, 3] {
                let shape = Shape { height, width, channels };
                let (out, frames) = ([out_height, out_width], frames(3, shape));
                let expected: Vec<u8> = frames
                    .chunks(shape.len())
                    .flat_map(|frame| oracle(frame, shape, out))
                    .collect();
                let mut got = vec![0; expected.len()];
                let plan = Plan::new(shape, out, false, false).expect("valid");
                for num_threads in [None, NonZero::new(1), NonZero::new(7)] {
                    got.fill(0);
                    plan.run(&frames, None, num_threads, &mut got).expect("whole frames");
                    assert_eq!(got, expected, "{shape:?} to {out:?}");
                }
                let plan = Plan::new(shape, out, false, true).expect("valid");
                plan.run(&frames, None, None, &mut got).expect("whole frames");
                let image = out_height * out_width;
                for (at, &level) in got.iter().enumerate() {
                    let (frame, channel) = (at / image / channels, at / image % channels);
                    let from = (frame * image + at % image) * channels + channel;
                    assert_eq!(level, expected[from], "{shape:?} to {out:?}");
                }
            }
        }
    }

    #[test]
    fn gray_and_maximum_come_before_the_size() {
        let shape = Shape { height: 21, width: 37, channels: 3 };
        let (first, second) = (frames(2, shape), frames(5, shape));
        let second = &second[3 * shape.len()..];
        let largest: Vec<u8> = first.iter().zip(second).map(|(&a, &b)| a.max(b)).collect();
        let gray: Vec<u8> =
            largest.chunks(3).map(|color| gray_level(color[0], color[1], color[2])).collect();
        let one = Shape { channels: 1, ..shape };
        for out in [[21, 37], [8, 8], [30, 5]] {
            let expected: Vec<u8> =
                gray.chunks(one.len()).flat_map(|frame| oracle(frame, one, out)).collect();
            let mut got = vec![0; expected.len()];
            let plan = Plan::new(shape, out, true, true).expect("valid");
            plan.run(&first, Some(second), None, &mut got).expect("whole frames");
            assert_eq!(got, expected, "to {out:?}");
        }
    }

    #[test]
    fn slices_that_are_not_the_same_whole_frames_are_refused() {
        let shape = Shape { height: 2, width: 3, channels: 1 };
        let plan = Plan::new(shape, [1, 1], false, false).expect("valid");
        let mut out = [7; 2];
        let refused = |frames: &[u8], second: Option<&[u8]>, out: &mut [u8]| {
            plan.run(frames, second, None, out).expect_err("refused")
        };
        let error = refused(&[0; 11], None, &mut out);
        assert_eq!(error, Error::WrongLength { what: "frames", got: 11, frame: 6 });
        let error = refused(&[0; 12], Some(&[0; 6]), &mut out);
        assert_eq!(error, Error::WrongCount { what: "second", expected: 2, got: 1 });
        let error = refused(&[0; 6], None, &mut out);
        assert_eq!(error, Error::WrongCount { what: "out", expected: 1, got: 2 });
        assert_eq!(out, [7; 2]);
    }
}
