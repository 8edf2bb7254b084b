//! Texts of native environments: their bytes in a slab, as strings of Python.

use std::sync::{Mutex, PoisonError};

use cartwheel_core::space::TextSpace;
use cartwheel_engine::memory::Lease;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// The strings of one leaf in the last batch, place by place. Most rows keep their text for an episode,
/// and comparing bytes is quicker than making a string.
#[derive(Debug, Default)]
pub(super) struct Texts(Mutex<Vec<Py<PyString>>>);

impl Texts {
    /// The texts of `rows` rows of a leaf, which begins at `offset` of the slab: a tuple, as Gymnasium
    /// batches them. A row that was never shown has zeros: the empty text.
    pub(super) fn read<'py>(
        &self,
        py: Python<'py>,
        lease: &Lease,
        rows: usize,
        offset: usize,
        row_bytes: usize,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut row = vec![0; row_bytes];
        for place in 0..rows {
            let (length, first) = (size_of::<u32>(), offset + place * row_bytes);
            lease.read(first, &mut row[..length]);
            let count = u32::from_ne_bytes(row[..length].try_into().expect("four bytes"));
            let end = length + (count as usize).min(row_bytes - length);
            lease.read(first + length, &mut row[length..end]);
            let text = TextSpace::read(&row).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "row {place} of the batch has a text that is not UTF-8"
                ))
            })?;
            match kept.get_mut(place) {
                Some(kept) if kept.bind(py).to_str()? == text => {}
                Some(kept) => *kept = PyString::new(py, text).unbind(),
                None => kept.push(PyString::new(py, text).unbind()),
            }
        }
        PyTuple::new(py, kept[..rows].iter().map(|text| text.bind(py)))
    }
}
