//! XLA's typed foreign function interface: its structures, and a call as arguments and results.

mod frame;
mod structs;

pub(crate) use frame::{Argument, Frame, NO_ERROR, ResultBuffer};
pub(crate) use structs::{CallFrame, ErrorCode, XlaError};
