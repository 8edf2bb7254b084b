//! The structures of XLA's typed foreign function interface that a handler reads, as in
//! `xla/ffi/api/c_api.h`, version 0.1: jaxlib 0.5.0 to 0.10.2. Later versions append fields.
//!
//! Each structure begins with its size and a list of extensions. Enumerations are integers here, since
//! a later version may have more values.

use std::ffi::{c_char, c_int, c_void};

/// The version of the interface that handlers implement.
pub(super) const VERSION: (c_int, c_int) = (0, 1);
/// The type of the extension with which XLA asks for a handler's version.
pub(super) const METADATA: c_int = 1;
/// The stage of a call that executes it.
pub(super) const EXECUTE: c_int = 3;
/// The type of an argument or a result that is an array.
pub(super) const BUFFER: c_int = 1;
/// The type of an attribute that is a number.
pub(super) const SCALAR: c_int = 3;
/// The dtype of `int64`.
pub(super) const S64: c_int = 5;

/// The class of an error. Python gets its name as the beginning of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum ErrorCode {
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Internal = 13,
}

/// An error of XLA, which only XLA makes and frees.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct XlaError {
    opaque: [u8; 0],
}

/// The beginning of every extension.
#[repr(C)]
pub(super) struct Extension {
    pub(super) struct_size: usize,
    pub(super) kind: c_int,
    pub(super) next: *mut Extension,
}

#[repr(C)]
pub(super) struct ApiVersion {
    pub(super) struct_size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) major: c_int,
    pub(super) minor: c_int,
}

/// A handler's answer to the question for its version. Later versions have a field behind `traits`,
/// which shares the padding at the end of this structure: it is never written as a whole.
#[repr(C)]
pub(super) struct Metadata {
    pub(super) struct_size: usize,
    pub(super) version: ApiVersion,
    pub(super) traits: u32,
}

#[repr(C)]
pub(super) struct MetadataExtension {
    pub(super) extension: Extension,
    pub(super) metadata: *mut Metadata,
}

#[repr(C)]
pub(super) struct ErrorArguments {
    pub(super) struct_size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) message: *const c_char,
    pub(super) code: c_int,
}

#[repr(C)]
pub(super) struct Buffer {
    pub(super) struct_size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) dtype: c_int,
    pub(super) data: *mut c_void,
    pub(super) rank: i64,
    pub(super) dims: *const i64,
}

#[repr(C)]
pub(super) struct ByteSpan {
    pub(super) bytes: *const u8,
    pub(super) len: usize,
}

#[repr(C)]
pub(super) struct Scalar {
    pub(super) dtype: c_int,
    pub(super) value: *const c_void,
}

/// Arguments, or results.
#[repr(C)]
pub(super) struct Buffers {
    pub(super) struct_size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) size: i64,
    pub(super) types: *const c_int,
    pub(super) entries: *const *const c_void,
}

#[repr(C)]
pub(super) struct Attributes {
    pub(super) struct_size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) size: i64,
    pub(super) types: *const c_int,
    pub(super) names: *const *const ByteSpan,
    pub(super) values: *const *const c_void,
}

/// A call of a handler.
#[repr(C)]
pub(crate) struct CallFrame {
    pub(super) struct_size: usize,
    pub(super) extensions: *mut Extension,
    /// The functions of XLA, see `frame.rs`.
    pub(super) api: *const c_void,
    pub(super) context: *mut c_void,
    pub(super) stage: c_int,
    pub(super) arguments: Buffers,
    pub(super) results: Buffers,
    pub(super) attributes: Attributes,
}
