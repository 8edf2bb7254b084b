//! Offsets in memory that is not allocated yet.

/// A range of memory whose parts are laid out one after the other, with checked arithmetic. Every
/// offset and every size in shared memory is computed here.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    end: usize,
}

impl Extent {
    /// Maximum bytes of a range: every offset fits a pointer, and two sizes can be added.
    const MAX: usize = isize::MAX as usize / 2;

    /// Lays out `count` values of `bytes` bytes each, and returns their offset: a multiple of
    /// `align`. `None` when they do not fit into the address space.
    pub(crate) fn take(&mut self, count: usize, bytes: usize, align: usize) -> Option<usize> {
        let start = self.end.checked_next_multiple_of(align)?;
        self.end = count.checked_mul(bytes)?.checked_add(start).filter(|&end| end <= Self::MAX)?;
        Some(start)
    }

    /// [`Extent::take`] for `count` values of type `T`.
    pub(crate) fn take_array<T>(&mut self, count: usize) -> Option<usize> {
        self.take(count, size_of::<T>(), align_of::<T>())
    }

    /// Bytes that were laid out, rounded up to a multiple of `align`.
    pub(crate) fn bytes(&self, align: usize) -> usize {
        self.end.next_multiple_of(align)
    }
}
