//! The errors of a plan's arguments.

use super::axis::MAX_SIDE;

/// One variant for each cause, with the values that are needed to correct the call. When a plan
/// returns one, nothing has been written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A side of an image, or its number of channels, is zero or too large.
    #[error("`{what}` must be from 1 to {MAX_SIDE}, got {got}")]
    BadSide {
        /// The argument.
        what: &'static str,
        /// Its value.
        got: usize,
    },
    /// Only images of red, green and blue have a gray level.
    #[error("gray needs 3 channels (red, green, blue), got {got}")]
    GrayChannels {
        /// Number of channels.
        got: usize,
    },
    /// A slice is not a whole number of frames.
    #[error("`{what}` has {got} bytes, which is not a multiple of {frame}, the size of a frame")]
    WrongLength {
        /// The slice.
        what: &'static str,
        /// Its length.
        got: usize,
        /// Bytes of a frame.
        frame: usize,
    },
    /// Two slices do not have the same number of frames.
    #[error("`{what}` has {got} frames, but `frames` has {expected}")]
    WrongCount {
        /// The slice.
        what: &'static str,
        /// Number of frames of the input.
        expected: usize,
        /// Number of frames of the slice.
        got: usize,
    },
}
