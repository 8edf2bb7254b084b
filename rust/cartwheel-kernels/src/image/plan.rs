//! The plan for every frame: operations and weights.

use super::axis::{Axis, MAX_SIDE};
use super::error::Error;
use super::simd::Simd;

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
    pub(super) fn len(self) -> usize {
        self.height * self.width * self.channels
    }
}

/// Frames, and the second ones of their pairs.
pub(super) type Pair<'a> = (&'a [u8], Option<&'a [u8]>);

/// Turns frames of one shape into images of another: the maximum of two frames, gray, resized.
#[derive(Debug)]
pub struct Plan {
    shape: Shape,
    out: Shape,
    gray: bool,
    channel_first: bool,
    pub(super) vertical: Axis,
    pub(super) horizontal: Axis,
}

impl Plan {
    /// Computes the weights.
    ///
    /// `out` are height and width of the result. `gray` makes one channel of three.
    /// `channel_first` stores the channels of the result one after the other, `[C, H, W]`.
    ///
    /// # Errors
    ///
    /// A side or a number of channels that is 0 or above 65,536, or `gray` without three channels.
    pub fn new(
        shape: Shape,
        out: [usize; 2],
        gray: bool,
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
        if gray && shape.channels != 3 {
            return Err(Error::GrayChannels { got: shape.channels });
        }
        let channels = if gray { 1 } else { shape.channels };
        let [height, width] = out;
        Ok(Self {
            shape,
            out: Shape { height, width, channels },
            gray,
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
    pub(crate) fn out_shape(&self) -> Shape {
        self.out
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
        simd: impl Simd,
        (first, second): Pair<'_>,
        row: usize,
        out: &mut [u8],
    ) {
        let width = self.shape.width * self.shape.channels;
        let bytes = row * width..(row + 1) * width;
        let (first, second) = (&first[bytes.clone()], second.map(|second| &second[bytes]));
        match second {
            _ if self.gray => simd.gray(first, second, out),
            None => out.copy_from_slice(first),
            Some(second) => {
                for (out, (&a, &b)) in out.iter_mut().zip(first.iter().zip(second)) {
                    *out = a.max(b);
                }
            }
        }
    }

    /// Whether pixels stay where they are.
    pub(super) fn keeps_places(&self) -> bool {
        self.vertical.is_same() && self.horizontal.is_same() && !self.channel_first()
    }
}
