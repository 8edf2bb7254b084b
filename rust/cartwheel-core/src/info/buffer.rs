//! Buffers of info streams.

/// Bytes that grow at their end: a vector, or memory that someone else owns.
pub trait Buffer {
    /// The written bytes.
    fn bytes(&self) -> &[u8];

    /// The same, for changing it.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]);

    /// Appends `count` zeros, and returns them.
    fn append_zeros(&mut self, count: usize) -> &mut [u8];

    /// Keeps the first `len` bytes; nothing, if there are no more.
    fn truncate(&mut self, len: usize);
}

impl Buffer for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn append_zeros(&mut self, count: usize) -> &mut [u8] {
        let first = self.len();
        self.resize(first + count, 0);
        &mut self[first..]
    }

    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }
}
