//! Infos as a stream of bytes: what environments report besides observation, reward and flags.
//!
//! # The stream
//!
//! ```text
//! record  := kind u8, row u32, leaf u16, bytes u32, body        (bytes = length of the body)
//! body    := entry*            kinds Info, Irregular: one dictionary, key by key
//!          | value             kind Whole: one dictionary as a single value (odd keys)
//!          | value             kind Opaque: the observation leaf `leaf`, which has no fixed shape
//! entry   := length u16, key (UTF-8), value
//! value   := tag u8, payload   see `Tag` in `format.rs`
//! ```
//!
//! Numbers are little-endian and unaligned. The stream stays on one machine; the byte order is
//! fixed so that it can be tested byte by byte.

mod format;
mod reader;
mod writer;

pub use format::{DEEPEST, MAX_DIMENSIONS, RecordKind};
pub use reader::{InfoEntry, InfoReader, Record, Value};
pub use writer::{Buffer, InfoWriter, LARGEST_PART, RecordAt};
