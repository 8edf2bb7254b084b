//! Bytes that the host owns, as a buffer.
//!
//! # Invariants
//!
//! 1. **Room.** A [`SinkBuffer`] borrows a sink of the host, whose first `len` bytes are
//!    initialized; `grow` makes room for as many further bytes as it is asked for. The host's pointer
//!    is kept as it is, and no reference made from it outlives a call: `grow` gets the pointer and may
//!    reach more of the host's memory from it than the sink.
#![expect(unsafe_code, reason = "writes into memory that the host owns, see the invariants")]

use std::marker::PhantomData;

use cartwheel_abi::Sink;
use cartwheel_core::info::Buffer;

/// A sink of the host.
#[derive(Debug)]
pub(super) struct SinkBuffer<'a>(*mut Sink, PhantomData<&'a mut Sink>);

impl SinkBuffer<'_> {
    /// The sink at this address.
    ///
    /// # Safety
    ///
    /// It is a sink of the host, which no other code uses while this value lives (invariant 1).
    pub(super) unsafe fn new(sink: *mut Sink) -> Self {
        Self(sink, PhantomData)
    }

    fn sink(&self) -> &Sink {
        // SAFETY: borrowed from the host (invariant 1).
        unsafe { &*self.0 }
    }

    fn sink_mut(&mut self) -> &mut Sink {
        // SAFETY: borrowed from the host, and `self` mutably (invariant 1).
        unsafe { &mut *self.0 }
    }

    /// The address of `additional` bytes after those that were written.
    #[inline]
    fn room(&mut self, additional: usize) -> *mut u8 {
        let Sink { len, capacity, .. } = *self.sink();
        if capacity - len < additional {
            self.grow(additional);
        }
        // SAFETY: `len` bytes are in the sink's memory (invariant 1).
        unsafe { self.sink().bytes.add(len) }
    }

    #[cold]
    fn grow(&mut self, additional: usize) {
        let grow = self.sink().grow;
        // SAFETY: this is the host's function for its own sink (invariant 1).
        unsafe { grow(self.0, additional) }
    }
}

impl Buffer for SinkBuffer<'_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        let Sink { bytes, len, .. } = *self.sink();
        if len == 0 {
            return &[]; // an empty sink may have no memory
        }
        // SAFETY: they are initialized (invariant 1), and borrowed with the sink.
        unsafe { std::slice::from_raw_parts(bytes, len) }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        let Sink { bytes, len, .. } = *self.sink();
        if len == 0 {
            return &mut [];
        }
        // SAFETY: they are initialized (invariant 1), and borrowed mutably with the sink.
        unsafe { std::slice::from_raw_parts_mut(bytes, len) }
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        let room = self.room(bytes.len());
        // SAFETY: there is room for them (invariant 1), in memory of the host, which no slice of
        // Rust overlaps.
        unsafe { room.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
        self.sink_mut().len += bytes.len();
    }

    fn append_zeros(&mut self, count: usize) -> &mut [u8] {
        let room = self.room(count);
        // SAFETY: there is room for them (invariant 1).
        unsafe { room.write_bytes(0, count) }
        self.sink_mut().len += count;
        // SAFETY: they were written just now, and are borrowed with the sink.
        unsafe { std::slice::from_raw_parts_mut(room, count) }
    }

    fn truncate(&mut self, len: usize) {
        let sink = self.sink_mut();
        sink.len = sink.len.min(len);
    }
}
