//! Some rows of an array, and arrays in which some rows are others.
//!
//! Each `SAFETY` comment cites the invariants of `array/mod.rs`.
#![expect(
    unsafe_code,
    reason = "reads NumPy arrays of any dtype, see the invariants of the module"
)]

use std::mem::MaybeUninit;

use cartwheel_engine::space::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::made::bytes_of;
use super::{Blocks, bytes_at, dtype, is_like, written};

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
        rows: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut found = Vec::new();
        for row in rows {
            match row?.cast_into_exact::<PyUntypedArray>() {
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

    /// Whether each row is an array.
    pub(crate) fn are_arrays(&self) -> bool {
        self.array.ndim() > 1
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
