//! The memory that steps of a row use, which the processor loads while another row is stepped.
//!
//! A row has a data of its own, and perhaps a model. With many rows they are not in the cache when their step
//! begins, and MuJoCo would wait for some hundred lines, one after the other.
//!
//! # Invariants
//!
//! 1. **Prefetching** neither reads nor writes: the processor ignores an address that cannot be read.
#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    expect(unsafe_code, reason = "an intrinsic, see the invariant")
)]

/// Bytes of a line of the cache.
const LINE: usize = 64;
/// Number of ranges that a row can have.
const MAX_RANGES: usize = 9;
/// Bytes that are prefetched for a row at most: a small part of a second-level cache.
const MAX_BYTES: usize = 64 << 10;

/// Ranges of addresses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// First address and number of bytes; ranges without bytes are unused.
    ranges: [(usize, usize); MAX_RANGES],
}

impl Memory {
    /// The first of these ranges that have bytes, up to [`MAX_RANGES`] and [`MAX_BYTES`].
    pub(crate) fn new(ranges: &[(usize, usize)]) -> Self {
        let (mut memory, mut left) = (Self::default(), MAX_BYTES);
        for (range, &(start, bytes)) in
            memory.ranges.iter_mut().zip(ranges.iter().filter(|range| range.1 > 0))
        {
            *range = (start, bytes.min(left));
            left -= range.1;
        }
        memory
    }

    /// Asks the processor to load part number `part` of `parts`.
    #[inline]
    pub(crate) fn prefetch(&self, part: u32, parts: u32) {
        for line in self.lines(part as usize, parts as usize) {
            prefetch_line(line);
        }
    }

    /// Addresses of the lines of one part of each range.
    #[inline]
    fn lines(&self, part: usize, parts: usize) -> impl Iterator<Item = usize> {
        self.ranges.into_iter().take_while(|&(_, bytes)| bytes > 0).flat_map(
            move |(start, bytes)| {
                let (first, lines) = (start - start % LINE, (start % LINE + bytes).div_ceil(LINE));
                (lines * part / parts..lines * (part + 1) / parts)
                    .map(move |line| first.wrapping_add(line * LINE))
            },
        )
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn prefetch_line(address: usize) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    // SAFETY: any address will do (invariant 1).
    unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::without_provenance(address)) }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
fn prefetch_line(_: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// In any number of steps of MuJoCo, each line is prefetched once.
    #[test]
    fn parts_cover_each_line_once() {
        let memory = Memory::new(&[(4096, 640), (0, 0), ((1 << 20) + 60, 8), (3 << 20, 5000)]);
        let all: Vec<usize> = memory.lines(0, 1).collect();
        assert_eq!(all.len(), 10 + 2 + 79);
        for parts in [1, 2, 5, 40, 200] {
            let mut found: Vec<usize> =
                (0..parts).flat_map(|part| memory.lines(part, parts)).collect();
            found.sort_unstable();
            assert_eq!(found, all, "{parts}");
        }
    }

    #[test]
    fn a_row_has_a_limited_share_of_the_cache() {
        let memory = Memory::new(&[(0, 1000), (4096, 1 << 30), (8192, 64)]);
        assert_eq!(
            memory.lines(0, 1).count(),
            1000_usize.div_ceil(LINE) + (MAX_BYTES - 1000) / LINE + 1
        );
        assert_eq!(Memory::new(&[(0, 1); 100]).lines(0, 1).count(), MAX_RANGES);
        memory.prefetch(0, 1); // addresses that cannot be read are ignored
    }
}
