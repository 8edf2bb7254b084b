//! A call of a handler, as arguments, results and the number of a pool.
//!
//! # Invariants
//!
//! 1. **Frames.** XLA calls a handler with a frame of version 0 of its interface. The frame, and what
//!    it points to, is valid until the handler returns. Its arrays have as many entries as it says, and
//!    their types say what the entries point to.
//! 2. **Buffers.** The memory of a buffer has the bytes of its dtype and dimensions, aligned to an
//!    element; it may be null only where these are none. Until the handler returns, it is accessed by the
//!    handler alone, or by others that read an argument. Arguments are initialized. A result shares no
//!    memory with another result, and shares that of an argument only where a call declares so: such an
//!    argument has the result's bytes once these are written. A [`Frame`] is borrowed by the arguments
//!    that are in use, and mutably by the one result that is.
//! 3. **Errors.** `create_error` is a function of XLA, which copies the message.
#![expect(unsafe_code, reason = "reads what XLA passes, see the invariants")]

use std::ffi::{CString, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::ptr::null_mut;
use std::slice::{from_raw_parts, from_raw_parts_mut};

use cartwheel_engine::space::DType;

use super::structs::{
    ApiVersion, Attributes, BUFFER, Buffer, Buffers, CallFrame, EXECUTE, ErrorArguments, ErrorCode,
    Extension, METADATA, MetadataExtension, S64, SCALAR, Scalar, VERSION, XlaError,
};

/// The functions of XLA, as far as the first.
#[repr(C)]
struct Api {
    struct_size: usize,
    extensions: *mut Extension,
    version: ApiVersion,
    internal: *const c_void,
    create_error: Option<unsafe extern "C" fn(*mut ErrorArguments) -> *mut XlaError>,
}

/// A call of a handler that is to be executed.
pub(crate) struct Frame<'a> {
    call: &'a CallFrame,
    /// The arguments, and then the results: read once for all checks and uses.
    arrays: Vec<Array<'a>>,
    num_arguments: usize,
}

/// An array that a handler gets.
#[derive(Debug)]
pub(crate) struct Argument<'a> {
    pub(crate) dtype: DType,
    pub(crate) dims: &'a [i64],
    pub(crate) bytes: &'a [u8],
}

/// An array that a handler fills.
#[derive(Debug)]
pub(crate) struct ResultBuffer<'a> {
    pub(crate) dtype: DType,
    pub(crate) dims: &'a [i64],
    pub(crate) bytes: &'a mut [MaybeUninit<u8>],
}

/// The dtype with this number of XLA; `None` for those that NumPy does not have.
fn to_dtype(number: i32) -> Option<DType> {
    Some(match number {
        1 => DType::Bool,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::U8,
        7 => DType::U16,
        8 => DType::U32,
        9 => DType::U64,
        10 => DType::F16,
        11 => DType::F32,
        12 => DType::F64,
        15 => DType::C64,
        18 => DType::C128,
        _ => return None,
    })
}

/// A buffer's dtype, dimensions, memory and number of bytes.
#[derive(Clone, Copy)]
struct Array<'a> {
    dtype: DType,
    dims: &'a [i64],
    data: *mut u8,
    bytes: usize,
}

impl<'a> Frame<'a> {
    /// The call of this frame; `None` where XLA asks for the handler's version, which is answered, or
    /// for another stage, which has nothing to do.
    ///
    /// # Safety
    ///
    /// `frame` is the argument with which XLA has called a handler that has not returned (invariants 1
    /// to 3), and no other `Frame` is made of it.
    pub(crate) unsafe fn new(frame: *mut CallFrame) -> Option<Self> {
        // SAFETY: the frame is valid until the handler returns (invariant 1), which the value does not
        // outlive.
        let call: &'a CallFrame = unsafe { &*frame };
        // SAFETY: extensions are valid or null (invariant 1).
        let first = unsafe { call.extensions.as_ref() };
        if first.is_some_and(|first| first.kind == METADATA) {
            // SAFETY: an extension of this type is one for metadata (invariant 1).
            let metadata = unsafe { (*call.extensions.cast::<MetadataExtension>()).metadata };
            // SAFETY: its metadata are valid, and to be written (invariant 1).
            let version = unsafe { &mut (*metadata).version };
            (version.major, version.minor) = VERSION;
            // SAFETY: as above. Only this field is written: there may be another one behind it.
            unsafe { (*metadata).traits = 0 };
            return None;
        }
        (call.stage == EXECUTE).then_some(Self { call, arrays: Vec::new(), num_arguments: 0 })
    }

    /// Reads what the arguments and results are, before any is used; an error for one of a dtype that
    /// NumPy does not have.
    pub(crate) fn read_arrays(&mut self) -> Result<(), String> {
        let CallFrame { arguments, results, .. } = self.call;
        let sizes = [arguments, results].map(|buffers| usize::try_from(buffers.size).unwrap_or(0));
        self.arrays = Vec::with_capacity(sizes.iter().sum());
        append(&mut self.arrays, arguments, "argument")?;
        self.num_arguments = self.arrays.len();
        append(&mut self.arrays, results, "result")
    }

    /// The attribute `pool`, a number.
    pub(crate) fn pool(&self) -> Option<i64> {
        let Attributes { size, types, names, values, .. } = self.call.attributes;
        // SAFETY: there are `size` types (invariant 1).
        let types = unsafe { slice(types, size) };
        // SAFETY: there are `size` names (invariant 1).
        let names = unsafe { slice(names, size) };
        // SAFETY: there are `size` values (invariant 1).
        let values = unsafe { slice(values, size) };
        let at = names.iter().position(|&name| {
            // SAFETY: a name is valid (invariant 1).
            let name = unsafe { &*name };
            // SAFETY: a name has `len` bytes (invariant 1).
            (unsafe { from_raw_parts(name.bytes, name.len) }) == b"pool"
        })?;
        if types[at] != SCALAR {
            return None;
        }
        // SAFETY: a value of this type is a scalar (invariant 1).
        let scalar = unsafe { &*values[at].cast::<Scalar>() };
        // SAFETY: a scalar of this dtype is an `i64` (invariant 1).
        (scalar.dtype == S64).then(|| unsafe { scalar.value.cast::<i64>().read_unaligned() })
    }

    /// Number of arguments.
    pub(crate) fn num_arguments(&self) -> usize {
        self.num_arguments
    }

    /// Number of results.
    pub(crate) fn num_results(&self) -> usize {
        self.arrays.len() - self.num_arguments
    }

    pub(crate) fn argument(&self, at: usize) -> Argument<'_> {
        let Array { dtype, dims, data, bytes } = self.arrays[..self.num_arguments][at];
        let bytes = if bytes == 0 {
            &[]
        } else {
            // SAFETY: the memory has these bytes, initialized, and nothing writes them meanwhile: `self` is
            // borrowed, so no result of this frame is in use (invariant 2).
            unsafe { from_raw_parts(data, bytes) }
        };
        Argument { dtype, dims, bytes }
    }

    pub(crate) fn result(&mut self, at: usize) -> ResultBuffer<'_> {
        let Array { dtype, dims, data, bytes } = self.arrays[self.num_arguments + at];
        let bytes = if bytes == 0 {
            &mut []
        } else {
            // SAFETY: the memory has these bytes, which nothing else accesses: `self` is borrowed mutably, so
            // no other result and no argument of this frame is in use (invariant 2).
            unsafe { from_raw_parts_mut(data.cast::<MaybeUninit<u8>>(), bytes) }
        };
        ResultBuffer { dtype, dims, bytes }
    }

    /// XLA's error with this text, for the handler to return.
    pub(crate) fn error(&self, code: ErrorCode, text: &str) -> *mut XlaError {
        let message = CString::new(text.replace('\0', " ")).unwrap_or_default();
        let mut arguments = ErrorArguments {
            struct_size: offset_of!(ErrorArguments, code) + size_of::<i32>(),
            extensions: null_mut(),
            message: message.as_ptr(),
            code: code as i32,
        };
        // SAFETY: the functions of XLA are valid (invariant 1).
        let create = unsafe { (*self.call.api.cast::<Api>()).create_error };
        let create = create.expect("XLA makes errors");
        // SAFETY: a function of XLA, which copies the message (invariant 3).
        unsafe { create(&raw mut arguments) }
    }
}

/// An array of a frame with this many entries, which may be null where there are none.
///
/// # Safety
///
/// There are `size` entries, initialized and not written during the lifetime.
unsafe fn slice<'a, T>(first: *const T, size: i64) -> &'a [T] {
    match usize::try_from(size) {
        // SAFETY: the caller's promise (invariant 1).
        Ok(size) if size > 0 => unsafe { from_raw_parts(first, size) },
        _ => &[],
    }
}

/// Appends what the arguments or the results are.
fn append<'a>(arrays: &mut Vec<Array<'a>>, buffers: &'a Buffers, what: &str) -> Result<(), String> {
    // SAFETY: there are `size` types (invariant 1).
    let types = unsafe { slice(buffers.types, buffers.size) };
    // SAFETY: there are `size` entries (invariant 1).
    let entries = unsafe { slice(buffers.entries, buffers.size) };
    for (at, (&kind, &entry)) in types.iter().zip(entries).enumerate() {
        if kind != BUFFER {
            return Err(format!("{what} {at} is not an array"));
        }
        // SAFETY: an entry of this type is a buffer (invariant 1).
        let buffer = unsafe { &*entry.cast::<Buffer>() };
        let dtype = to_dtype(buffer.dtype)
            .ok_or_else(|| format!("{what} {at} has XLA's dtype {}", buffer.dtype))?;
        // SAFETY: there are `rank` dimensions (invariant 1).
        let dims = unsafe { slice(buffer.dims, buffer.rank) };
        let elements: i64 = dims.iter().product();
        let elements = usize::try_from(elements).expect("XLA's dimensions are not negative");
        let bytes = elements * dtype.size();
        if bytes > 0 && buffer.data.is_null() {
            return Err(format!("{what} {at} has no memory"));
        }
        arrays.push(Array { dtype, dims, data: buffer.data.cast(), bytes });
    }
    Ok(())
}

/// No error.
pub(crate) const NO_ERROR: *mut XlaError = null_mut();
