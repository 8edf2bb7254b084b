//! The grey level of a colour.

/// Weights of red, green and blue, as Gymnasium's `GrayscaleObservation` and scikit-image have
/// them: luma of ITU-R BT.709.
pub(super) const WEIGHTS: [f64; 3] = [0.2125, 0.7154, 0.0721];

/// The grey level that Gymnasium computes: the same operations in the same order.
///
/// The weights' sum is 1, but rounding can make that of a level's products a little less: red,
/// green and blue of 43 give 42.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
pub(super) fn grey_level(red: u8, green: u8, blue: u8) -> u8 {
    let [red, green, blue] = [red, green, blue].map(f64::from);
    (red * WEIGHTS[0] + green * WEIGHTS[1] + blue * WEIGHTS[2]) as u8
}

/// Writes the grey levels of the colours of `pixels`, which are three times as long as `grey`. With
/// `second`, the larger one of each pair of levels counts.
#[inline(always)]
pub(super) fn write_grey(pixels: &[u8], second: Option<&[u8]>, grey: &mut [u8]) {
    let colours = pixels.chunks_exact(3);
    match second {
        None => {
            for (grey, colour) in grey.iter_mut().zip(colours) {
                *grey = grey_level(colour[0], colour[1], colour[2]);
            }
        }
        Some(second) => {
            for ((grey, a), b) in grey.iter_mut().zip(colours).zip(second.chunks_exact(3)) {
                *grey = grey_level(a[0].max(b[0]), a[1].max(b[1]), a[2].max(b[2]));
            }
        }
    }
}
