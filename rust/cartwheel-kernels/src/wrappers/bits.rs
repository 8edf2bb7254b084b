//! Positions of bytes that are set, as bits.
//!
//! # Invariants
//!
//! 1. Every processor of `x86_64` has SSE2.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "vector instructions, see above"))]

/// Calls `then` with each position at which one of the two is not 0.
///
/// It looks at 64 positions at a time: which of them are set is random, so that a processor guesses
/// wrong about once in a loop, however many there are.
pub(super) fn each_set(first: &[u8], second: &[u8], mut then: impl FnMut(usize)) {
    assert_eq!(first.len(), second.len(), "bytes");
    let ((tiles, rest), (others, other_rest)) = (first.as_chunks(), second.as_chunks());
    let last = (!rest.is_empty()).then(|| {
        let [mut first, mut second] = [[0; 64]; 2];
        first[..rest.len()].copy_from_slice(rest);
        second[..rest.len()].copy_from_slice(other_rest);
        set_bits(&first, &second)
    });
    let whole = tiles.iter().zip(others).map(|(first, second)| set_bits(first, second));
    for (tile, mut set) in whole.chain(last).enumerate() {
        while set != 0 {
            then(64 * tile + set.trailing_zeros() as usize);
            set &= set - 1;
        }
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
        for count in [0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 300] {
            for odds in [1, 2, 9, 100] {
                let first: Vec<u8> = (0..count).map(|_| byte(odds)).collect();
                let second: Vec<u8> = (0..count).map(|_| byte(odds)).collect();
                let expected: Vec<_> =
                    (0..count).filter(|&at| first[at] != 0 || second[at] != 0).collect();
                let mut found = Vec::new();
                each_set(&first, &second, |at| found.push(at));
                assert_eq!(found, expected);
                let tiles = first.as_chunks().0.iter().zip(second.as_chunks().0);
                for (first, second) in tiles {
                    assert_eq!(set_bits(first, second), set_bits_of_words(first, second));
                }
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
