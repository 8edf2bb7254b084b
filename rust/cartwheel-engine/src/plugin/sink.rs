//! Bytes that plugins write and the host owns.
#![expect(unsafe_code, reason = "memory that plugins write, see the invariants of the module")]

use std::ptr::with_exposed_provenance_mut;

use cartwheel_abi::Sink;

use crate::error::Error;

/// A vector that plugins append to.
///
/// Its bytes up to the capacity are initialized (invariant 5).
#[derive(Debug)]
pub(crate) struct Bytes {
    room: Vec<u8>,
    len: usize,
}

/// The memory behind a plugin's sink; `sink` comes first, so that `grow` finds the vector.
///
/// A plugin may have made a reference to the sink alone, from which nothing behind it can be reached. So
/// the address of the whole is exposed, and `grow` takes up that one.
#[repr(C)]
struct SinkGuard {
    sink: Sink,
    room: *mut Vec<u8>,
}

impl Bytes {
    pub(crate) const fn new() -> Self {
        Self { room: Vec::new(), len: 0 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[..self.len]
    }

    pub(crate) fn clear(&mut self) {
        // Bytes that are empty are left alone: `lend` reads the length together with its neighbor, and
        // would wait for the store.
        if self.len > 0 {
            self.len = 0;
        }
    }

    pub(crate) fn replace(&mut self, bytes: &[u8]) {
        if self.room.len() < bytes.len() {
            self.room.resize(bytes.len(), 0);
        }
        self.room[..bytes.len()].copy_from_slice(bytes);
        self.len = bytes.len();
    }

    /// The bytes as text; a text that is not UTF-8 is repaired.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// Calls `call` with a sink of these bytes.
    ///
    /// # Errors
    ///
    /// The plugin's length, when it is beyond the capacity or before the bytes that were there: then
    /// the plugin wrote outside of the sink, or changed what it has no right to change.
    pub(crate) fn lend<T>(&mut self, call: impl FnOnce(*mut Sink) -> T) -> Result<T, String> {
        let Self { room, len } = self;
        let sink = Sink {
            struct_size: size_of::<Sink>(),
            bytes: room.as_mut_ptr(),
            len: *len,
            capacity: room.len(),
            grow,
        };
        let mut lent = SinkGuard { sink, room: &raw mut *room };
        let address = (&raw mut lent).expose_provenance();
        let result = call(with_exposed_provenance_mut(address));
        let now = lent.sink.len;
        if now < *len || now > room.len() {
            return Err(format!("a sink of {len} to {} bytes has the length {now}", room.len()));
        }
        *len = now;
        Ok(result)
    }
}

/// [`Sink::grow`]: the vector at least doubles, unless it has the room, and its new bytes are zeros.
unsafe extern "C" fn grow(sink: *mut Sink, additional: usize) {
    let lent: *mut SinkGuard = with_exposed_provenance_mut(sink.addr());
    // SAFETY: the host lends only sinks that are the first field of a `SinkGuard`, which lives until the
    // call of the plugin returns, and whose address was exposed.
    let lent = unsafe { &mut *lent };
    // SAFETY: the vector is borrowed by `lend`, which uses it again when the call has returned.
    let room = unsafe { &mut *lent.room };
    let needed = lent.sink.len.saturating_add(additional);
    if needed > room.len() {
        let len = needed.max(2 * room.len()).max(64);
        room.resize(len, 0); // aborts the process if memory runs out
    }
    lent.sink.bytes = room.as_mut_ptr();
    lent.sink.capacity = room.len();
}

/// A message of a plugin, written by `call`; and what `call` returned.
pub(super) fn with_message<T>(call: impl FnOnce(*mut Sink) -> T) -> (T, Bytes) {
    let mut message = Bytes::new();
    let mut result = None;
    // A message with a wrong length is empty.
    let _ = message.lend(|sink| result = Some(call(sink)));
    (result.expect("it was called"), message)
}

impl From<Bytes> for Vec<u8> {
    fn from(bytes: Bytes) -> Self {
        let Bytes { mut room, len } = bytes;
        room.truncate(len);
        room
    }
}

/// The error of a plugin that broke the contract.
pub(super) fn broken(plugin: &str, id: &str, what: String) -> Error {
    Error::Plugin { plugin: plugin.to_owned(), id: id.to_owned(), what }
}
