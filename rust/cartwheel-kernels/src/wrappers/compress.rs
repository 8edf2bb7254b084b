//! The numbers of some places of a batch, side by side, and back at their places.
//!
//! Which rows of a batch ended or began is random, so a branch for a few places is guessed wrong at
//! every third of them. With AVX2 a permutation moves four numbers, whichever of them are kept.
//!
//! # Invariants
//!
//! 1. A function with target features is called only where the processor was found to have them.
//! 2. A load or a store of a vector is within the array of which it has a reference.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "vector instructions, see above"))]

use super::slot::Slot;

/// Calls a function of this module, or its namesake in `avx2` if the processor has the features.
macro_rules! fastest {
    ($name:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        let result = if avx2::is_there() {
            // SAFETY: the processor has the features (invariant 1).
            unsafe { avx2::$name($($argument),*) }
        } else {
            $name($($argument),*)
        };
        #[cfg(not(target_arch = "x86_64"))]
        let result = $name($($argument),*);
        result
    }};
}

/// The number of places whose kind is kept.
pub fn num_kept(kinds: &[u8], keeps: impl Fn(u8) -> bool) -> usize {
    let (tiles, rest) = kinds.as_chunks::<64>();
    // In bytes, as kinds are: the loop becomes one of vectors.
    let kept = |count: u8, &kind: &u8| count.wrapping_add(u8::from(keeps(kind)));
    let of_tiles = tiles.iter().map(|tile| usize::from(tile.iter().fold(0, &kept)));
    of_tiles.sum::<usize>() + usize::from(rest.iter().fold(0, &kept))
}

/// Writes the numbers of the places whose kind is kept side by side, all of `into`.
///
/// # Panics
///
/// When there is not one number for each kind, or space for [all that are kept](num_kept).
pub fn gather<S: Slot<f64>>(
    numbers: &[f64],
    kinds: &[u8],
    keeps: impl Fn(u8) -> bool + Copy,
    into: &mut [S],
) {
    assert_eq!(numbers.len(), kinds.len(), "kinds");
    let count = fastest!(compress(numbers, kinds, keeps, into));
    assert_eq!(count, into.len(), "space for the numbers that are kept");
}

/// The opposite of [`gather`]: writes numbers to the places whose kind is kept, and 0 to the others.
///
/// # Panics
///
/// When there is not one number for each place that is kept, or one kind for each place.
pub fn scatter<S: Slot<f64>>(
    numbers: &[f64],
    kinds: &[u8],
    keeps: impl Fn(u8) -> bool + Copy,
    into: &mut [S],
) {
    assert_eq!(into.len(), kinds.len(), "kinds");
    let count = fastest!(expand(numbers, kinds, keeps, into));
    assert_eq!(count, numbers.len(), "numbers");
}

/// Writes the numbers that are kept to `into`, as far as it goes, and returns how many they are.
fn compress<S: Slot<f64>>(
    numbers: &[f64],
    kinds: &[u8],
    keeps: impl Fn(u8) -> bool,
    into: &mut [S],
) -> usize {
    let mut count = 0;
    for (&number, &kind) in numbers.iter().zip(kinds) {
        if let Some(room) = into.get_mut(count) {
            *room = S::of(number); // the next one that is kept replaces one that is not
        }
        count += usize::from(keeps(kind));
    }
    count
}

/// Writes numbers to the places that are kept, and returns how many places these are.
fn expand<S: Slot<f64>>(
    numbers: &[f64],
    kinds: &[u8],
    keeps: impl Fn(u8) -> bool,
    into: &mut [S],
) -> usize {
    let mut count = 0;
    for (room, &kind) in into.iter_mut().zip(kinds) {
        let is_kept = keeps(kind);
        let number = numbers.get(count).copied().unwrap_or(0.0); // also where it is not kept
        *room = S::of(if is_kept { number } else { 0.0 });
        count += usize::from(is_kept);
    }
    count
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_loadu_si256, _mm256_permutevar8x32_epi32,
        _mm256_storeu_si256,
    };

    use super::super::bits::avx2::set_bits;
    use super::Slot;

    /// A vector of four numbers, as the halves of each.
    type Halves = [u32; 8];

    /// For each set of kept places among four: the halves of the numbers that are kept, side by side.
    static COMPRESSED: [Halves; 16] = permutations(true);
    /// The opposite: for each place the halves of its number, or any.
    static EXPANDED: [Halves; 16] = permutations(false);
    /// All bits of the places that are kept.
    static KEPT: [Halves; 16] = masks();

    const fn permutations(compresses: bool) -> [Halves; 16] {
        let mut all = [[0; 8]; 16];
        let mut set = 0;
        while set < 16 {
            let (mut place, mut count) = (0_u32, 0_u32);
            while place < 4 {
                if set >> place & 1 == 1 {
                    let (from, to) = if compresses { (place, count) } else { (count, place) };
                    all[set][2 * to as usize] = 2 * from;
                    all[set][2 * to as usize + 1] = 2 * from + 1;
                    count += 1;
                }
                place += 1;
            }
            set += 1;
        }
        all
    }

    const fn masks() -> [Halves; 16] {
        let mut all = [[0; 8]; 16];
        let mut set = 0;
        while set < 16 {
            let mut half = 0;
            while half < 8 {
                all[set][half] = if set >> (half / 2) & 1 == 1 { u32::MAX } else { 0 };
                half += 1;
            }
            set += 1;
        }
        all
    }

    /// Whether the processor has what the functions here need.
    pub(super) fn is_there() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
    }

    #[target_feature(enable = "avx2")]
    fn load(four: &[f64; 4]) -> __m256i {
        // SAFETY: these are 32 bytes (invariant 2).
        unsafe { _mm256_loadu_si256(four.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    fn load_halves(halves: &Halves) -> __m256i {
        // SAFETY: these are 32 bytes (invariant 2).
        unsafe { _mm256_loadu_si256(halves.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    fn numbers_of<S: Slot<f64>>(vector: __m256i) -> [S; 4] {
        let mut four = [0.0; 4];
        // SAFETY: these are 32 bytes (invariant 2), and any bits are a number.
        unsafe { _mm256_storeu_si256(four.as_mut_ptr().cast(), vector) }
        four.map(S::of)
    }

    /// A bit for each place that is kept.
    #[target_feature(enable = "avx2")]
    fn kept(kinds: &[u8; 64], keeps: impl Fn(u8) -> bool) -> u64 {
        let kept = kinds.map(|kind| u8::from(keeps(kind)));
        set_bits(&kept, &kept)
    }

    /// The bits of four places, the number of these before them being `at`.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "four bits")]
    fn four_of(bits: u64, at: usize) -> usize {
        (bits >> (4 * at)) as usize % 16
    }

    /// As [`super::compress`].
    ///
    /// # Panics
    ///
    /// When more numbers are kept than `into` has space for.
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn compress<S: Slot<f64>>(
        numbers: &[f64],
        kinds: &[u8],
        keeps: impl Fn(u8) -> bool + Copy,
        into: &mut [S],
    ) -> usize {
        let ((tiles, rest), (groups, others)) = (numbers.as_chunks(), kinds.as_chunks());
        // For a tile of which `into` has no room for every place: the last one, or a batch of 64.
        let mut spare = [S::of(0.0); 64];
        let mut count = 0;
        for (tile, kinds) in tiles.iter().zip(groups) {
            let tile: &[f64; 64] = tile;
            let left = &mut into[count..];
            let has_room = left.len() >= 64;
            let rooms = left.first_chunk_mut().unwrap_or(&mut spare);
            let (bits, mut used) = (kept(kinds, keeps), 0);
            for (at, four) in tile.as_chunks().0.iter().enumerate() {
                let set = four_of(bits, at);
                let moved = _mm256_permutevar8x32_epi32(load(four), load_halves(&COMPRESSED[set]));
                let room = rooms[used..].first_chunk_mut().expect("four for each four places");
                *room = numbers_of(moved); // the next ones replace those that are not kept
                used += set.count_ones() as usize;
            }
            if !has_room {
                let left = &mut into[count..];
                let fitting = used.min(left.len());
                left[..fitting].copy_from_slice(&spare[..fitting]);
            }
            count += used;
        }
        count + super::compress(rest, others, keeps, &mut into[count..])
    }

    /// As [`super::expand`].
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn expand<S: Slot<f64>>(
        numbers: &[f64],
        kinds: &[u8],
        keeps: impl Fn(u8) -> bool + Copy,
        into: &mut [S],
    ) -> usize {
        let ((tiles, rest), (groups, others)) = (into.as_chunks_mut(), kinds.as_chunks());
        let mut padded = [0.0; 64]; // for the last numbers
        let mut count = 0;
        for (tile, kinds) in tiles.iter_mut().zip(groups) {
            let tile: &mut [S; 64] = tile;
            let left = numbers.get(count..).unwrap_or_default();
            let left = left.first_chunk().unwrap_or_else(|| {
                padded[..left.len()].copy_from_slice(left);
                &padded
            });
            let (bits, mut used) = (kept(kinds, keeps), 0);
            for (at, room) in tile.as_chunks_mut().0.iter_mut().enumerate() {
                let set = four_of(bits, at);
                let four = left[used..].first_chunk().expect("four for each four places");
                let order = load_halves(&EXPANDED[set]);
                let moved = _mm256_permutevar8x32_epi32(load(four), order);
                *room = numbers_of(_mm256_and_si256(moved, load_halves(&KEPT[set])));
                used += set.count_ones() as usize;
            }
            count += used;
        }
        let left = numbers.get(count..).unwrap_or_default();
        count + super::expand(left, others, keeps, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::{RESET, TRANSITION, is_stepped};
    use super::*;

    #[test]
    fn gathered_numbers_are_those_of_a_filter_and_scattered_ones_come_back() {
        let is_kept = |at: usize, every: usize| !(at * at + at / 3).is_multiple_of(every);
        for count in [0, 1, 7, 8, 9, 16, 63, 64, 65, 100, 128, 300] {
            for every in [1, 2, 5, 23, 1000] {
                let numbers: Vec<f64> = (1..=count).map(f64::from).collect();
                let kinds: Vec<u8> = (0..numbers.len())
                    .map(|at| if is_kept(at, every) { TRANSITION } else { RESET })
                    .collect();
                let pairs = numbers.iter().zip(&kinds).filter(|(_, kind)| is_stepped(**kind));
                let expected: Vec<f64> = pairs.map(|pair| *pair.0).collect();
                assert_eq!(num_kept(&kinds, is_stepped), expected.len());
                let mut gathered = vec![9.0; expected.len()];
                gather(&numbers, &kinds, is_stepped, &mut gathered);
                assert_eq!(gathered, expected);
                let mut plain = vec![0.0; expected.len()];
                assert_eq!(compress(&numbers, &kinds, is_stepped, &mut plain), expected.len());
                assert_eq!(plain, expected);
                let (mut scattered, mut plain) = (vec![7.0; numbers.len()], vec![7.0; kinds.len()]);
                scatter(&gathered, &kinds, is_stepped, &mut scattered);
                assert_eq!(expand(&gathered, &kinds, is_stepped, &mut plain), gathered.len());
                for (at, number) in scattered.iter().enumerate() {
                    let expected = if is_stepped(kinds[at]) { numbers[at] } else { 0.0 };
                    assert_eq!(number.to_bits(), expected.to_bits());
                    assert_eq!(plain[at].to_bits(), expected.to_bits());
                }
            }
        }
    }

    #[test]
    fn any_bits_are_moved_as_they_are() {
        let numbers: Vec<f64> = (0..64).map(|bits| f64::from_bits(u64::MAX - bits)).collect();
        let kinds: Vec<u8> =
            (0..64).map(|at| if at % 3 == 1 { RESET } else { TRANSITION }).collect();
        let mut gathered = vec![f64::NAN; num_kept(&kinds, is_stepped)];
        let mut scattered = [f64::NAN; 64];
        gather(&numbers, &kinds, is_stepped, &mut gathered);
        scatter(&gathered, &kinds, is_stepped, &mut scattered);
        for (at, number) in scattered.iter().enumerate() {
            let expected = if at % 3 == 1 { 0 } else { numbers[at].to_bits() };
            assert_eq!(number.to_bits(), expected);
        }
    }

    #[test]
    fn another_number_of_numbers_panics() {
        for count in [0, 63, 65, 200] {
            let scattered = std::panic::catch_unwind(|| {
                scatter(&vec![1.0; count], &[TRANSITION; 64], is_stepped, &mut [0.0; 64]);
            });
            assert!(scattered.is_err(), "{count}");
            let gathered = std::panic::catch_unwind(|| {
                gather(&[1.0; 64], &[TRANSITION; 64], is_stepped, &mut vec![0.0; count]);
            });
            assert!(gathered.is_err(), "{count}");
        }
    }
}
