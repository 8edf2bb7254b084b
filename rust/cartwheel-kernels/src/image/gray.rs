//! The gray level of a color.

/// Weights of red, green and blue, as Gymnasium's `GrayscaleObservation` and scikit-image have
/// them: luma of ITU-R BT.709.
pub(super) const WEIGHTS: [f64; 3] = [0.2125, 0.7154, 0.0721];

/// The gray level that Gymnasium computes: the same operations in the same order.
///
/// The weights' sum is 1, but rounding can make that of a level's products a little less: red,
/// green and blue of 43 give 42.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
pub(super) fn gray_level(red: u8, green: u8, blue: u8) -> u8 {
    let [red, green, blue] = [red, green, blue].map(f64::from);
    (red * WEIGHTS[0] + green * WEIGHTS[1] + blue * WEIGHTS[2]) as u8
}

/// Writes the gray levels of the colors of `pixels`, which are three times as long as `gray`. With
/// `second`, the larger one of each pair of levels counts.
#[inline(always)]
pub(super) fn write_gray(pixels: &[u8], second: Option<&[u8]>, gray: &mut [u8]) {
    let colors = pixels.chunks_exact(3);
    match second {
        None => {
            for (gray, color) in gray.iter_mut().zip(colors) {
                *gray = gray_level(color[0], color[1], color[2]);
            }
        }
        Some(second) => {
            for ((gray, a), b) in gray.iter_mut().zip(colors).zip(second.chunks_exact(3)) {
                *gray = gray_level(a[0].max(b[0]), a[1].max(b[1]), a[2].max(b[2]));
            }
        }
    }
}
