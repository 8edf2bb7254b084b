//! Positions of bytes that are set, as bits.
//!
//! # Invariants
//!
//! 1. Every processor of `x86_64` has SSE2.
//! 2. A function with other target features is called only where the processor was found to have them.
//! 3. A load of a vector is within the array of which it has a reference.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "vector instructions, see above"))]

/// The bytes that become bits together.
type Tile = [u8; 64];
/// Tiles whose positions are found before any is used.
const GROUP: usize = 8;
/// Positions that are written at once, even if fewer are set.
const WRITTEN: usize = 8;
/// Room for the positions of a group.
type Found = [u16; 64 * GROUP + WRITTEN];

/// Calls `then` with each position at which one of the two is not 0.
///
/// Which of them are set is random. A loop over the bits of each tile would end at another number of
/// turns each time, which a processor guesses wrong; a loop over those of many tiles ends once.
pub(super) fn each_set(first: &[u8], second: &[u8], mut then: impl FnMut(usize)) {
    assert_eq!(first.len(), second.len(), "bytes");
    let ((tiles, rest), (others, other_rest)) = (first.as_chunks(), second.as_chunks());
    let mut found = [0; 64 * GROUP + WRITTEN];
    let mut each_of = |tiles: &[Tile], others: &[Tile], begin: usize| {
        let count = positions(tiles, others, &mut found);
        found[..count].iter().for_each(|&position| then(begin + usize::from(position)));
    };
    for (group, (tiles, others)) in tiles.chunks(GROUP).zip(others.chunks(GROUP)).enumerate() {
        each_of(tiles, others, 64 * GROUP * group);
    }
    if !rest.is_empty() {
        let [mut first, mut second] = [[0; 64]; 2];
        first[..rest.len()].copy_from_slice(rest);
        second[..rest.len()].copy_from_slice(other_rest);
        each_of(&[first], &[second], 64 * tiles.len());
    }
}

/// Writes the positions of a group at which one of the two is not 0, and returns how many they are.
fn positions(tiles: &[Tile], others: &[Tile], found: &mut Found) -> usize {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_there() {
        // SAFETY: the processor has the features (invariant 2).
        return unsafe { avx2::positions(tiles, others, found) };
    }
    positions_by(set_bits, tiles, others, found)
}

/// [`positions`], with this [`set_bits`].
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "numbers of zeros, at most 64")]
fn positions_by(
    set_bits: impl Fn(&Tile, &Tile) -> u64,
    tiles: &[Tile],
    others: &[Tile],
    found: &mut Found,
) -> usize {
    let mut count = 0;
    for (tile, (first, second)) in (0_u16..).zip(tiles.iter().zip(others)) {
        let mut set = set_bits(first, second);
        let mut room = &mut found[count..];
        count += set.count_ones() as usize;
        while set != 0 {
            let (next, rest) = room.split_first_chunk_mut::<WRITTEN>().expect("room for a group");
            for position in next {
                *position = 64 * tile + set.trailing_zeros() as u16; // any, if none is left
                set &= set.wrapping_sub(1);
            }
            room = rest;
        }
    }
    count
}

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_setzero_si256,
    };

    use super::{Found, Tile, positions_by};

    /// Whether the processor has what the functions here need.
    pub(super) fn is_there() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("popcnt")
    }

    /// As [`super::positions`].
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    pub(super) fn positions(tiles: &[Tile], others: &[Tile], found: &mut Found) -> usize {
        positions_by(|first, second| set_bits(first, second), tiles, others, found)
    }

    #[target_feature(enable = "avx2")]
    fn load(half: &[u8; 32]) -> __m256i {
        // SAFETY: these are 32 bytes (invariant 3).
        unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
    }

    /// As [`super::set_bits`]. The halves are not a loop: its count, checked, would keep it one.
    #[target_feature(enable = "avx2")]
    pub(in super::super) fn set_bits(first: &Tile, second: &Tile) -> u64 {
        let ([low, high], [other_low, other_high]) = (first.as_chunks().0, second.as_chunks().0)
        else {
            unreachable!("a tile has two halves")
        };
        let zeros = |half: &[u8; 32], other: &[u8; 32]| {
            let either = _mm256_or_si256(load(half), load(other));
            let bits = _mm256_movemask_epi8(_mm256_cmpeq_epi8(either, _mm256_setzero_si256()));
            u64::from(bits.cast_unsigned())
        };
        !(zeros(low, other_low) | zeros(high, other_high) << 32)
    }
}

/// A bit for each position at which one of the two is not 0.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn set_bits(first: &[u8; 64], second: &[u8; 64]) -> u64 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_setzero_si128,
    };

    #[target_feature(enable = "sse2")]
    fn vector([low, high]: [[u8; 8]; 2]) -> __m128i {
        _mm_set_epi64x(i64::from_le_bytes(high), i64::from_le_bytes(low)) // one load
    }

    #[target_feature(enable = "sse2")]
    fn set(first: &[u8; 64], second: &[u8; 64]) -> u64 {
        let pairs = first.as_chunks().0.as_chunks().0.iter();
        let others = second.as_chunks().0.as_chunks().0;
        let mut zeros = 0;
        for (at, (first, second)) in pairs.zip(others).enumerate() {
            let either = _mm_or_si128(vector(*first), vector(*second));
            let bits = _mm_movemask_epi8(_mm_cmpeq_epi8(either, _mm_setzero_si128()));
            zeros |= u64::from(bits.cast_unsigned()) << (16 * at);
        }
        !zeros
    }

    // SAFETY: the processor has SSE2 (invariant 1).
    unsafe { set(first, second) }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) use set_bits_of_words as set_bits;

/// [`set_bits`] without vectors.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) fn set_bits_of_words(first: &[u8; 64], second: &[u8; 64]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let (eights, others) = (first.as_chunks::<8>().0, second.as_chunks::<8>().0);
    let mut bits = 0;
    for (at, (eight, other)) in eights.iter().zip(others).enumerate() {
        let word = u64::from_le_bytes(*eight) | u64::from_le_bytes(*other);
        // The highest bit of each byte that is not 0; then the product moves them side by side.
        let highest = (((word & LOW) + LOW) | word) & !LOW;
        bits |= ((highest >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_set_positions_are_found_in_order() {
        let mut state = 1_u64;
        let mut byte = |odds: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let high = state >> 33;
            if high.is_multiple_of(odds) { high.to_le_bytes()[1] } else { 0 }
        };
        for count in [0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 300, 512, 1100] {
            for odds in [1, 2, 9, 100] {
                let first: Vec<u8> = (0..count).map(|_| byte(odds)).collect();
                let second: Vec<u8> = (0..count).map(|_| byte(odds)).collect();
                let expected: Vec<_> =
                    (0..count).filter(|&at| first[at] != 0 || second[at] != 0).collect();
                let mut found = Vec::new();
                each_set(&first, &second, |at| found.push(at));
                assert_eq!(found, expected);
                let tiles = first.as_chunks().0;
                for (first, second) in tiles.iter().zip(second.as_chunks().0) {
                    assert_eq!(set_bits(first, second), set_bits_of_words(first, second));
                }
                let group = (&tiles[..tiles.len().min(GROUP)], second.as_chunks().0);
                let [mut found, mut others] = [[0; 64 * GROUP + WRITTEN]; 2];
                let count = positions(group.0, group.1, &mut found);
                assert_eq!(count, positions_by(set_bits, group.0, group.1, &mut others));
                assert_eq!(found[..count], others[..count]);
            }
        }
    }

    #[test]
    fn every_byte_that_is_set_is_found_in_any_length() {
        for length in 0..40_usize {
            let first: Vec<u8> = (0..length).map(|at| if at % 5 == 1 { 0x80 } else { 0 }).collect();
            let second: Vec<u8> = (0..length).map(|at| u8::from(at % 3 == 0)).collect();
            let mut found = Vec::new();
            each_set(&first, &second, |at| found.push(at));
            let expected: Vec<_> = (0..length).filter(|at| at % 5 == 1 || at % 3 == 0).collect();
            assert_eq!(found, expected);
        }
    }
}
