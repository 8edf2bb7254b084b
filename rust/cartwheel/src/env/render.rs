//! Rendering: what an environment looks like.

use crate::Failure;

/// A way to render.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RenderMode {
    /// An array of pixels: `rgb_array`.
    RgbArray,
    /// Text: `ansi`.
    Ansi,
}

impl RenderMode {
    /// Gymnasium's name, ended by a zero byte.
    pub(crate) const fn name(self) -> &'static std::ffi::CStr {
        match self {
            Self::RgbArray => c"rgb_array",
            Self::Ansi => c"ansi",
        }
    }
}

/// The place of one rendered frame, for [`Env::render`](super::Env::render).
#[derive(Debug)]
pub struct Frame {
    mode: RenderMode,
    pixels: Vec<[u8; 3]>,
    size: (usize, usize),
    text: String,
}

impl Frame {
    /// An empty frame.
    pub fn new(mode: RenderMode) -> Self {
        Self { mode, pixels: Vec::new(), size: (0, 0), text: String::new() }
    }

    /// The requested mode: one of [`Env::RENDER`](super::Env::RENDER).
    pub fn mode(&self) -> RenderMode {
        self.mode
    }

    /// Makes an image of `height` rows of `width` pixels, black at first, and returns its pixels:
    /// red, green and blue, row by row from the top.
    pub fn pixels(&mut self, height: usize, width: usize) -> &mut [[u8; 3]] {
        self.size = (height, width);
        self.pixels.clear();
        self.pixels.resize(height * width, [0; 3]);
        &mut self.pixels
    }

    /// The text, empty at first.
    pub fn text(&mut self) -> &mut String {
        &mut self.text
    }

    /// Draws a grid of `rows` by `columns` cells: as text, a character for each cell, or as an image,
    /// a square of `pixels` by `pixels` for each. `look` has both for cell `row * columns + column`.
    ///
    /// ```
    /// use cartwheel::{Frame, RenderMode};
    ///
    /// let mut frame = Frame::new(RenderMode::Ansi);
    /// frame.grid((2, 3), 16, |cell| if cell == 4 { ('@', [220, 60, 40]) } else { ('.', [255; 3]) });
    /// assert_eq!(frame.text(), "...\n.@.\n");
    /// ```
    pub fn grid(
        &mut self,
        (rows, columns): (usize, usize),
        pixels: usize,
        look: impl Fn(usize) -> (char, [u8; 3]),
    ) {
        if self.mode == RenderMode::Ansi {
            for row in 0..rows {
                let cells = row * columns..(row + 1) * columns;
                self.text.extend(cells.map(|cell| look(cell).0).chain(['\n']));
            }
            return;
        }
        let width = columns * pixels;
        for (at, pixel) in self.pixels(rows * pixels, width).iter_mut().enumerate() {
            *pixel = look(at / width / pixels * columns + at % width / pixels).1;
        }
    }

    /// Height, width and bytes of the frame, as its mode has them; text has neither height nor
    /// width.
    pub(crate) fn finish(&self) -> Result<(usize, usize, &[u8]), Failure> {
        match self.mode {
            RenderMode::RgbArray if self.pixels.is_empty() => {
                Err(Failure::new("`render` made no pixels in mode rgb_array"))
            }
            RenderMode::RgbArray => Ok((self.size.0, self.size.1, self.pixels.as_flattened())),
            RenderMode::Ansi => Ok((0, 0, self.text.as_bytes())),
        }
    }
}
