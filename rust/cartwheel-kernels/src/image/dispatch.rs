//! Selection of the instructions for pixels.

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
use super::simd::{ImageKernel, Plain};

/// Does the work with the best instructions that this processor has.
pub(super) fn with_lanes(work: impl ImageKernel) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = Avx2::detected() {
        return avx2.run(work);
    }
    work.run(Plain);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::simd::{ROWS, Simd};

    /// Compares gray levels with the plain code's.
    struct Gray<'a>(&'a [u8], Option<&'a [u8]>);

    impl ImageKernel for Gray<'_> {
        fn run<L: Simd>(self, simd: L) {
            let (mut got, mut expected) = (vec![0; self.0.len() / 3], vec![0; self.0.len() / 3]);
            simd.gray(self.0, self.1, &mut got);
            Plain.gray(self.0, self.1, &mut expected);
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn every_color_has_the_same_gray_in_vectors() {
        for red in 0..=255 {
            let green_blue = (0..=255).flat_map(|green| (0..=255).map(move |blue| (green, blue)));
            let colors: Vec<u8> = green_blue.flat_map(|(green, blue)| [red, green, blue]).collect();
            with_lanes(Gray(&colors, None));
        }
    }

    #[test]
    fn rows_of_every_length_become_gray() {
        let bytes: Vec<u8> = (0..600_u32).map(|at| (at * at * 7 % 251) as u8).collect();
        for len in 0..100 {
            let (first, second) = (&bytes[..3 * len], &bytes[600 - 3 * len..]);
            with_lanes(Gray(first, None));
            with_lanes(Gray(first, Some(second)));
        }
    }

    /// Compares rows and columns with the plain code's.
    struct Turned<'a>(&'a [u16]);

    impl ImageKernel for Turned<'_> {
        fn run<L: Simd>(self, simd: L) {
            let width = self.0.len() / ROWS;
            let [mut got, mut expected] = [(); 2].map(|()| vec![[0.0; ROWS]; width]);
            simd.columns(self.0, &mut got);
            Plain.columns(self.0, &mut expected);
            assert_eq!(got, expected);
            let lowest: Vec<u8> = self.0.iter().map(|sum| sum.to_le_bytes()[0]).collect();
            let levels = |at: usize| std::array::from_fn(|row| lowest[row * width + at]);
            let levels: Vec<[u8; ROWS]> = (0..width).map(levels).collect();
            let mut turned = vec![0; width * ROWS];
            simd.lines(&levels, &mut turned);
            assert_eq!(turned, lowest);
            turned.fill(0);
            Plain.lines(&levels, &mut turned);
            assert_eq!(turned, lowest);
        }
    }

    #[test]
    fn rows_of_every_length_become_columns_and_rows_again() {
        let sums: Vec<u16> = (0..400_u16).map(|at| at.wrapping_mul(40_503)).collect();
        for width in 1..50 {
            with_lanes(Turned(&sums[..ROWS * width]));
        }
    }
}
