//! Kernels on pixels in the vector instructions of AVX2 and FMA.
//!
//! # Invariants
//!
//! 1. A function with target features is called only where the processor was found to have them:
//!    an [`Avx2`] is made there alone.
//! 2. A load or a store of a vector is within the array whose address it takes.
#![expect(unsafe_code, reason = "vector instructions, see the invariants")]

use std::arch::x86_64::{
    __m128i, __m256i, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_loadu_si128, _mm_unpackhi_epi16,
    _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi8, _mm_unpacklo_epi16,
    _mm_unpacklo_epi32, _mm_unpacklo_epi64, _mm256_add_epi32, _mm256_add_pd,
    _mm256_castsi256_si128, _mm256_cmpeq_epi8, _mm256_cvtepi32_pd, _mm256_cvtepi32_ps,
    _mm256_cvtepu16_epi32, _mm256_cvttpd_epi32, _mm256_cvttps_epi32, _mm256_extracti128_si256,
    _mm256_fmadd_ps, _mm256_madd_epi16, _mm256_max_epu8, _mm256_movemask_epi8, _mm256_mul_pd,
    _mm256_packus_epi16, _mm256_packus_epi32, _mm256_permutevar8x32_epi32, _mm256_set_m128i,
    _mm256_set1_epi32, _mm256_set1_pd, _mm256_set1_ps, _mm256_setr_epi8, _mm256_setr_epi32,
    _mm256_shuffle_epi8, _mm256_storeu_ps, _mm256_storeu_si256,
};

use super::gray::{WEIGHTS, write_gray};
use super::simd::{ImageKernel, Plain, ROWS, Simd};

/// A processor with AVX2 and FMA.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detected() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Self(()))
    }

    pub(super) fn run(self, work: impl ImageKernel) {
        // SAFETY: the processor has both features (invariant 1).
        unsafe { run(self, work) }
    }
}

/// The work is inlined here, and so compiled for AVX2.
#[target_feature(enable = "avx2,fma")]
fn run(simd: Avx2, work: impl ImageKernel) {
    work.run(simd);
}

impl Simd for Avx2 {
    #[inline(always)]
    fn gray(self, pixels: &[u8], second: Option<&[u8]>, gray: &mut [u8]) {
        // SAFETY: the processor has both features (invariant 1).
        unsafe { write_gray_in_vectors(pixels, second, gray) }
    }

    #[inline(always)]
    fn columns(self, rows: &[u16], columns: &mut [[f32; ROWS]]) {
        if columns.len() < ROWS {
            return Plain.columns(rows, columns);
        }
        // SAFETY: the processor has both features (invariant 1).
        unsafe { write_columns(rows, columns) }
    }

    #[inline(always)]
    fn lines(self, levels: &[[u8; ROWS]], lines: &mut [u8]) {
        if levels.len() < ROWS {
            return Plain.lines(levels, lines);
        }
        // SAFETY: the processor has both features (invariant 1).
        unsafe { write_lines(levels, lines) }
    }
}

/// Where each step begins that covers `len` values; the last one ends with them, and repeats values
/// of the one before. There is at least one step's worth of them.
fn steps(len: usize, step: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(step).map(move |start| start.min(len - step))
}

/// Colors of a step: four vectors of eight.
const STEP: usize = 32;

#[inline]
#[target_feature(enable = "avx2,fma")]
fn write_gray_in_vectors(pixels: &[u8], second: Option<&[u8]>, gray: &mut [u8]) {
    if gray.len() < STEP {
        return write_gray(pixels, second, gray);
    }
    for start in steps(gray.len(), STEP) {
        let bytes = 3 * start..3 * (start + STEP);
        let first = pixels[bytes.clone()].as_chunks().0.try_into().expect("four vectors");
        let gray = (&mut gray[start..start + STEP]).try_into().expect("a step");
        match second {
            None => write_step::<false>(first, first, gray),
            Some(second) => {
                let second = second[bytes].as_chunks().0.try_into().expect("four vectors");
                write_step::<true>(first, second, gray);
            }
        }
    }
}

/// Writes 32 gray levels, of the larger one of both levels where there are `TWO`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn write_step<const TWO: bool>(
    first: &[[u8; 24]; 4],
    second: &[[u8; 24]; 4],
    gray: &mut [u8; STEP],
) {
    let a = levels(load::<TWO>(&first[0], &second[0]));
    let b = levels(load::<TWO>(&first[1], &second[1]));
    let c = levels(load::<TWO>(&first[2], &second[2]));
    let d = levels(load::<TWO>(&first[3], &second[3]));
    let packed = pack([a[0], b[0], c[0], d[0]]);
    let same = _mm256_cmpeq_epi8(packed, pack([a[1], b[1], c[1], d[1]]));
    if _mm256_movemask_epi8(same) == -1 {
        store(packed, gray);
    } else {
        write_rounded::<TWO>(first, second, gray);
    }
}

/// As [`write_step`], for steps in which [`levels`] may be wrong.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn write_rounded<const TWO: bool>(
    first: &[[u8; 24]; 4],
    second: &[[u8; 24]; 4],
    gray: &mut [u8; STEP],
) {
    let a = rounded_levels(load::<TWO>(&first[0], &second[0]));
    let b = rounded_levels(load::<TWO>(&first[1], &second[1]));
    let c = rounded_levels(load::<TWO>(&first[2], &second[2]));
    let d = rounded_levels(load::<TWO>(&first[3], &second[3]));
    store(pack([a, b, c, d]), gray);
}

/// Eight colors: four in the first 12 bytes of the lower half, four in the last 12 of the upper.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn load<const TWO: bool>(first: &[u8; 24], second: &[u8; 24]) -> __m256i {
    let colors = load_one(first);
    if TWO { _mm256_max_epu8(colors, load_one(second)) } else { colors }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_one(bytes: &[u8; 24]) -> __m256i {
    // SAFETY: bytes 0 to 16 of 24 (invariant 2).
    let low = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    // SAFETY: bytes 8 to 24 of 24 (invariant 2).
    let high = unsafe { _mm_loadu_si128(bytes[8..].as_ptr().cast()) };
    _mm256_set_m128i(high, low)
}

/// Packs four times eight levels. The halves of the vectors are still apart, see [`store`].
#[inline]
#[target_feature(enable = "avx2,fma")]
fn pack([a, b, c, d]: [__m256i; 4]) -> __m256i {
    _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d))
}

/// Writes packed levels. Packing keeps the two halves of a vector apart: this puts groups of four
/// in order.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn store(packed: __m256i, gray: &mut [u8; STEP]) {
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let packed = _mm256_permutevar8x32_epi32(packed, order);
    // SAFETY: a vector is as long as a step (invariant 2).
    unsafe { _mm256_storeu_si256(gray.as_mut_ptr().cast(), packed) }
}

/// The gray levels of eight colors; and the same, but 1 less where
/// [`gray_level`](super::gray::gray_level) may be 1 less.
///
/// With `s` the sum of the levels times 2125, 7154 and 721, these are `(s + 1/2) / 10000` and `(s -
/// 1/2) / 10000`, rounded toward 0. Both are wrong by at most 3e-5, less than half of `1 / 10000`.
/// So the first is the exact mean, rounded down, and the second differs where that is a whole
/// number other than 0. There, and only there, the result of `gray_level`, which rounds each term,
/// can be below the exact mean and above the next smaller level.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn levels(colors: __m256i) -> [__m256i; 2] {
    // Red and green of each color as two numbers of 16 bits, then blue.
    let red_green = _mm256_setr_epi8(
        0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1, //
        4, -1, 5, -1, 7, -1, 8, -1, 10, -1, 11, -1, 13, -1, 14, -1,
    );
    let red_green = _mm256_shuffle_epi8(colors, red_green);
    let sum = _mm256_cvtepi32_ps(_mm256_add_epi32(
        _mm256_madd_epi16(red_green, _mm256_set1_epi32((7154 << 16) + 2125)),
        _mm256_madd_epi16(channel::<2>(colors), _mm256_set1_epi32(721)),
    ));
    let mean = |half: f32| _mm256_fmadd_ps(sum, _mm256_set1_ps(1e-4), _mm256_set1_ps(half));
    [_mm256_cvttps_epi32(mean(0.5e-4)), _mm256_cvttps_epi32(mean(-0.5e-4))]
}

/// The gray levels of eight colors, computed as [`gray_level`](super::gray::gray_level) does.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn rounded_levels(colors: __m256i) -> __m256i {
    let (red, green, blue) = (channel::<0>(colors), channel::<1>(colors), channel::<2>(colors));
    let weighted = |levels: __m128i, weight: f64| {
        _mm256_mul_pd(_mm256_cvtepi32_pd(levels), _mm256_set1_pd(weight))
    };
    let four = |red: __m128i, green: __m128i, blue: __m128i| {
        let two = _mm256_add_pd(weighted(red, WEIGHTS[0]), weighted(green, WEIGHTS[1]));
        _mm256_cvttpd_epi32(_mm256_add_pd(two, weighted(blue, WEIGHTS[2])))
    };
    let low = four(
        _mm256_castsi256_si128(red),
        _mm256_castsi256_si128(green),
        _mm256_castsi256_si128(blue),
    );
    let high = four(
        _mm256_extracti128_si256::<1>(red),
        _mm256_extracti128_si256::<1>(green),
        _mm256_extracti128_si256::<1>(blue),
    );
    _mm256_set_m128i(high, low)
}

/// One channel of eight colors, as numbers of 32 bits.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn channel<const C: i8>(colors: __m256i) -> __m256i {
    let places = _mm256_setr_epi8(
        C,
        -1,
        -1,
        -1,
        C + 3,
        -1,
        -1,
        -1,
        C + 6,
        -1,
        -1,
        -1,
        C + 9,
        -1,
        -1,
        -1, //
        C + 4,
        -1,
        -1,
        -1,
        C + 7,
        -1,
        -1,
        -1,
        C + 10,
        -1,
        -1,
        -1,
        C + 13,
        -1,
        -1,
        -1,
    );
    _mm256_shuffle_epi8(colors, places)
}

/// As [`Simd::columns`], of eight columns or more.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn write_columns(rows: &[u16], columns: &mut [[f32; ROWS]]) {
    let width = columns.len();
    for start in steps(width, 8) {
        let row = |row: usize| load_sums(rows[row * width + start..][..8].try_into().expect("8"));
        let turned = transposed(row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7));
        let columns: &mut [_; 8] = (&mut columns[start..start + 8]).try_into().expect("eight");
        for (column, sums) in columns.iter_mut().zip(turned) {
            let reals = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(sums));
            // SAFETY: a column has the eight numbers of a vector (invariant 2).
            unsafe { _mm256_storeu_ps(column.as_mut_ptr(), reals) }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_sums(sums: &[u16; 8]) -> __m128i {
    // SAFETY: a vector is as long as the array (invariant 2).
    unsafe { _mm_loadu_si128(sums.as_ptr().cast()) }
}

/// The columns of eight rows.
#[inline]
#[target_feature(enable = "avx2,fma")]
#[expect(clippy::too_many_arguments, clippy::many_single_char_names, reason = "a matrix")]
fn transposed(
    a: __m128i,
    b: __m128i,
    c: __m128i,
    d: __m128i,
    e: __m128i,
    f: __m128i,
    g: __m128i,
    h: __m128i,
) -> [__m128i; 8] {
    // Pairs of rows, then fours, then all.
    let (ab, cd) = (_mm_unpacklo_epi16(a, b), _mm_unpacklo_epi16(c, d));
    let (ef, gh) = (_mm_unpacklo_epi16(e, f), _mm_unpacklo_epi16(g, h));
    let (abcd, efgh) = (_mm_unpacklo_epi32(ab, cd), _mm_unpacklo_epi32(ef, gh));
    let (abcd_2, efgh_2) = (_mm_unpackhi_epi32(ab, cd), _mm_unpackhi_epi32(ef, gh));
    let (ab, cd) = (_mm_unpackhi_epi16(a, b), _mm_unpackhi_epi16(c, d));
    let (ef, gh) = (_mm_unpackhi_epi16(e, f), _mm_unpackhi_epi16(g, h));
    let (abcd_4, efgh_4) = (_mm_unpacklo_epi32(ab, cd), _mm_unpacklo_epi32(ef, gh));
    let (abcd_6, efgh_6) = (_mm_unpackhi_epi32(ab, cd), _mm_unpackhi_epi32(ef, gh));
    [
        _mm_unpacklo_epi64(abcd, efgh),
        _mm_unpackhi_epi64(abcd, efgh),
        _mm_unpacklo_epi64(abcd_2, efgh_2),
        _mm_unpackhi_epi64(abcd_2, efgh_2),
        _mm_unpacklo_epi64(abcd_4, efgh_4),
        _mm_unpackhi_epi64(abcd_4, efgh_4),
        _mm_unpacklo_epi64(abcd_6, efgh_6),
        _mm_unpackhi_epi64(abcd_6, efgh_6),
    ]
}

/// As [`Simd::lines`], of eight levels or more.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn write_lines(levels: &[[u8; ROWS]], lines: &mut [u8]) {
    let width = levels.len();
    for start in steps(width, 8) {
        let pair = |at: usize| load_levels(levels[start + at..][..2].try_into().expect("two"));
        // The levels of each row in two neighboring columns, then in four, then in eight.
        let two = |at: usize| {
            let both = pair(at);
            _mm_unpacklo_epi8(both, _mm_unpackhi_epi64(both, both))
        };
        let (ab, cd, ef, gh) = (two(0), two(2), two(4), two(6));
        let (low, high) = (_mm_unpacklo_epi16(ab, cd), _mm_unpacklo_epi16(ef, gh));
        let (low_4, high_4) = (_mm_unpackhi_epi16(ab, cd), _mm_unpackhi_epi16(ef, gh));
        let pairs = [
            _mm_unpacklo_epi32(low, high),
            _mm_unpackhi_epi32(low, high),
            _mm_unpacklo_epi32(low_4, high_4),
            _mm_unpackhi_epi32(low_4, high_4),
        ];
        for (at, pair) in pairs.into_iter().enumerate() {
            let (even, odd) = (_mm_cvtsi128_si64(pair), _mm_extract_epi64::<1>(pair));
            for (row, eight) in [(2 * at, even), (2 * at + 1, odd)] {
                lines[row * width + start..][..8].copy_from_slice(&eight.to_le_bytes());
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_levels(levels: &[[u8; ROWS]; 2]) -> __m128i {
    // SAFETY: a vector is as long as both columns (invariant 2).
    unsafe { _mm_loadu_si128(levels.as_ptr().cast()) }
}
