//! What wrappers of vector environments compute for whole batches, apart from the pool.
//!
//! A batch has one *place* for each row that a call returned. A place shows an *environment*, whose
//! number is the place itself in a batch of all rows, and an entry of `rows` otherwise. State
//! belongs to environments, so it is found by that number.

mod kind;
mod row_kinds;

pub use kind::{FAILED, INCOMPLETE, RESET, SHOWN, TRANSITION};
pub use row_kinds::{NoSuchRow, RowKinds};
