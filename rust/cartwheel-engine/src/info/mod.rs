//! Infos: what environments report besides observation, reward and flags.
//!
//! Each row has one dictionary of infos. The caller gets one dictionary of arrays for each batch; a
//! mask next to each array says which rows had the key. Workers write a *stream* of records
//! ([`InfoWriter`]); the pool reads it ([`InfoReader`]) and gathers columns ([`InfoColumns`]). The
//! stream is described in [`cartwheel_core::info`]. Masks of actions are kept by row ([`ActionMasks`]).

mod columns;
mod masks;

/// The leaf of a record of the kind [`RecordKind::Opaque`] that has no observation but what is kept of a
/// row's terminal state before it is reset in the same step.
pub const TERMINAL: usize = u16::MAX as usize;

pub use cartwheel_core::info::{
    DEEPEST, InfoEntry, InfoReader, InfoWriter, LARGEST_PART, MAX_DIMENSIONS, Record, RecordAt,
    RecordKind, Value,
};
pub use columns::{Column, Content, InfoColumns, Irregular, ObjectAt};
pub use masks::{ActionMasks, MaskMismatch};
