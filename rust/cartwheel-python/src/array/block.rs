//! Arrays that share one allocation: the small results of a call, each aligned.
//!
//! A step makes several such arrays. One allocation with an owner costs less than an allocation for
//! each of them.
//!
//! # Invariants
//!
//! 1. An allocation begins with its own [`Layout`], and stays until its owner, the only one with its
//!    address, frees it. It belongs to that owner alone.
//! 2. A part of it is given to one array, which has the owner as its base: see invariant 2 of
//!    `array/mod.rs`. Parts that were given lie before `next`.
#![expect(unsafe_code, reason = "makes arrays over memory of its own, see the invariants")]

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use cartwheel_engine::space::DType;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::make_over;

/// The alignment of each array: JAX takes such an array without a copy.
const ALIGNMENT: usize = 64;
/// The name of owners.
const NAME: &CStr = c"cartwheel.block";

/// Memory for arrays that are freed together.
#[derive(Debug)]
pub(crate) struct Block<'py> {
    owner: Bound<'py, PyCapsule>,
    /// The beginning of what no array has yet.
    next: Cell<NonNull<u8>>,
    /// The number of these bytes.
    left: Cell<usize>,
}

impl<'py> Block<'py> {
    /// The space that an array of so many bytes takes.
    pub(crate) const fn space(bytes: usize) -> usize {
        bytes.next_multiple_of(ALIGNMENT)
    }

    /// Memory for arrays that [take](Block::space) so many bytes together.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[expect(clippy::inline_always, reason = "a move of the result waits for the stores before it")]
    #[inline(always)]
    pub(crate) fn new(py: Python<'py>, space: usize) -> PyResult<Self> {
        let out_of_memory =
            || PyMemoryError::new_err(format!("there is no memory for a batch of {space} bytes"));
        // Space for the layout, and for what alignment skips: together at most `ALIGNMENT`, since
        // allocations are aligned to the layout's size.
        let align = size_of::<Layout>().next_power_of_two();
        let layout = Layout::from_size_align(space + ALIGNMENT, align);
        let layout = layout.map_err(|_| out_of_memory())?;
        // SAFETY: the layout has a size, of `ALIGNMENT` at least.
        let first = NonNull::new(unsafe { alloc(layout) }).ok_or_else(out_of_memory)?;
        // SAFETY: the allocation has space for a layout, and is aligned to one (invariant 1).
        unsafe { first.cast::<Layout>().write(layout) }
        // SAFETY: the layout ends within the allocation.
        let behind = unsafe { first.add(size_of::<Layout>()) };
        // SAFETY: at most `ALIGNMENT` bytes behind `first`, as is said above.
        let next = unsafe { behind.add(behind.align_offset(ALIGNMENT)) };
        // SAFETY: `free` may be called by any thread, and is for such an allocation (invariant 1).
        let owner = unsafe {
            PyCapsule::new_with_pointer_and_destructor(py, first.cast(), NAME, Some(free))
        };
        let owner = owner.inspect_err(|_| {
            // SAFETY: just allocated with this layout, and there is no owner (invariant 1).
            unsafe { dealloc(first.as_ptr(), layout) }
        })?;
        Ok(Self { owner, next: Cell::new(next), left: Cell::new(space) })
    }

    /// A new array of shape `[rows, *shape]`, which `copy` writes.
    ///
    /// # Panics
    ///
    /// When too little space is left, or `copy` returns another part of memory than its buffer.
    pub(crate) fn copied(
        &self,
        dtype: DType,
        rows: usize,
        shape: &[usize],
        copy: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> &'a mut [u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = rows * shape.iter().product::<usize>() * dtype.size();
        let (first, space, left) = (self.next.get(), Self::space(bytes), self.left.get());
        assert!(space <= left, "an array of {space} bytes, and {left} are left");
        // SAFETY: so many bytes are left.
        self.next.set(unsafe { first.add(space) });
        self.left.set(left - space);
        // SAFETY: these bytes are in the allocation, and no array has them (invariant 2). They need
        // not be initialized.
        let buffer = unsafe { std::slice::from_raw_parts_mut(first.as_ptr().cast(), bytes) };
        let written = copy(buffer);
        let all = (first.as_ptr().cast_const(), bytes);
        assert_eq!((written.as_ptr(), written.len()), all, "all of the buffer");
        // SAFETY: the bytes of the shape, initialized, and the new array's alone (invariant 2).
        unsafe { make_over(&self.owner, dtype, rows, shape, first) }
    }

    /// A new array of shape `[rows, *shape]` with a copy of these elements.
    ///
    /// # Panics
    ///
    /// When too little space is left, or the elements have another size.
    pub(crate) fn with_elements(
        &self,
        dtype: DType,
        rows: usize,
        shape: &[usize],
        elements: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copied(dtype, rows, shape, |buffer| {
            assert_eq!(buffer.len(), elements.len(), "bytes of the elements");
            let first = buffer.as_mut_ptr().cast::<u8>();
            // SAFETY: both have so many bytes, and the buffer is borrowed alone.
            unsafe { first.copy_from_nonoverlapping(elements.as_ptr(), elements.len()) }
            // SAFETY: just initialized, and the slice borrows the buffer.
            unsafe { std::slice::from_raw_parts_mut(first, elements.len()) }
        })
    }

    /// A new array of shape `[rows, *shape]`, whose elements are 0 until `fill` writes them.
    ///
    /// # Panics
    ///
    /// When too little space is left.
    pub(crate) fn filled(
        &self,
        dtype: DType,
        rows: usize,
        shape: &[usize],
        fill: impl FnOnce(&mut [u8]),
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copied(dtype, rows, shape, |buffer| {
            let (first, bytes) = (buffer.as_mut_ptr().cast::<u8>(), buffer.len());
            // SAFETY: the buffer has so many bytes.
            unsafe { first.write_bytes(0, bytes) }
            // SAFETY: just initialized, and the slice borrows the buffer.
            let buffer = unsafe { std::slice::from_raw_parts_mut(first, bytes) };
            fill(buffer);
            buffer
        })
    }
}

/// Frees the allocation of an owner that no array has as its base any longer.
unsafe extern "C" fn free(owner: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a capsule that was made with this name.
    let first = unsafe { ffi::PyCapsule_GetPointer(owner, NAME.as_ptr()) };
    // SAFETY: the allocation begins with its layout (invariant 1).
    let layout = unsafe { first.cast::<Layout>().read() };
    // SAFETY: allocated with this layout, and neither the owner nor an array is left (invariant 1).
    unsafe { dealloc(first.cast(), layout) }
}
