//! Arrays across the border: the only file of the binding that touches NumPy's memory.
//!
//! # Invariants
//!
//! 1. An array that we did not make is read through raw pointers alone, while attached, by one copy
//!    within its bounds during which no Python code of ours runs. Other threads may write it meanwhile,
//!    for NumPy releases the GIL where it has much to do, and some builds have none: then what is copied
//!    is torn, and whoever needs proper values checks the copy. Nobody moves the memory, for NumPy
//!    resizes no array that somebody else refers to.
//! 2. An array made here over borrowed memory has the memory's owner as its base, so the memory
//!    outlives it; and the owner's memory is nobody else's, so Python may write it. Of a rollout
//!    that is being recorded, the batch of a pending step is the workers' until the step has ended;
//!    no Rust code makes a reference to it meanwhile.
//! 3. NumPy's functions are called attached, with objects of the types that they ask for.
#![expect(unsafe_code, reason = "reads and makes NumPy arrays of any dtype, see the invariants")]

pub(crate) mod dtype;
mod owner;

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use cartwheel::space::DType;
use numpy::npyffi::{NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE, NpyTypes, get_type_object};
use numpy::{
    PY_ARRAY_API, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods, npyffi::npy_intp,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::array::dtype::{descr, from_scalar};
pub(crate) use crate::array::owner::{PyDescriptor, PyRolloutSlab, SlabLease};

/// `numpy.asarray`.
pub(crate) fn as_array<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let asarray = ASARRAY.import(value.py(), "numpy", "asarray")?;
    Ok(asarray.call1((value,))?.cast_into::<PyUntypedArray>()?)
}

/// Copies the elements of a C-contiguous array, row-major, from byte `offset` on, as many as `into` has
/// room for.
///
/// # Panics
///
/// When the array is not contiguous, or has not so many bytes.
pub(crate) fn copy_bytes(array: &Bound<'_, PyUntypedArray>, offset: usize, into: &mut [u8]) {
    assert!(array.is_c_contiguous(), "only contiguous arrays are read as bytes");
    let bytes = array.len() * array.dtype().itemsize();
    let fits = offset <= bytes && into.len() <= bytes - offset;
    assert!(fits, "{} bytes from byte {offset} on of {bytes}", into.len());
    // SAFETY: a live array object, read while attached (invariant 3).
    let first = unsafe { (*array.as_array_ptr()).fields.data }.cast::<u8>();
    // SAFETY: `offset` is within the array's memory.
    let from = unsafe { first.add(offset) };
    // SAFETY: `from` begins at least so many initialised bytes, since the array is contiguous, read as
    // invariant 1 says. An environment may return what lies in `into` already, so they may overlap.
    unsafe { from.copy_to(into.as_mut_ptr(), into.len()) }
}

/// A new array with its own memory, filled with `elements`, row-major; shape `[rows, *shape]`, or `shape`.
pub(crate) fn from_bytes<'py>(
    py: Python<'py>,
    dtype: DType,
    rows: Option<usize>,
    shape: &[usize],
    elements: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    filled(py, dtype, rows, shape, |room| room.copy_from_slice(elements))
}

/// A new array with its own memory, which `fill` fills; shape `[rows, *shape]`, or `shape`.
pub(crate) fn filled<'py>(
    py: Python<'py>,
    dtype: DType,
    rows: Option<usize>,
    shape: &[usize],
    fill: impl FnOnce(&mut [u8]),
) -> PyResult<Bound<'py, PyAny>> {
    let (array, first) = make(py, dtype, rows, shape, None)?;
    let bytes = rows.unwrap_or(1) * shape.iter().product::<usize>() * dtype.size();
    if bytes > 0 {
        // SAFETY: the new array has `bytes` bytes.
        unsafe { first.as_ptr().write_bytes(0, bytes) }
        // SAFETY: initialised just now, and the array is known to nobody else yet.
        fill(unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), bytes) });
    }
    Ok(array)
}

/// A writable view of leaf `leaf` of a leased slab of `rows` rows, shape `[rows, *shape]`.
pub(crate) fn view<'py>(
    owner: &Bound<'py, SlabLease>,
    leaf: usize,
    rows: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, lease) = (owner.py(), owner.get().lease());
    let kind = lease.layout().leaf(leaf);
    let (array, _) = make(py, kind.dtype, Some(rows), &kind.shape, Some(lease.leaf(leaf)))?;
    let base = owner.clone().into_any().into_ptr();
    // SAFETY: `array` was made just now over the owner's memory and has no base; the reference to
    // `base` is given away (invariants 2 and 3).
    let set = unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base) };
    if set < 0 { Err(PyErr::fetch(py)) } else { Ok(array) }
}

/// A writable view of a rollout's array of shape `[steps, *shape]` that begins at `start`.
pub(crate) fn rollout_view<'py>(
    owner: &Bound<'py, PyRolloutSlab>,
    dtype: DType,
    steps: usize,
    shape: &[usize],
    start: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, lease) = (owner.py(), owner.get().lease());
    let bytes = steps * shape.iter().product::<usize>() * dtype.size();
    let (array, _) = make(py, dtype, Some(steps), shape, Some(lease.at(start..start + bytes)))?;
    let base = owner.clone().into_any().into_ptr();
    // SAFETY: as in `view`.
    let set = unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base) };
    if set < 0 { Err(PyErr::fetch(py)) } else { Ok(array) }
}

/// Most dimensions that NumPy has had, and one for the rows; and as many as usual arrays have.
const MOST_DIMENSIONS: usize = 65;
const USUAL_DIMENSIONS: usize = 5;

fn make<'py>(
    py: Python<'py>,
    dtype: DType,
    rows: Option<usize>,
    shape: &[usize],
    memory: Option<NonNull<u8>>,
) -> PyResult<(Bound<'py, PyAny>, NonNull<u8>)> {
    // A step makes some arrays, and clearing room for the most dimensions would be felt.
    let (mut usual, mut most) = ([0 as npy_intp; USUAL_DIMENSIONS], Vec::new());
    let dims = if shape.len() < USUAL_DIMENSIONS {
        &mut usual[..]
    } else {
        most.resize(MOST_DIMENSIONS, 0);
        &mut most[..]
    };
    let mut ndim = 0;
    for dimension in rows.iter().chain(shape) {
        let room = dims.get_mut(ndim).ok_or_else(|| {
            PyValueError::new_err(format!("an array cannot have {} dimensions", shape.len()))
        })?;
        *room = npy_intp::try_from(*dimension)?;
        ndim += 1;
    }
    let ndim = c_int::try_from(ndim)?;
    let flags = if memory.is_some() { NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_WRITEABLE } else { 0 };
    let data = memory.map_or(std::ptr::null_mut(), |first| first.as_ptr().cast::<c_void>());
    let descr = descr(py, dtype)?.clone().into_dtype_ptr();
    // SAFETY: only asks for the address of NumPy's array type (invariant 3).
    let subtype = unsafe { get_type_object(py, NpyTypes::PyArray_Type) };
    // SAFETY: `dims` has `ndim` entries, `descr` is a reference given away, `data` is null (NumPy
    // allocates) or has room for the shape (the caller's word, invariant 2).
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
    // SAFETY: a new reference, or null with an exception set.
    let array = unsafe { Bound::from_owned_ptr_or_err(py, raw)? };
    // SAFETY: the object is an array.
    let first = unsafe { (*raw.cast::<numpy::npyffi::PyArrayObject>()).fields.data };
    Ok((array, NonNull::new(first.cast()).unwrap_or(NonNull::dangling())))
}

/// The bytes of a NumPy scalar of type `dtype`, at the front of the returned room.
pub(crate) fn scalar_bytes(value: &Bound<'_, PyAny>, dtype: DType) -> [u8; 16] {
    debug_assert!(
        matches!(from_scalar(value), Ok(Some(found)) if found == dtype),
        "a scalar of type {}",
        dtype.name()
    );
    let mut room = [0_u8; 16];
    // SAFETY: `value` is a NumPy scalar of `dtype`, whose element fits in 16 bytes (invariant 3).
    unsafe {
        PY_ARRAY_API.PyArray_ScalarAsCtype(
            value.py(),
            value.as_ptr(),
            room.as_mut_ptr().cast::<c_void>(),
        );
    }
    room
}
