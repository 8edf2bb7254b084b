//! Work on pixels, in the instructions that the processor has.
//!
//! The code for rows of images is generic over [`Lanes`], so that it is compiled once for any
//! processor and once for those with AVX2. Both give the same bits.
//!
//! # Invariants
//!
//! 1. A function with target features is called only where the processor was found to have them:
//!    [`Avx2`] is made there alone.
//! 2. A load or a store of a vector is within the array whose address it takes.

use super::grey::write_grey;

/// How rows of pixels become grey.
pub(super) trait Lanes: Copy {
    /// As [`write_grey`].
    fn grey(self, pixels: &[u8], second: Option<&[u8]>, grey: &mut [u8]);
}

/// Any processor.
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Lanes for Plain {
    #[inline(always)]
    fn grey(self, pixels: &[u8], second: Option<&[u8]>, grey: &mut [u8]) {
        write_grey(pixels, second, grey);
    }
}

/// Work that is generic over the processor.
pub(super) trait Work {
    /// Does it.
    fn run<L: Lanes>(self, lanes: L);
}

/// Does the work with the best instructions that this processor has.
pub(super) fn with_lanes(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = avx2::Avx2::detected() {
        return avx2.run(work);
    }
    work.run(Plain);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    #![expect(unsafe_code, reason = "vector instructions, see the invariants")]

    use std::arch::x86_64::*;

    use super::{Lanes, Work, write_grey};

    /// A processor with AVX2.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2(());

    impl Avx2 {
        pub(super) fn detected() -> Option<Self> {
            is_x86_feature_detected!("avx2").then_some(Self(()))
        }

        pub(super) fn run(self, work: impl Work) {
            // SAFETY: the processor has AVX2 (invariant 1).
            unsafe { run(self, work) }
        }
    }

    /// The work is inlined here, and so compiled for AVX2.
    #[target_feature(enable = "avx2")]
    fn run(lanes: Avx2, work: impl Work) {
        work.run(lanes);
    }

    impl Lanes for Avx2 {
        #[inline(always)]
        fn grey(self, pixels: &[u8], second: Option<&[u8]>, grey: &mut [u8]) {
            // SAFETY: the processor has AVX2 (invariant 1).
            unsafe { write_grey_in_vectors(pixels, second, grey) }
        }
    }

    /// Colours of a step: four vectors of eight.
    const STEP: usize = 32;

    #[inline]
    #[target_feature(enable = "avx2")]
    fn write_grey_in_vectors(pixels: &[u8], second: Option<&[u8]>, grey: &mut [u8]) {
        let len = grey.len();
        if len < STEP {
            return write_grey(pixels, second, grey);
        }
        for start in (0..len).step_by(STEP) {
            // The last step ends with the row, and repeats colours of the one before.
            let colours = start.min(len - STEP)..start.min(len - STEP) + STEP;
            let bytes = 3 * colours.start..3 * colours.end;
            let grey = (&mut grey[colours]).try_into().expect("as long as a step");
            let first = pixels[bytes.clone()].as_chunks().0.try_into().expect("four vectors");
            match second {
                None => write_step::<false>(first, first, grey),
                Some(second) => {
                    let second = second[bytes].as_chunks().0.try_into().expect("four vectors");
                    write_step::<true>(first, second, grey);
                }
            }
        }
    }

    /// Writes 32 grey levels, with the larger one of both colours where there are `TWO`.
    ///
    /// The sum of the weighted levels is computed in whole numbers and divided with rounding down.
    /// That is what [`grey_level`](super::super::grey::grey_level) computes, except where the
    /// division leaves no rest: there its own sum can be a little too small. All colours of such a
    /// step are left to it. A black colour is none of them.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn write_step<const TWO: bool>(
        first: &[[u8; 24]; 4],
        second: &[[u8; 24]; 4],
        grey: &mut [u8; STEP],
    ) {
        let mut levels = [_mm256_setzero_si256(); 4];
        let mut whole = _mm256_setzero_ps();
        for (levels, (first, second)) in levels.iter_mut().zip(first.iter().zip(second)) {
            let mut colours = load(first);
            if TWO {
                colours = _mm256_max_epu8(colours, load(second));
            }
            let (mean, rest) = mean_and_rest(colours);
            *levels = _mm256_cvttps_epi32(mean);
            whole = _mm256_or_ps(whole, rest);
        }
        if _mm256_movemask_ps(whole) != 0 {
            let second = TWO.then_some(second.as_flattened());
            return write_grey(first.as_flattened(), second, grey);
        }
        let low = _mm256_packus_epi32(levels[0], levels[1]);
        let high = _mm256_packus_epi32(levels[2], levels[3]);
        // Packing keeps the two halves of a vector apart: this puts groups of four in order.
        let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        let packed = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
        // SAFETY: a vector is as long as a step (invariant 2).
        unsafe { _mm256_storeu_si256(grey.as_mut_ptr().cast(), packed) }
    }

    /// Eight colours: four in the first 12 bytes of the lower half, four in the last 12 of the
    /// upper.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; 24]) -> __m256i {
        // SAFETY: bytes 0 to 16 of 24 (invariant 2).
        let low = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
        // SAFETY: bytes 8 to 24 of 24 (invariant 2).
        let high = unsafe { _mm_loadu_si128(bytes[8..].as_ptr().cast()) };
        _mm256_set_m128i(high, low)
    }

    /// The weighted mean of eight colours, not yet rounded down, and whether it is a whole number
    /// other than 0.
    ///
    /// With `s` the sum of the levels times 2125, 7154 and 721, the mean is computed as `(2 s + 1) /
    /// 20000`, half a unit too large. That is wrong by at most 3e-5, less than half of `1 / 10000`,
    /// so rounding down gives the level, and fractions below 1e-4 are those of whole numbers.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn mean_and_rest(colours: __m256i) -> (__m256, __m256) {
        // Red and green of each colour as two numbers of 16 bits, then blue and a number that its
        // weight, 1, makes the last term.
        let red_green = _mm256_setr_epi8(
            0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1, //
            4, -1, 5, -1, 7, -1, 8, -1, 10, -1, 11, -1, 13, -1, 14, -1,
        );
        let blue = _mm256_setr_epi8(
            2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1, //
            6, -1, -1, -1, 9, -1, -1, -1, 12, -1, -1, -1, 15, -1, -1, -1,
        );
        let pair = |first: i32, second: i32| _mm256_set1_epi32(second << 16 | first);
        let red_green = _mm256_shuffle_epi8(colours, red_green);
        let blue = _mm256_shuffle_epi8(colours, blue);
        let sum = _mm256_add_epi32(
            _mm256_madd_epi16(red_green, pair(2 * 2125, 2 * 7154)),
            _mm256_madd_epi16(blue, pair(2 * 721, 0)),
        );
        let sum = _mm256_add_epi32(sum, _mm256_set1_epi32(1));
        let mean = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(1.0 / 20_000.0));
        let rest = _mm256_sub_ps(mean, _mm256_floor_ps(mean));
        let least = _mm256_min_ps(mean, _mm256_set1_ps(1e-4));
        (mean, _mm256_cmp_ps::<_CMP_LT_OQ>(rest, least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the plain code.
    struct Compared<'a>(&'a [u8], Option<&'a [u8]>);

    impl Work for Compared<'_> {
        fn run<L: Lanes>(self, lanes: L) {
            let (mut got, mut expected) = (vec![0; self.0.len() / 3], vec![0; self.0.len() / 3]);
            lanes.grey(self.0, self.1, &mut got);
            write_grey(self.0, self.1, &mut expected);
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn every_colour_has_the_same_grey_in_vectors() {
        for red in 0..=255 {
            let green_blue = (0..=255).flat_map(|green| (0..=255).map(move |blue| (green, blue)));
            let colours: Vec<u8> =
                green_blue.flat_map(|(green, blue)| [red, green, blue]).collect();
            with_lanes(Compared(&colours, None));
        }
    }

    #[test]
    fn rows_of_every_length_become_grey() {
        let bytes: Vec<u8> = (0..600_u32).map(|at| (at * at * 7 % 251) as u8).collect();
        for len in 0..100 {
            let (first, second) = (&bytes[..3 * len], &bytes[600 - 3 * len..]);
            with_lanes(Compared(first, None));
            with_lanes(Compared(first, Some(second)));
        }
    }
}
