//! Arrays that share one allocation: the small results of a call or of a wrapper, each aligned.
//!
//! A step makes several such arrays. One allocation with an owner costs less than an allocation for
//! each of them. [`Blocks`] cost less still: they are the allocation and the arrays of an earlier
//! batch, once no other code has any of them, as `zip` of Python does with its tuple.
//!
//! # Invariants
//!
//! 1. An allocation begins with its own [`Layout`], and stays until its owner frees it. It belongs to
//!    that owner alone.
//! 2. A part of it is given to one array, which has the owner as its base: see invariant 2 of
//!    `array/mod.rs`. Parts that were given lie before `used`.
//! 3. `used` goes back to the beginning only for a block that [is free](Block::is_free): one reference
//!    to each of its arrays, the block's own, no weak one, and a reference to the owner from each of
//!    them and from the block. Code that reads or writes an array's memory, at once or later, has a
//!    reference to the array or to its owner: a name, a view, a buffer, a tensor. So until the block
//!    gives an array away again, its memory is known to no other code, as if it were new.
//! 4. Counts of references say so because all who change them hold the interpreter's lock. Where there
//!    is none (`Py_GIL_DISABLED`), no block is free.
//! 5. A block is used while attached, by one thread at a time.
#![expect(unsafe_code, reason = "makes arrays over memory of its own, see the invariants")]

use std::alloc::{Layout, alloc, dealloc};
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use cartwheel_engine::space::DType;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::made::{
    bytes_of, is_as_made, is_weakly_referenced, make, make_over, set_length, zeroed,
};

/// The alignment of each array: JAX takes such an array without a copy.
const ALIGNMENT: usize = 64;
/// The name of owners.
const NAME: &CStr = c"cartwheel.block";

/// The number of blocks that a pool keeps: a program has the last batch while it asks for the next one,
/// and maybe the one before it.
const KEPT: usize = 3;
/// The bytes of the largest array of observations that a wrapper keeps. To write more takes so long that
/// it does not matter to make the array, whose memory would be kept for nothing.
const KEPT_BYTES: usize = 4096;
/// The same of the second array of a pair of one size: where two such arrays end, the allocator gives
/// their memory back to the system, and the next step would wait for new memory.
const KEPT_SECOND_BYTES: usize = 4 << 20;

/// Memory for arrays that are freed together.
#[derive(Debug)]
pub(crate) struct Block {
    owner: Py<PyCapsule>,
    /// The beginning of the memory of arrays.
    first: NonNull<u8>,
    /// The number of its bytes.
    space: usize,
    /// The number of those that arrays have.
    used: Cell<usize>,
    /// The arrays that were made over this memory, in their order, if they are kept.
    arrays: Option<RefCell<Vec<Py<PyAny>>>>,
    /// The number of those that belong to the present batch.
    shown: Cell<usize>,
}

// SAFETY: the memory is bound to no thread, and only one at a time has access (invariant 5).
unsafe impl Send for Block {}

impl Block {
    /// The space that an array of `bytes` bytes takes.
    pub(crate) const fn space(bytes: usize) -> usize {
        bytes.next_multiple_of(ALIGNMENT)
    }

    /// Memory for arrays that [take](Block::space) `bytes` bytes together.
    #[expect(clippy::inline_always, reason = "a move of the result waits for the stores before it")]
    #[inline(always)]
    pub(crate) fn new(py: Python<'_>, space: usize) -> PyResult<Self> {
        let out_of_memory =
            || PyMemoryError::new_err(format!("there is no memory for a batch of {space} bytes"));
        // Space for the layout, and for what alignment skips: together at most `ALIGNMENT`, since
        // allocations are aligned to the layout's size.
        let align = size_of::<Layout>().next_power_of_two();
        let layout = Layout::from_size_align(space + ALIGNMENT, align);
        let layout = layout.map_err(|_| out_of_memory())?;
        // SAFETY: the layout has a size, of `ALIGNMENT` at least.
        let allocation = NonNull::new(unsafe { alloc(layout) }).ok_or_else(out_of_memory)?;
        // SAFETY: the allocation has space for a layout, and is aligned to one (invariant 1).
        unsafe { allocation.cast::<Layout>().write(layout) }
        // SAFETY: the layout ends within the allocation.
        let behind = unsafe { allocation.add(size_of::<Layout>()) };
        // SAFETY: at most `ALIGNMENT` bytes behind `allocation`, as is said above.
        let first = unsafe { behind.add(behind.align_offset(ALIGNMENT)) };
        // SAFETY: `free` may be called by any thread, and is for such an allocation (invariant 1).
        let owner = unsafe {
            PyCapsule::new_with_pointer_and_destructor(py, allocation.cast(), NAME, Some(free))
        };
        let owner = owner.inspect_err(|_| {
            // SAFETY: just allocated with this layout, and there is no owner (invariant 1).
            unsafe { dealloc(allocation.as_ptr(), layout) }
        })?;
        let (used, shown) = (Cell::new(0), Cell::new(0));
        Ok(Self { owner: owner.unbind(), first, space, used, arrays: None, shown })
    }

    /// Whether no other code has the memory or an array of it, or could get one (invariants 3 and 4).
    fn is_free(&self, py: Python<'_>) -> bool {
        let Some(arrays) = self.arrays.as_ref().filter(|_| !cfg!(Py_GIL_DISABLED)) else {
            return false;
        };
        let mut arrays = arrays.borrow_mut();
        if arrays.iter().any(|array| references(array.bind(py)) != 1) {
            return false;
        }
        if arrays.iter().any(|array| is_weakly_referenced(array.bind(py))) {
            arrays.clear(); // as if they had not been kept: the references are dead now
        }
        references(self.owner.bind(py)) == 1 + arrays.len()
    }

    /// A new array of shape `[rows, *shape]`, which `copy` writes.
    ///
    /// # Panics
    ///
    /// When too little space is left, or `copy` returns another part of memory than its buffer.
    pub(crate) fn copied<'py>(
        &self,
        py: Python<'py>,
        dtype: DType,
        rows: usize,
        shape: &[usize],
        copy: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> &'a mut [u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let (first, bytes) = self.room(dtype, rows, shape);
        // SAFETY: these bytes are in the allocation, and other code has no array of them (invariants 2
        // and 3). They need not be initialized.
        let buffer = unsafe { std::slice::from_raw_parts_mut(first.as_ptr().cast(), bytes) };
        let written = copy(buffer);
        let all = (first.as_ptr().cast_const(), bytes);
        assert_eq!((written.as_ptr(), written.len()), all, "all of the buffer");
        // SAFETY: the bytes of the shape, initialized, and the array's alone (invariants 2 and 3).
        unsafe { self.array_over(py, dtype, rows, shape, first) }
    }

    /// A new array of shape `[rows, *shape]` that is not written yet, and the address of its first element.
    ///
    /// # Safety
    ///
    /// It is written before other code gets it.
    pub(super) unsafe fn unwritten<'py>(
        &self,
        py: Python<'py>,
        dtype: DType,
        rows: usize,
        shape: &[usize],
    ) -> PyResult<(Bound<'py, PyAny>, NonNull<u8>)> {
        let (first, _) = self.room(dtype, rows, shape);
        // SAFETY: the bytes of the shape, which the caller initializes, and the array's alone
        // (invariants 2 and 3).
        let array = unsafe { self.array_over(py, dtype, rows, shape, first) }?;
        Ok((array, first))
    }

    /// Gives away the memory of an array of shape `[rows, *shape]`: its beginning, and its bytes.
    fn room(&self, dtype: DType, rows: usize, shape: &[usize]) -> (NonNull<u8>, usize) {
        let bytes = bytes_of(dtype, rows, shape);
        let (space, used) = (Self::space(bytes), self.used.get());
        let left = self.space - used;
        assert!(space <= left, "an array of {space} bytes, and {left} are left");
        self.used.set(used + space);
        // SAFETY: `used` bytes are in the allocation.
        (unsafe { self.first.add(used) }, bytes)
    }

    /// The next array, of shape `[rows, *shape]`: the kept one, if it is as it would be made, or a new
    /// one.
    ///
    /// # Safety
    ///
    /// The memory from `first` on has space for the shape and is initialized before other code gets the
    /// array, and no other code has an array of it.
    unsafe fn array_over<'py>(
        &self,
        py: Python<'py>,
        dtype: DType,
        rows: usize,
        shape: &[usize],
        first: NonNull<u8>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(arrays) = &self.arrays else {
            // SAFETY: as the caller promises; the owner keeps the memory (invariant 1).
            return unsafe { make_over(self.owner.bind(py), dtype, rows, shape, first) };
        };
        let number = self.shown.replace(self.shown.get() + 1);
        let kept = arrays.borrow().get(number).map(|array| array.bind(py).clone());
        if let Some(kept) = kept {
            if is_as_made(&kept, dtype, rows, shape, first) {
                return Ok(kept);
            }
            if shape.is_empty() {
                // SAFETY: `make_over` made it, no other code has it (invariant 3), and there is space for
                // `rows` elements if it is as it would be made.
                unsafe { set_length(&kept, rows) }
                if is_as_made(&kept, dtype, rows, shape, first) {
                    return Ok(kept);
                }
            }
            arrays.borrow_mut().truncate(number); // the later ones may be over the same memory
        }
        // SAFETY: as above.
        let array = unsafe { make_over(self.owner.bind(py), dtype, rows, shape, first) }?;
        arrays.borrow_mut().push(array.clone().unbind());
        Ok(array)
    }

    /// A new array of shape `[rows, *shape]` with a copy of these elements.
    ///
    /// # Panics
    ///
    /// When too little space is left, or the elements have another size.
    pub(crate) fn with_elements<'py>(
        &self,
        py: Python<'py>,
        dtype: DType,
        rows: usize,
        shape: &[usize],
        elements: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copied(py, dtype, rows, shape, |buffer| {
            assert_eq!(buffer.len(), elements.len(), "bytes of the elements");
            let first = buffer.as_mut_ptr().cast::<u8>();
            // SAFETY: both have this length, and the buffer is borrowed alone.
            unsafe { first.copy_from_nonoverlapping(elements.as_ptr(), elements.len()) }
            // SAFETY: just initialized, and the slice borrows the buffer.
            unsafe { std::slice::from_raw_parts_mut(first, elements.len()) }
        })
    }

    /// A new array of shape `[rows, *shape]`, whose elements are 0 until `fill` writes them.
    pub(crate) fn filled<'py>(
        &self,
        py: Python<'py>,
        dtype: DType,
        rows: usize,
        shape: &[usize],
        fill: impl FnOnce(&mut [u8]),
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copied(py, dtype, rows, shape, |buffer| {
            let buffer = zeroed(buffer);
            fill(buffer);
            buffer
        })
    }
}

/// The blocks of the last batches of a pool, or of a wrapper. Their memory, and their arrays as objects,
/// are reused as soon as no other code has any of a block's: to make and free them takes longer than a
/// step of a few rows. A program that keeps its batches gets new ones.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// The bytes of the largest array of observations that is kept.
    max_bytes: usize,
    kept: Vec<Block>,
    /// The place of the block of the last batch. The search begins behind it, so that each block is
    /// looked at, and loses arrays with weak references, within a few batches.
    last: usize,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { max_bytes: KEPT_BYTES, kept: Vec::new(), last: 0 }
    }
}

impl Blocks {
    /// For the second arrays of pairs of one size.
    pub(crate) fn of_second_arrays() -> Self {
        Self { max_bytes: KEPT_SECOND_BYTES, ..Self::default() }
    }

    /// A block for the arrays of a batch, which [take](Block::space) so many bytes together.
    #[expect(clippy::inline_always, reason = "see `Block::new`")]
    #[inline(always)]
    pub(crate) fn next(&mut self, py: Python<'_>, space: usize) -> PyResult<&Block> {
        if !self.is_one_free(py, space) {
            self.renew(py, space)?;
        }
        let block = &self.kept[self.last];
        block.used.set(0); // it is free or new (invariant 3)
        block.shown.set(0);
        Ok(block)
    }

    /// A new array of shape `[rows, *shape]`, which `fill` writes: in a block, or above `max_bytes`
    /// with its own memory. It is made before `fill` is called, which may lock: functions of Python
    /// may run meanwhile, those of weak references to arrays that are let go.
    ///
    /// # Safety
    ///
    /// `fill` writes every byte of its buffer, unless it panics.
    pub(crate) unsafe fn written<'py>(
        &mut self,
        py: Python<'py>,
        dtype: DType,
        rows: usize,
        shape: &[usize],
        fill: impl FnOnce(&mut [MaybeUninit<u8>]),
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = bytes_of(dtype, rows, shape);
        // SAFETY: it is written below, unless `fill` panics. Then it is never read.
        let (array, first) = unsafe { self.unwritten(py, dtype, rows, shape) }?;
        // SAFETY: the new array has these bytes, which need not be initialized, and other code does not
        // have it yet.
        fill(unsafe { std::slice::from_raw_parts_mut(first.as_ptr().cast(), bytes) });
        Ok(array)
    }

    /// The same, not written yet; and the address of its first element.
    ///
    /// # Safety
    ///
    /// It is written before other code gets it.
    pub(super) unsafe fn unwritten<'py>(
        &mut self,
        py: Python<'py>,
        dtype: DType,
        rows: usize,
        shape: &[usize],
    ) -> PyResult<(Bound<'py, PyAny>, NonNull<u8>)> {
        let bytes = bytes_of(dtype, rows, shape);
        if bytes > self.max_bytes {
            // SAFETY: no memory is passed, so NumPy allocates as much as the shape needs (invariant 3 of
            // the module above).
            return unsafe { make(py, dtype, Some(rows), shape, None) };
        }
        let block = self.next(py, Block::space(bytes))?;
        // SAFETY: as the caller promises.
        unsafe { block.unwritten(py, dtype, rows, shape) }
    }

    /// Whether one of the size is free, which is the last one then.
    fn is_one_free(&mut self, py: Python<'_>, space: usize) -> bool {
        let kept = self.kept.len();
        for _ in 0..kept {
            self.last = if self.last + 1 < kept { self.last + 1 } else { 0 };
            let block = &self.kept[self.last];
            if block.space == space && block.is_free(py) {
                return true;
            }
        }
        false
    }

    /// Makes a block, which is the last one then, in the place of the oldest if there are enough.
    #[cold]
    fn renew(&mut self, py: Python<'_>, space: usize) -> PyResult<()> {
        let mut block = Block::new(py, space)?;
        if self.kept.len() < KEPT {
            block.arrays = Some(RefCell::default());
            self.last = self.kept.len();
            self.kept.push(block);
            return Ok(());
        }
        self.last = (self.last + 1) % KEPT;
        let oldest = &mut self.kept[self.last];
        let arrays = oldest.arrays.take().unwrap_or_default();
        arrays.borrow_mut().clear(); // the memory of the list is reused
        block.arrays = Some(arrays);
        *oldest = block;
        Ok(())
    }
}

pub(super) fn references(object: &Bound<'_, PyAny>) -> usize {
    // SAFETY: a live object. Under the stable ABI of 3.10 this reads the word that all later versions
    // with that ABI have there; of an object that they never free it is some large number.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }.unsigned_abs()
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
