//! Arrays that are made here: with memory of their own, or over that of an owner.
//!
//! Each `SAFETY` comment cites the invariants of `array/mod.rs`.
#![expect(unsafe_code, reason = "makes NumPy arrays, see the invariants of the module")]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use cartwheel_engine::space::DType;
use numpy::npyffi::{
    NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_F_CONTIGUOUS, NPY_ARRAY_WRITEABLE,
    NpyTypes, PyArrayObject, PyArrayObject_fields, get_type_object, npy_intp,
};
use numpy::{PY_ARRAY_API, PyArrayDescrMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::dtype::descr;
use super::{Number, PyRolloutSlab, SlabLease};
use crate::known::{imported, intern};

/// A new array with its own memory, a copy of `numbers`, row-major, of shape `[rows, *shape]`.
///
/// # Panics
///
/// When the shape has another number of elements.
pub(crate) fn from_numbers<'py, T: Number>(
    py: Python<'py>,
    rows: usize,
    shape: &[usize],
    numbers: &[T],
) -> PyResult<Bound<'py, PyAny>> {
    assert_eq!(rows * shape.iter().product::<usize>(), numbers.len(), "elements of the shape");
    // SAFETY: no memory is passed, so NumPy allocates as much as the shape needs (invariant 3).
    let (array, first) = unsafe { make(py, T::DTYPE, Some(rows), shape, None) }?;
    // SAFETY: the new array has space for as many elements of the same size.
    unsafe {
        first.as_ptr().copy_from_nonoverlapping(numbers.as_ptr().cast(), size_of_val(numbers));
    }
    Ok(array)
}

/// A new array with its own memory, filled with `elements`, row-major; the shape is `[rows,
/// *shape]`, or `shape`.
pub(crate) fn from_bytes<'py>(
    py: Python<'py>,
    dtype: DType,
    rows: Option<usize>,
    shape: &[usize],
    elements: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    filled(py, dtype, rows, shape, |buffer| buffer.copy_from_slice(elements))
}

/// A new array with its own memory, which `fill` writes; the shape is `[rows, *shape]`, or `shape`.
pub(crate) fn filled<'py>(
    py: Python<'py>,
    dtype: DType,
    rows: Option<usize>,
    shape: &[usize],
    fill: impl FnOnce(&mut [u8]),
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: zeros are written everywhere.
    unsafe { written(py, dtype, rows, shape, |buffer| fill(zeroed(buffer))) }
}

/// A buffer, filled with zeros.
pub(super) fn zeroed(buffer: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    buffer.fill(MaybeUninit::new(0));
    // SAFETY: just initialized, and the slice borrows the buffer.
    unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast(), buffer.len()) }
}

/// The same, without the zeros, which take as long as a copy.
///
/// # Safety
///
/// `fill` writes every byte of its buffer, unless it panics.
pub(crate) unsafe fn written<'py>(
    py: Python<'py>,
    dtype: DType,
    rows: Option<usize>,
    shape: &[usize],
    fill: impl FnOnce(&mut [MaybeUninit<u8>]),
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: no memory is passed, so NumPy allocates as much as the shape needs (invariant 3).
    let (array, first) = unsafe { make(py, dtype, rows, shape, None) }?;
    let bytes = bytes_of(dtype, rows.unwrap_or(1), shape);
    // SAFETY: the new array has `bytes` bytes, which need not be initialized, and no other code
    // knows it yet. After a panic it is never read.
    fill(unsafe { std::slice::from_raw_parts_mut(first.as_ptr().cast(), bytes) });
    Ok(array)
}

/// An array of objects, all `None`, shape `[rows]`.
pub(crate) fn empty_objects(py: Python<'_>, rows: usize) -> PyResult<Bound<'_, PyAny>> {
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "dtype"), intern!(py, "object"))?;
    imported!(py, "numpy", "empty").call((rows,), Some(&keywords))
}

/// A writable view of the first `rows` rows of leaf `leaf` of a leased slab, shape `[rows, *shape]`.
///
/// # Panics
///
/// When the slab has fewer rows.
pub(crate) fn view<'py>(
    owner: &Bound<'py, SlabLease>,
    leaf: usize,
    rows: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let lease = owner.get().lease();
    let left = lease.layout().rows() - lease.first();
    assert!(rows <= left, "{rows} rows of {left}");
    let (kind, first) = (lease.layout().leaf(leaf), lease.leaf(leaf));
    // SAFETY: the leaf has that many rows, as was just checked, and is the owner's (invariant 2).
    unsafe { make_over(owner, kind.dtype, rows, &kind.shape, first) }
}

/// The bytes of an array of shape `[rows, *shape]`.
pub(super) fn bytes_of(dtype: DType, rows: usize, shape: &[usize]) -> usize {
    rows * shape.iter().product::<usize>() * dtype.size()
}

/// A writable array of shape `[rows, *shape]` over memory of `owner`, which becomes its base.
///
/// # Safety
///
/// The memory from `first` on has space for the shape, stays valid as long as the owner exists, and is
/// the array's alone, as far as Rust code is concerned (invariant 2).
pub(super) unsafe fn make_over<'py, O>(
    owner: &Bound<'py, O>,
    dtype: DType,
    rows: usize,
    shape: &[usize],
    first: NonNull<u8>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    // SAFETY: the caller promises the space, and the owner becomes the base below (invariant 2).
    let (array, _) = unsafe { make(py, dtype, Some(rows), shape, Some(first)) }?;
    let base = owner.clone().into_ptr();
    // SAFETY: `array` was just made over the owner's memory and has no base; the call takes
    // ownership of the reference to `base` (invariants 2 and 3).
    let set = unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base) };
    if set < 0 { Err(PyErr::fetch(py)) } else { Ok(array) }
}

/// Whether there is a weak reference to an array, which is one of NumPy's.
pub(super) fn is_weakly_referenced(array: &Bound<'_, PyAny>) -> bool {
    // SAFETY: NumPy made the array, for this module or for other code; read while attached (invariant 3).
    !unsafe { (*array.as_ptr().cast::<PyArrayObject>()).fields.weakreflist }.is_null()
}

/// Sets the length of an array of one dimension; those that a program has given more stay.
///
/// # Safety
///
/// [`make_over`] made it, and no other code has it. It is read as `rows` elements only if its memory
/// has them.
pub(super) unsafe fn set_length(array: &Bound<'_, PyAny>, rows: usize) {
    let Ok(rows) = npy_intp::try_from(rows) else { return };
    // SAFETY: `array` was made here, by NumPy, and is read while attached (invariant 3).
    let array = unsafe { &(*array.as_ptr().cast::<PyArrayObject>()).fields };
    if array.nd == 1 {
        // SAFETY: the array has one length, which no other code reads now.
        unsafe { array.dimensions.write(rows) }
    }
}

/// Whether an array that [`make_over`] made is still as it would make it: programs may set its shape,
/// strides, dtype and flags.
pub(super) fn is_as_made(
    array: &Bound<'_, PyAny>,
    dtype: DType,
    rows: usize,
    shape: &[usize],
    first: NonNull<u8>,
) -> bool {
    let Ok(descr) = descr(array.py(), dtype) else { return false };
    // SAFETY: `array` was made here, by NumPy, and is read while attached (invariant 3).
    let array = unsafe { &(*array.as_ptr().cast::<PyArrayObject>()).fields };
    let &PyArrayObject_fields { data, nd, dimensions, strides, descr: own, flags, .. } = array;
    let is_same = data.cast() == first.as_ptr()
        && own.cast() == descr.as_ptr()
        && flags & !NPY_ARRAY_F_CONTIGUOUS == MADE_OVER
        && usize::try_from(nd) == Ok(1 + shape.len());
    if !is_same {
        return false;
    }
    // SAFETY: the array has as many lengths as dimensions (invariant 3).
    let lengths = unsafe { std::slice::from_raw_parts(dimensions, 1 + shape.len()) };
    // SAFETY: and as many strides.
    let strides = unsafe { std::slice::from_raw_parts(strides, 1 + shape.len()) };
    let mut stride = dtype.size();
    for at in (0..=shape.len()).rev() {
        let length = if at == 0 { rows } else { shape[at - 1] };
        if lengths[at].cast_unsigned() != length || strides[at].cast_unsigned() != stride {
            return false;
        }
        stride *= length;
    }
    true
}

/// The flags of an array over aligned memory of another owner, but for the one that depends on its shape.
const MADE_OVER: c_int = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE;

/// A writable view of a rollout's array of shape `[steps, *shape]` that begins at `start`.
pub(crate) fn rollout_view<'py>(
    owner: &Bound<'py, PyRolloutSlab>,
    dtype: DType,
    steps: usize,
    shape: &[usize],
    start: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let lease = owner.get().lease();
    let bytes = bytes_of(dtype, steps, shape);
    let first = lease.at(start..start + bytes);
    // SAFETY: the range has exactly the bytes of the shape, and is the owner's (invariant 2).
    unsafe { make_over(owner, dtype, steps, shape, first) }
}

/// Dimensions for which an array needs no allocation of its lengths.
const USUAL_DIMENSIONS: usize = 5;

/// An array of shape `[rows, *shape]`, or `shape`, over `memory`, or with memory of its own that is
/// not initialized; and the address of its first element.
///
/// # Errors
///
/// NumPy's: it has no memory for it, or no arrays with this many dimensions.
///
/// # Safety
///
/// `memory` has space for the shape, and stays valid and the array's alone as long as the array
/// exists: the caller sets its owner as the array's base (invariant 2).
pub(super) unsafe fn make<'py>(
    py: Python<'py>,
    dtype: DType,
    rows: Option<usize>,
    shape: &[usize],
    memory: Option<NonNull<u8>>,
) -> PyResult<(Bound<'py, PyAny>, NonNull<u8>)> {
    let (mut usual, mut many) = ([0 as npy_intp; USUAL_DIMENSIONS], Vec::new());
    let first = usize::from(rows.is_some());
    let dims = if first + shape.len() <= USUAL_DIMENSIONS {
        &mut usual[..]
    } else {
        many.resize(first + shape.len(), 0);
        &mut many[..]
    };
    if let Some(rows) = rows {
        dims[0] = npy_intp::try_from(rows)?;
    }
    for (place, dimension) in dims[first..].iter_mut().zip(shape) {
        *place = npy_intp::try_from(*dimension)?;
    }
    let ndim = c_int::try_from(first + shape.len())?;
    let flags = if memory.is_some() { NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_WRITEABLE } else { 0 };
    let data = memory.map_or(std::ptr::null_mut(), |first| first.as_ptr().cast::<c_void>());
    let descr = descr(py, dtype)?.clone().into_dtype_ptr();
    // SAFETY: only reads the address of NumPy's array type (invariant 3).
    let subtype = unsafe { get_type_object(py, NpyTypes::PyArray_Type) };
    // SAFETY: `dims` has `ndim` entries, the call takes ownership of `descr`, and `data` is null
    // (NumPy allocates) or has space for the shape (the caller promises that, invariant 2).
    let raw = unsafe {
        PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            subtype,
            descr,
            ndim,
            dims.as_mut_ptr(),
            std::ptr::null_mut(),
            data,
            flags,
            std::ptr::null_mut(),
        )
    };
    // SAFETY: `PyArray_NewFromDescr` returns a new reference, or null with an exception set.
    let array = unsafe { Bound::from_owned_ptr_or_err(py, raw)? };
    // SAFETY: `PyArray_NewFromDescr` returned this object, a live array (invariant 3).
    let first = unsafe { (*raw.cast::<PyArrayObject>()).fields.data };
    Ok((array, NonNull::new(first.cast()).unwrap_or(NonNull::dangling())))
}
