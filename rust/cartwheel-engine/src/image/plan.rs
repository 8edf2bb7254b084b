//! What is done to every frame, and the weights for it.

use std::num::NonZero;
use std::ops::Range;

use super::axis::Axis;
use super::error::Error;
use super::frame::{Frame, Pair};
use super::lanes::{Lanes, Work, with_lanes};
use super::precision::{Narrow, Precision, Wide};
use crate::schedule::{compute_each, shards, usable_cpus};

/// Largest side of an image, and number of channels: sums of such sides are exact.
pub(super) const MAX_SIDE: usize = 1 << 16;

/// Minimum number of bytes for each thread. Computing these takes some 100 µs, starting the thread
/// a fifth of that.
const FEWEST_BYTES: usize = 1 << 20;

/// The shape of a frame, in the order of its memory. Without channels, their number is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of rows of pixels.
    pub height: usize,
    /// Pixels of a row.
    pub width: usize,
    /// Levels of a pixel.
    pub channels: usize,
}

impl Shape {
    /// Bytes of a frame.
    fn len(self) -> usize {
        self.height * self.width * self.channels
    }
}

/// Turns frames of one shape into images of another: the maximum of two frames, grey, resized.
#[derive(Debug)]
pub struct Plan {
    shape: Shape,
    out: Shape,
    grey: bool,
    channel_first: bool,
    vertical: Axis,
    horizontal: Axis,
}

impl Plan {
    /// Computes the weights.
    ///
    /// `out` are height and width of the result. `grey` makes one channel of three.
    /// `channel_first` stores the channels of the result one after the other, `[C, H, W]`.
    ///
    /// # Errors
    ///
    /// A side or a number of channels that is 0 or above 65,536, or `grey` without three channels.
    pub fn new(
        shape: Shape,
        out: [usize; 2],
        grey: bool,
        channel_first: bool,
    ) -> Result<Self, Error> {
        let sides = [
            ("height", shape.height),
            ("width", shape.width),
            ("channels", shape.channels),
            ("out_height", out[0]),
            ("out_width", out[1]),
        ];
        for (what, got) in sides {
            if got == 0 || got > MAX_SIDE {
                return Err(Error::BadSide { what, got });
            }
        }
        if grey && shape.channels != 3 {
            return Err(Error::GreyChannels { got: shape.channels });
        }
        let channels = if grey { 1 } else { shape.channels };
        let [height, width] = out;
        Ok(Self {
            shape,
            out: Shape { height, width, channels },
            grey,
            channel_first,
            vertical: Axis::new(shape.height, height),
            horizontal: Axis::new(shape.width, width),
        })
    }

    /// The shape of the frames.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The shape of the results, whose memory has the channels first if that was asked for.
    pub fn out_shape(&self) -> Shape {
        self.out
    }

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
        let expected = count("frames", frames.len(), self.shape.len())?;
        let second_count = second.map(|second| count("second", second.len(), self.shape.len()));
        let out_count = count("out", out.len(), self.out.len())?;
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
            let (mine, others) = rest.split_at_mut(share.len() * self.out.len());
            outputs.push(mine);
            rest = others;
        }
        compute_each(shares, outputs, |share: Range<usize>, out| {
            let bytes = share.start * self.shape.len()..share.end * self.shape.len();
            let second = second.map(|second| &second[bytes.clone()]);
            with_lanes(Share { plan: self, frames: (&frames[bytes], second), out });
        });
        Ok(())
    }

    pub(super) fn vertical(&self) -> &Axis {
        &self.vertical
    }

    pub(super) fn horizontal(&self) -> &Axis {
        &self.horizontal
    }

    pub(super) fn out_channels(&self) -> usize {
        self.out.channels
    }

    pub(super) fn channel_first(&self) -> bool {
        self.channel_first && self.out.channels > 1
    }

    /// Copies a row of pixels in the form in which it is resized.
    #[inline(always)]
    pub(super) fn read_row(
        &self,
        lanes: impl Lanes,
        (first, second): Pair<'_>,
        row: usize,
        out: &mut [u8],
    ) {
        let width = self.shape.width * self.shape.channels;
        let bytes = row * width..(row + 1) * width;
        let (first, second) = (&first[bytes.clone()], second.map(|second| &second[bytes]));
        match second {
            _ if self.grey => lanes.grey(first, second, out),
            None => out.copy_from_slice(first),
            Some(second) => {
                for (out, (&a, &b)) in out.iter_mut().zip(first.iter().zip(second)) {
                    *out = a.max(b);
                }
            }
        }
    }

    /// Whether pixels stay where they are.
    fn keeps_places(&self) -> bool {
        self.vertical.is_same() && self.horizontal.is_same() && !self.channel_first()
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
            let width = plan.out.width * plan.out.channels;
            for (row, out) in self.out.chunks_exact_mut(width).enumerate() {
                plan.read_row(lanes, self.frames, row, out);
            }
        } else if Narrow::holds(&plan.vertical, &plan.horizontal) {
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
        let len = self.plan.shape.len();
        for (at, out) in self.out.chunks_exact_mut(self.plan.out.len()).enumerate() {
            let bytes = at * len..(at + 1) * len;
            let pair = (&first[bytes.clone()], second.map(|second| &second[bytes]));
            frame.resize(lanes, pair, out);
        }
    }
}
