//! The meaning of the bytes of an info stream.

/// Maximum depth of nested values in a stream; deeper ones are written as
/// [`InfoWriter::foreign`](super::InfoWriter::foreign) bytes.
pub const DEEPEST: usize = 32;

/// Maximum number of dimensions of an array in a stream: a batch of them has one more, and NumPy has no
/// arrays of more than 64.
pub const MAX_DIMENSIONS: usize = 63;

/// The content of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// One info dictionary, as entries.
    Info = 0,
    /// One info dictionary, as a single value.
    Whole = 1,
    /// One observation leaf without a fixed shape.
    Opaque = 2,
    /// Like `Info`, with a value for which these rules have no column.
    Irregular = 3,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    /// Nothing.
    None = 0,
    /// A truth value of the calling language.
    False = 1,
    /// A truth value of the calling language.
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
