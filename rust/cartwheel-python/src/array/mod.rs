//! Conversion of arrays: the only module of the binding that accesses NumPy's memory. This file copies into
//! and out of it; [`made`] makes arrays, [`borrowed`] has those that a function works on in place, and
//! [`numbers`] the numbers of a batch.
//!
//! # Invariants
//!
//! 1. An array that was not made here is read only through raw pointers, while attached, with one
//!    copy within its bounds during which this module runs no Python code. Other threads may write
//!    the array in the meantime: NumPy releases the GIL for long operations, and some builds have
//!    no GIL. Then the copy is torn, and code that needs valid values checks the copy. The memory
//!    does not move, because NumPy does not resize an array that has other references. A program that
//!    resizes one by force (`refcheck=False`) during a call invalidates what NumPy's own views show,
//!    too. In builds without a GIL a program must not change an array's shape or dtype while another
//!    thread passes it to cartwheel: NumPy itself has no lock for that. What [`borrowed`] and
//!    [`numbers`] read in place has no value that must be valid.
//! 2. An array made here over borrowed memory has the memory's owner as its base, so the memory
//!    outlives the array; and the memory belongs to that owner alone, so Python may write it. In a
//!    rollout that is being recorded, the workers own the batch of a pending step until the step
//!    has ended, and Python must not write it until then. Rows of Python environments are written
//!    through addresses (`Room`), since an environment may return a view of the rollout.
//! 3. NumPy's functions are called while attached, with objects of the types that they require. That
//!    a thread is attached excludes no other thread. What does is that a new array is known to no
//!    other code until it is returned, and that one call at a time has access to the state of a pool.
//! 4. An array that was not made here is written under the same conditions as it is read, and only where NumPy says that it may be
//!    written. Every bit pattern that is copied is an element of the array: its source has the same
//!    dtype, one of [`DType`], so there are no references to count.
//! 5. The descriptor of a rollout is only sent to the pool's worker processes, where it comes back to
//!    `PyMemory`; `python/cartwheel/workers` does it.
//! 6. An aligned, contiguous array of objects has an address for each, or null for `None`, and a reference
//!    to each. They are read while attached, each with a reference of its own before any Python code
//!    runs; as by NumPy, without a lock where there is no GIL. They are replaced in an array that no other
//!    code has: a new one, or one with a single reference and no weak one (invariants 3 and 4 of [`block`]).
//!    An array in it that only it has, with memory of its own, is written: to others it is a new one.
#![expect(unsafe_code, reason = "reads and makes NumPy arrays of any dtype, see the invariants")]

mod block;
mod borrowed;
mod dlpack;
pub(crate) mod dtype;
mod made;
mod numbers;
mod owner;
mod rows;

use std::ffi::{c_int, c_void};

use cartwheel_engine::memory::Room;
use cartwheel_engine::space::DType;
use numpy::npyffi::NPY_ARRAY_WRITEABLE;
use numpy::{
    Element, PY_ARRAY_API, PyArray1, PyArrayDescr, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

pub(crate) use crate::array::block::{Block, Blocks};
pub(crate) use crate::array::borrowed::{Borrowed, BorrowedMut};
pub(crate) use crate::array::dlpack::PyTensorExchange;
use crate::array::dtype::{descr, from_scalar};
use crate::array::made::make_over;
pub(crate) use crate::array::made::{
    filled, from_bytes, from_numbers, rollout_view, view, written,
};
pub(crate) use crate::array::numbers::{NewNumbers, Numbers, Unwritten};
pub(crate) use crate::array::owner::{PyRolloutSlab, SlabLease};
pub(crate) use crate::array::rows::{Objects, Rows, index};
use crate::known::imported;

/// Makes the first uses of what is looked up once, and returns an array: `first_uses.rs` says why.
pub(crate) fn make_first_uses(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    dtype::look_up(py)?;
    let array = PyArray1::<f64>::zeros(py, 1, false);
    array.dtype().itemsize();
    drop(array.try_readonly()?);
    drop(array.try_readwrite()?);
    Ok(array.into_any())
}

/// `numpy.asarray`.
pub(crate) fn as_array<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    if let Ok(array) = value.cast_exact::<PyUntypedArray>() {
        return Ok(array.clone()); // as it would, without a call of Python
    }
    let asarray = imported!(value.py(), "numpy", "asarray");
    Ok(asarray.call1((value,))?.cast_into::<PyUntypedArray>()?)
}

/// A C-contiguous array of `dtype`: `value` itself, if it is one, or else a copy, cast as by
/// `astype`.
pub(crate) fn as_contiguous<'py>(
    value: &Bound<'py, PyAny>,
    dtype: DType,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let array = match value.cast::<PyUntypedArray>() {
        Ok(array) => array.clone(),
        Err(_) => as_array(value)?,
    };
    if array.is_c_contiguous() && dtype::is(&array.dtype(), dtype) {
        return Ok(array);
    }
    let cast = array.call_method1("astype", (descr(value.py(), dtype)?, "C"))?;
    Ok(cast.cast_into::<PyUntypedArray>()?)
}

/// Address of an array's first element.
fn first_byte(array: &Bound<'_, PyUntypedArray>) -> *mut u8 {
    // SAFETY: a live array object, read while attached (invariant 3).
    unsafe { (*array.as_array_ptr()).fields.data.cast() }
}

/// The address of the object that an array has its memory of; null if it is its own.
fn base(array: &Bound<'_, PyUntypedArray>) -> *mut pyo3::ffi::PyObject {
    // SAFETY: a live array object, read while attached (invariant 3).
    unsafe { (*array.as_array_ptr()).fields.base }
}

/// The dtype of an array, without a reference of its own: `dtype` takes one by a call of Python.
fn borrowed_dtype<'a, 'py>(
    array: &'a Bound<'py, PyUntypedArray>,
) -> pyo3::Borrowed<'a, 'py, PyArrayDescr> {
    // SAFETY: a live array object, read while attached (invariant 3).
    let descr = unsafe { (*array.as_array_ptr()).fields.descr };
    // SAFETY: an object that the array keeps until it gets another dtype: not from this thread while
    // the reference exists, in which it runs no Python code, and see invariant 1.
    let descr = unsafe { pyo3::Borrowed::from_ptr(array.py(), descr.cast()) };
    // SAFETY: it is a dtype (invariant 3).
    unsafe { descr.cast_unchecked() }
}

/// Whether an array is C-contiguous and has this shape and dtype.
pub(crate) fn is_like(array: &Bound<'_, PyUntypedArray>, shape: &[usize], dtype: DType) -> bool {
    array.shape() == shape && array.is_c_contiguous() && dtype::is(&borrowed_dtype(array), dtype)
}

/// Copies elements of a C-contiguous array, row-major, from byte `offset` on, until `into` is full.
///
/// # Panics
///
/// When the array is not contiguous, or has too few bytes.
pub(crate) fn copy_bytes(array: &Bound<'_, PyUntypedArray>, offset: usize, into: &mut [u8]) {
    let from = bytes_at(array, offset, into.len());
    // SAFETY: the bytes are initialized, and read as in invariant 1; no array has the memory of a live Rust
    // slice.
    unsafe { from.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) }
}

/// Copies all elements of a C-contiguous array, row-major, to a row of the same size.
///
/// # Panics
///
/// When the array is not contiguous, or has too few bytes.
pub(crate) fn copy_to_room(array: &Bound<'_, PyUntypedArray>, mut room: Room<'_>) {
    let from = bytes_at(array, 0, room.bytes());
    // SAFETY: the bytes are initialized, and read as in invariant 1. The room has as many. They may overlap: an
    // environment may return a view of the rollout that is being recorded.
    unsafe { from.copy_to(room.first().as_ptr(), room.bytes()) }
}

/// The address of `count` bytes of a C-contiguous array, from byte `offset` on.
///
/// # Panics
///
/// When the array is not contiguous, or has too few bytes.
fn bytes_at(array: &Bound<'_, PyUntypedArray>, offset: usize, count: usize) -> *const u8 {
    assert!(array.is_c_contiguous(), "only contiguous arrays are read as bytes");
    let bytes = array.len() * borrowed_dtype(array).itemsize();
    let fits = offset <= bytes && count <= bytes - offset;
    assert!(fits, "{count} bytes from byte {offset} on of {bytes}");
    // SAFETY: `offset` is within the array's memory, as was just checked (invariant 1).
    unsafe { first_byte(array).add(offset) }
}

/// A type of elements of which every bit pattern is a value, and its dtype.
///
/// # Safety
///
/// Elements of the dtype have the size of the type, and every bit pattern is a valid value of it.
pub(crate) unsafe trait Number: Element + Copy + Default {
    /// Its dtype.
    const DTYPE: DType;
}

// SAFETY: `DType::U8` is a byte.
unsafe impl Number for u8 {
    const DTYPE: DType = DType::U8;
}

// SAFETY: `DType::F32` is a float of four bytes.
unsafe impl Number for f32 {
    const DTYPE: DType = DType::F32;
}

// SAFETY: `DType::F64` is a float of eight bytes.
unsafe impl Number for f64 {
    const DTYPE: DType = DType::F64;
}

// SAFETY: `DType::I64` is an integer of eight bytes.
unsafe impl Number for i64 {
    const DTYPE: DType = DType::I64;
}

/// Replaces `into` with all elements of a C-contiguous array of numbers.
///
/// # Panics
///
/// When the array is not contiguous, or has another dtype.
pub(crate) fn copy_numbers<T: Number>(array: &Bound<'_, PyUntypedArray>, into: &mut Vec<T>) {
    assert!(array.is_c_contiguous(), "only contiguous arrays are read as numbers");
    assert!(dtype::is(&array.dtype(), T::DTYPE), "numbers of {}", array.dtype());
    into.resize(array.len(), T::default());
    let bytes = size_of_val(&into[..]);
    // SAFETY: the array has as many elements of the same size, initialized, since it is contiguous;
    // they are read as in invariant 1, as bytes, because an array may lie at any address. The
    // vector's memory is its own, and takes any bytes.
    unsafe { first_byte(array).copy_to_nonoverlapping(into.as_mut_ptr().cast(), bytes) }
}

/// Copies all elements of a C-contiguous array of flags, as 0 and 1: NumPy takes every byte but zero
/// for true.
///
/// # Panics
///
/// When the array is not contiguous, or has another dtype.
pub(crate) fn copied_flags(array: &Bound<'_, PyUntypedArray>) -> Vec<u8> {
    assert!(dtype::is(&array.dtype(), DType::Bool), "flags of {}", array.dtype());
    let mut flags = vec![0; array.len()];
    copy_bytes(array, 0, &mut flags);
    as_flags(&mut flags);
    flags
}

/// An array of flags as an array of bytes, of which every one but zero is true. It is the same object:
/// `array.view("u1")` would be a call of Python for each array of an estimator.
pub(crate) fn flags_as_bytes<'a, 'py>(
    flags: &'a Bound<'py, PyArrayDyn<bool>>,
) -> &'a Bound<'py, PyArrayDyn<u8>> {
    // SAFETY: `PyArrayDyn` is NumPy's array object for each type of elements; these have one byte,
    // of which every pattern is a `u8`.
    unsafe { flags.cast_unchecked() }
}

/// Makes 1 of every byte but zero.
pub(crate) fn as_flags(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = u8::from(*byte != 0);
    }
}

/// The flags of an array.
fn flags(array: &Bound<'_, PyUntypedArray>) -> c_int {
    // SAFETY: a live array object, read while attached (invariant 3).
    unsafe { (*array.as_array_ptr()).fields.flags }
}

/// Whether NumPy lets this array be written.
pub(crate) fn is_writable(array: &Bound<'_, PyUntypedArray>) -> bool {
    flags(array) & NPY_ARRAY_WRITEABLE != 0
}

/// Copies the rows of `source`, `[rows, *shape]`, each into its cell of `into`: `cells` has the
/// cells' numbers in a row-major `[steps, num_envs, *shape]`. Of a cell that is there twice the last
/// row remains.
///
/// The thread stays attached: to give up the GIL costs a caller up to its switch interval, five
/// milliseconds, when another thread computes in Python.
///
/// # Panics
///
/// When an array is not contiguous, `into` is read-only or has another dtype or shape, or a row has no
/// cell.
pub(crate) fn scatter(
    source: &Bound<'_, PyUntypedArray>,
    into: &Bound<'_, PyUntypedArray>,
    cells: impl ExactSizeIterator<Item = usize>,
) {
    let whole = source.is_c_contiguous() && into.is_c_contiguous();
    assert!(whole && is_writable(into), "contiguous arrays, the second of them writable");
    let dtype = dtype::from_descr(&source.dtype()).expect("a dtype of numbers");
    assert!(dtype::is(&into.dtype(), dtype), "one dtype");
    let (rows, shape) = source.shape().split_first().expect("an axis of rows");
    let (axes, cell) = into.shape().split_at(2);
    assert!(*rows == cells.len() && shape == cell, "a cell for each row");
    let bytes = shape.iter().product::<usize>() * dtype.size();
    if bytes == 0 {
        return;
    }
    let all = axes[0] * axes[1];
    for (row, cell) in cells.enumerate() {
        assert!(row < *rows && cell < all, "cell {cell} of {all} for row {row} of {rows}");
        // SAFETY: `row` is within the array, whose rows have `bytes` bytes, since it is contiguous.
        let from = unsafe { first_byte(source).add(row * bytes) };
        // SAFETY: `cell` is within the destination, whose rows have the same dtype and shape.
        let to = unsafe { first_byte(into).add(cell * bytes) };
        // SAFETY: read and written as in invariants 1 and 4; they may overlap, because the caller
        // may pass views of one array.
        unsafe { from.copy_to(to, bytes) }
    }
}

/// A writable view of [all results](cartwheel_engine::memory::AddressLease::results) of a leased slab as
/// bytes, if they are in one piece.
fn results_view<'py>(owner: &Bound<'py, SlabLease>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some((first, bytes)) = owner.get().lease().results() else { return Ok(None) };
    // SAFETY: there are that many bytes, and they are the owner's (invariant 2).
    unsafe { make_over(owner, DType::U8, bytes, &[], first) }.map(Some)
}

/// The dtype of a NumPy scalar, by its exact type, and its bytes, at the front of the array; `None`
/// for any other value.
pub(crate) fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Option<(DType, [u8; 16])>> {
    let Some(dtype) = from_scalar(value)? else { return Ok(None) };
    let mut buffer = [0_u8; 16];
    // SAFETY: `value` is a NumPy scalar, and the element of every dtype of `DType` fits in 16 bytes
    // (invariant 3).
    unsafe {
        PY_ARRAY_API.PyArray_ScalarAsCtype(
            value.py(),
            value.as_ptr(),
            buffer.as_mut_ptr().cast::<c_void>(),
        );
    }
    Ok(Some((dtype, buffer)))
}
