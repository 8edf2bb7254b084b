//! Infos: what environments say beside observation, reward and flags.
//!
//! An info is a dictionary per row; the caller gets one dictionary of arrays per batch, each with a
//! mask that tells which rows had the key. Workers write a *stream* of records ([`InfoWriter`]);
//! the pool reads it ([`InfoReader`]) and gathers columns ([`Columns`]).
//!
//! # The stream
//!
//! ```text
//! record  := kind u8, row u32, leaf u16, bytes u32, body        (bytes = length of the body)
//! body    := entry*            kinds Info, Irregular: one dictionary, key by key
//!          | value             kind Whole: one dictionary as a single value (odd keys)
//!          | value             kind Opaque: the observation leaf `leaf`, which has no fixed shape
//! entry   := length u16, key (UTF-8), value
//! value   := tag u8, payload   see `Tag`
//! ```
//!
//! Numbers are little-endian and unaligned. The stream stays on one machine; the byte order is
//! fixed so that it can be tested byte by byte.

mod columns;
mod reader;
mod writer;

pub use columns::{Column, Columns, Content, Irregular, ObjectAt};
pub use reader::{Entry, InfoReader, Record, Value};
pub use writer::{InfoWriter, RecordAt};

/// How deep values may nest in a stream; deeper ones are written as [`InfoWriter::foreign`] bytes.
pub const DEEPEST: usize = 32;

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// One info dictionary, as entries.
    Info = 0,
    /// One info dictionary, as a single value.
    Whole = 1,
    /// One observation leaf without a fixed shape.
    Opaque = 2,
    /// Like `Info`, with a value whose column these rules do not know.
    Irregular = 3,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    /// Nothing.
    None = 0,
    /// A truth value of the calling language.
    False = 1,
    /// Likewise.
    True = 2,
    /// An integer of the calling language that fits 64 bits: `i64`.
    Int = 3,
    /// A float of the calling language: `f64`.
    Float = 4,
    /// Text: `u32` bytes, UTF-8.
    Text = 5,
    /// An array scalar: dtype `u8`, element.
    Scalar = 6,
    /// An array: dtype `u8`, dimensions `u8`, each `u32`, elements row-major.
    Array = 7,
    /// A dictionary: `u32` entries.
    Dict = 8,
    /// A tuple: `u32` values.
    Tuple = 9,
    /// A list: `u32` values.
    List = 10,
    /// Bytes that only the calling language can read: `u32` bytes.
    Foreign = 11,
    /// The number of an object that the shard holds: `u32`. Only within one process.
    Object = 12,
}

impl Tag {
    const ALL: [Self; 13] = [
        Self::None,
        Self::False,
        Self::True,
        Self::Int,
        Self::Float,
        Self::Text,
        Self::Scalar,
        Self::Array,
        Self::Dict,
        Self::Tuple,
        Self::List,
        Self::Foreign,
        Self::Object,
    ];

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}
