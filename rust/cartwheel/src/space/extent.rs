//! Places in memory that is not made yet.

/// A stretch of memory whose places are given out one after the other, in checked arithmetic: every offset and
/// every size of shared memory comes from here.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    end: usize,
}

impl Extent {
    /// Most bytes of a stretch: no pointer into it is further from its start, and two of them can be added.
    const MOST: usize = isize::MAX as usize / 2;

    /// Gives the next place, for `count` things of `bytes` bytes each, and where it starts: a multiple of
    /// `align`. `None` when it does not fit into the address space.
    pub(crate) fn take(&mut self, count: usize, bytes: usize, align: usize) -> Option<usize> {
        let start = self.end.checked_next_multiple_of(align)?;
        self.end = count.checked_mul(bytes)?.checked_add(start).filter(|&end| end <= Self::MOST)?;
        Some(start)
    }

    /// [`Extent::take`] for `count` values of type `T`.
    pub(crate) fn take_array<T>(&mut self, count: usize) -> Option<usize> {
        self.take(count, size_of::<T>(), align_of::<T>())
    }

    /// Bytes that were given out, rounded up to a multiple of `align`.
    pub(crate) fn bytes(&self, align: usize) -> usize {
        self.end.next_multiple_of(align)
    }
}
