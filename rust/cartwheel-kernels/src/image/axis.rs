//! The areas that the pixels of one side of an image share with those of another size.

use std::ops::Range;

/// Largest side of an image, and number of channels: sums of such sides are exact.
pub(super) const MAX_SIDE: usize = 1 << 16;

/// The weights of one side. All of them are whole numbers: a pixel of `len` is `out_len / g` units
/// long and one of `out_len` is `len / g`, where `g` is their greatest common divisor.
#[derive(Debug)]
pub(super) struct Axis {
    /// One span for each pixel of the result.
    pub(super) spans: Vec<Span>,
    /// The weights of all spans.
    pub(super) weights: Vec<u32>,
    /// The sum of the weights of each span.
    pub(super) total: u32,
    /// Number of source pixels.
    pub(super) len: usize,
}

/// The source pixels that a pixel of the result covers.
#[derive(Debug)]
pub(super) struct Span {
    /// The first of them.
    pub(super) first: usize,
    /// Where their weights are, one for each.
    pub(super) weights: Range<usize>,
}

impl Axis {
    /// Both sides must be from 1 to [`MAX_SIDE`].
    pub(super) fn new(len: usize, out_len: usize) -> Self {
        let divisor = greatest_common_divisor(len, out_len);
        let (pixel, total) = (out_len / divisor, len / divisor);
        let mut weights = Vec::new();
        let mut span = |out: usize| {
            let (start, end) = (out * total, (out + 1) * total);
            let (first, begin) = (start / pixel, weights.len());
            for source in first..end.div_ceil(pixel) {
                let covered = end.min((source + 1) * pixel) - start.max(source * pixel);
                weights.push(u32::try_from(covered).expect("at most a side"));
            }
            Span { first, weights: begin..weights.len() }
        };
        let spans = (0..out_len).map(&mut span).collect();
        Self { spans, weights, total: u32::try_from(total).expect("at most a side"), len }
    }

    /// Number of pixels of the result.
    pub(super) fn out_len(&self) -> usize {
        self.spans.len()
    }

    /// Whether the side keeps its size.
    pub(super) fn is_same(&self) -> bool {
        self.len == self.spans.len()
    }
}

fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_covers_the_same_length_and_every_source_pixel_is_covered_whole() {
        for len in 1..40 {
            for out_len in 1..40 {
                let axis = Axis::new(len, out_len);
                let mut covered = vec![0; len];
                for span in &axis.spans {
                    let weights = &axis.weights[span.weights.clone()];
                    assert_eq!(weights.iter().sum::<u32>(), axis.total);
                    assert!(weights.iter().all(|&weight| weight > 0));
                    for (source, weight) in weights.iter().enumerate() {
                        covered[span.first + source] += weight;
                    }
                }
                let pixel = out_len * axis.total as usize / len;
                assert!(covered.iter().all(|&units| units as usize == pixel), "{len} {out_len}");
            }
        }
    }
}
