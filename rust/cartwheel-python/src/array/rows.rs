//! Some rows of an array, arrays in which some rows are others, and arrays of rows that are objects.
//!
//! Each `SAFETY` comment cites the invariants of `array/mod.rs`.
#![expect(
    unsafe_code,
    reason = "reads NumPy arrays of any dtype, see the invariants of the module"
)]

use std::ffi::c_void;
use std::mem::MaybeUninit;

use cartwheel_engine::space::DType;
use numpy::npyffi::{NPY_ARRAY_OWNDATA, NPY_ARRAY_WRITEABLE};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::ffi;
use pyo3::prelude::*;

use super::block::references;
use super::made::{bytes_of, empty_objects, is_weakly_referenced};
use super::{Blocks, borrowed_dtype, bytes_at, dtype, first_byte, flags, is_like, written};

/// A C-contiguous array of NumPy's own class with an axis of rows, of a dtype of numbers.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, 'py> {
    array: &'a Bound<'py, PyUntypedArray>,
    dtype: DType,
}

impl<'a, 'py> Rows<'a, 'py> {
    /// `None` for any other value.
    pub(crate) fn of(value: &'a Bound<'py, PyAny>) -> Option<Self> {
        let array = value.cast_exact::<PyUntypedArray>().ok()?;
        let dtype = dtype::from_descr(&array.dtype())?;
        (array.ndim() > 0 && array.is_c_contiguous()).then_some(Self { array, dtype })
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.array.shape()[0]
    }

    /// Whether a row of one is as one of the other.
    pub(crate) fn are_like(&self, other: &Rows<'_, '_>) -> bool {
        self.dtype == other.dtype && self.array.shape()[1..] == other.array.shape()[1..]
    }

    /// A new array of the rows at some places.
    ///
    /// # Panics
    ///
    /// When there is no such row.
    pub(crate) fn at(&self, places: &[i64]) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.len();
        self.new_rows(places.len(), |bytes| {
            let first = bytes_at(self.array, 0, rows * bytes);
            places.iter().map(move |&place| {
                let place = index(place);
                assert!(place < rows, "row {place} of {rows}");
                // SAFETY: the row is within the array, which has `rows` of so many bytes.
                unsafe { first.add(place * bytes) }
            })
        })
    }

    /// A new array of rows that are arrays of their own; `None` if one is not as a row here.
    pub(crate) fn joined(
        &self,
        rows: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut found = Vec::new();
        for row in rows {
            match row.cast_into_exact::<PyUntypedArray>() {
                Ok(row) if is_like(&row, &self.array.shape()[1..], self.dtype) => found.push(row),
                _ => return Ok(None),
            }
        }
        let each = |bytes| found.iter().map(move |row| bytes_at(row, 0, bytes));
        self.new_rows(found.len(), each).map(Some)
    }

    /// A new array of so many rows, whose bytes are at the addresses that `from` returns for their number.
    fn new_rows<I: Iterator<Item = *const u8>>(
        &self,
        count: usize,
        from: impl FnOnce(usize) -> I,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.array.shape()[1..].to_vec();
        let bytes = bytes_of(self.dtype, 1, &shape);
        let copy = |room: &mut [MaybeUninit<u8>]| {
            for (room, from) in room.chunks_exact_mut(bytes.max(1)).zip(from(bytes)) {
                // SAFETY: the bytes are initialized, read as in invariant 1, and the room is new.
                unsafe { from.copy_to_nonoverlapping(room.as_mut_ptr().cast(), bytes) }
            }
        };
        // SAFETY: `copy` writes each row.
        unsafe { written(self.array.py(), self.dtype, Some(count), &shape, copy) }
    }

    /// A new array of these rows, but at some places of those of the other one, in their order.
    ///
    /// # Panics
    ///
    /// When there is no such row, or the other array lacks a row, [like those](Self::are_like) here, for a place.
    pub(crate) fn with(
        &self,
        places: &[i64],
        others: &Rows<'_, 'py>,
        blocks: &mut Blocks,
    ) -> PyResult<Bound<'py, PyAny>> {
        assert!(self.are_like(others), "rows of one form");
        let (array, rows, shape) = (self.array, self.len(), self.array.shape()[1..].to_vec());
        let bytes = bytes_of(self.dtype, 1, &shape);
        let copy = |room: &mut [MaybeUninit<u8>]| {
            let all = bytes_at(array, 0, room.len());
            // SAFETY: the bytes are initialized, read as in invariant 1, and the room is new.
            unsafe { all.copy_to_nonoverlapping(room.as_mut_ptr().cast(), room.len()) }
            let mut from = bytes_at(others.array, 0, places.len() * bytes);
            for &place in places {
                let room = &mut room[index(place) * bytes..][..bytes];
                // SAFETY: as above; there is a row for each place.
                unsafe { from.copy_to_nonoverlapping(room.as_mut_ptr().cast(), bytes) }
                // SAFETY: the next row, or the end.
                from = unsafe { from.add(bytes) };
            }
        };
        // SAFETY: `copy` writes all of the room.
        unsafe { blocks.written(array.py(), self.dtype, rows, &shape, copy) }
    }

    /// An array of these rows as objects, at some places of so many; `None` if they are numbers, or there is
    /// not one for each place. It is `given`, whose other objects stay, if no other code has that: then
    /// its arrays are written, to which other code has no reference either.
    pub(crate) fn as_objects(
        &self,
        places: &[i64],
        given: &Objects<'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        // Functions of weak references run as objects are replaced, and may give the array another shape.
        let (array, shape) = (self.array, self.array.shape()[1..].to_vec());
        if shape.is_empty() || self.len() != places.len() {
            return Ok(None);
        }
        let is_alone =
            !cfg!(Py_GIL_DISABLED) && references(&given.0) == 1 && !is_weakly_referenced(&given.0);
        let objects = if is_alone { given } else { &Objects::new(array.py(), given.0.len())? };
        let bytes = bytes_of(self.dtype, 1, &shape);
        for (number, &place) in places.iter().enumerate() {
            match objects.at(index(place)).cast_into_exact::<PyUntypedArray>() {
                Ok(own)
                    if is_alone && is_like(&own, &shape, self.dtype) && has_memory_alone(&own) =>
                {
                    let row = bytes_at(array, number * bytes, bytes);
                    // SAFETY: as many bytes, which no other code can read or write (invariants 1 and 6).
                    unsafe { row.copy_to_nonoverlapping(first_byte(&own), bytes) }
                }
                _ => objects.set(index(place), array.get_item(number)?),
            }
        }
        Ok(Some(objects.array()))
    }
}

/// Whether an array that an array of objects has, which no other code has, is the only one of its memory,
/// and no other code has it. The second reference is the caller's.
fn has_memory_alone(array: &Bound<'_, PyUntypedArray>) -> bool {
    const OWN: i32 = NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE;
    references(array) == 2 && flags(array) & OWN == OWN && !is_weakly_referenced(array)
}

/// An array of NumPy's own class with one axis, of objects side by side.
pub(crate) struct Objects<'py>(Bound<'py, PyUntypedArray>);

impl<'py> Objects<'py> {
    /// So many times `None`.
    pub(crate) fn new(py: Python<'py>, count: usize) -> PyResult<Self> {
        Ok(Self(empty_objects(py, count)?.cast_into()?))
    }

    /// `None` for any other value than so many objects.
    pub(crate) fn of(value: &Bound<'py, PyAny>, count: usize) -> Option<Self> {
        let array = value.cast_exact::<PyUntypedArray>().ok()?;
        let are_objects = array.shape() == [count]
            && array.is_c_contiguous()
            && Self::first(array).is_aligned()
            && borrowed_dtype(array).kind() == b'O';
        are_objects.then(|| Self(array.clone()))
    }

    /// The object at a place.
    ///
    /// # Panics
    ///
    /// When there is no such place.
    pub(crate) fn at(&self, place: usize) -> Bound<'py, PyAny> {
        let py = self.0.py();
        // SAFETY: the array has an address at the place (invariant 6).
        let object = unsafe { *self.address(place) };
        // SAFETY: a live object, which the array keeps, or null (invariant 6).
        let object = unsafe { Bound::from_borrowed_ptr_or_opt(py, object) };
        object.unwrap_or_else(|| py.None().into_bound(py))
    }

    /// Replaces the object at a place of an array that no other code has.
    ///
    /// # Panics
    ///
    /// When there is no such place.
    pub(crate) fn set(&self, place: usize, object: Bound<'py, PyAny>) {
        // SAFETY: the array has an address at the place, and takes the reference (invariant 6).
        let old = unsafe { self.address(place).replace(object.into_ptr()) };
        // SAFETY: a live object, whose reference was the array's, or null (invariant 6).
        drop(unsafe { Bound::from_owned_ptr_or_opt(self.0.py(), old) });
    }

    /// The first place of an array, which is aligned: new arrays are, others are asked in `of`.
    fn first(array: &Bound<'_, PyUntypedArray>) -> *mut *mut ffi::PyObject {
        first_byte(array).cast::<c_void>().cast()
    }

    /// The place of an address.
    fn address(&self, place: usize) -> *mut *mut ffi::PyObject {
        let count = self.0.len();
        assert!(place < count, "object {place} of {count}");
        // SAFETY: within the array (invariant 6).
        unsafe { Self::first(&self.0).add(place) }
    }

    /// The array.
    pub(crate) fn array(&self) -> Bound<'py, PyAny> {
        self.0.clone().into_any()
    }
}

/// A place as an index.
///
/// # Panics
///
/// When it is negative.
pub(crate) fn index(place: i64) -> usize {
    usize::try_from(place).expect("a place of a batch")
}
