//! A sink of the host.
#![expect(unsafe_code, reason = "plugins write into it")]

use std::ptr::null_mut;

use cartwheel_abi as abi;

/// A sink over a vector.
#[repr(C)]
pub struct Sink {
    sink: abi::Sink,
    bytes: Vec<u8>,
}

impl Sink {
    #[expect(clippy::unnecessary_box_returns, reason = "tables keep its address")]
    pub fn new() -> Box<Self> {
        let sink = abi::Sink {
            struct_size: size_of::<abi::Sink>(),
            bytes: null_mut(),
            len: 0,
            capacity: 0,
            grow,
        };
        Box::new(Self { sink, bytes: Vec::new() })
    }

    pub fn pointer(&mut self) -> *mut abi::Sink {
        std::ptr::from_mut(self).cast()
    }

    /// Makes room for as many bytes.
    pub fn reserve(&mut self, bytes: usize) {
        // SAFETY: its own sink.
        unsafe { grow(self.pointer(), bytes) }
    }

    /// Forgets what was written.
    pub fn clear(&mut self) {
        self.sink.len = 0;
    }

    /// Takes the written bytes.
    pub fn take(&mut self) -> Vec<u8> {
        let len = std::mem::take(&mut self.sink.len);
        self.bytes[..len].to_vec()
    }

    pub fn take_text(&mut self) -> String {
        String::from_utf8(self.take()).expect("text")
    }
}

/// Grows by as little as possible, so that every append that needs room asks for it.
unsafe extern "C" fn grow(sink: *mut abi::Sink, additional: usize) {
    // SAFETY: every sink is the first field of a `Sink`.
    let sink = unsafe { &mut *sink.cast::<Sink>() };
    let len = sink.sink.len + additional;
    let mut bytes = vec![0xa5; len];
    bytes[..sink.sink.len].copy_from_slice(&sink.bytes[..sink.sink.len]);
    sink.bytes = bytes;
    (sink.sink.bytes, sink.sink.capacity) = (sink.bytes.as_mut_ptr(), len);
}
