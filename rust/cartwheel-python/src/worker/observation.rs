//! Writes observations that environments returned to their rows of the slab.

use cartwheel_engine::info::{InfoWriter, RecordKind};
use cartwheel_engine::memory::{Room, SlabRows};
use cartwheel_engine::space::{DType, Leaf};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList};

use crate::array::dtype::descr;
use crate::array::{as_array, copy_to_room, is_like, scalar};
use crate::error::noted;
use crate::known::intern;
use crate::space::{End, Node};
use crate::value::{Encoder, Foreign};

/// Destination of observations.
pub(crate) trait ObservationSink {
    /// Calls `fill` to write leaf `leaf` at `place`.
    fn fill(&mut self, leaf: usize, place: usize, fill: impl FnOnce(Room<'_>));
}

impl ObservationSink for SlabRows<'_> {
    fn fill(&mut self, leaf: usize, place: usize, fill: impl FnOnce(Room<'_>)) {
        SlabRows::fill(self, leaf, place, fill);
    }
}

/// The bytes of one observation: those of its leaves, one after the other.
#[derive(Debug)]
pub(crate) struct ObservationBytes<'a> {
    leaves: &'a [Leaf],
    bytes: Vec<u8>,
}

impl<'a> ObservationBytes<'a> {
    /// Zeros for an observation with these leaves.
    pub(crate) fn new(leaves: &'a [Leaf]) -> Self {
        let bytes = leaves.iter().map(Leaf::row_bytes).sum();
        Self { leaves, bytes: vec![0; bytes] }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl ObservationSink for ObservationBytes<'_> {
    fn fill(&mut self, leaf: usize, _place: usize, fill: impl FnOnce(Room<'_>)) {
        let before: usize = self.leaves[..leaf].iter().map(Leaf::row_bytes).sum();
        fill((&mut self.bytes[before..before + self.leaves[leaf].row_bytes()]).into());
    }
}

/// Writes the observation of one row to its place.
pub(crate) struct ObservationWriter<'a, R> {
    pub(crate) leaves: &'a [Leaf],
    pub(crate) sink: &'a mut R,
    /// Receives the parts that have no fixed shape.
    pub(crate) infos: &'a mut InfoWriter,
    pub(crate) foreign: &'a Foreign,
    /// The first row of the shard; the row is counted from it.
    pub(crate) first: usize,
    pub(crate) row: usize,
    /// The row's place in the batch.
    pub(crate) place: usize,
}

impl<R: ObservationSink> ObservationWriter<'_, R> {
    /// Writes an observation, leaf by leaf.
    ///
    /// An array with the shape and dtype of its leaf is copied directly, and so is a list of arrays
    /// that are its rows, or an instance of a class derived from `list`. Other values follow the rule of Gymnasium's `concatenate`: the shape must
    /// be the leaf's, and the dtype is cast within its kind. An exception about a part of an
    /// observation has a note that names the part.
    pub(crate) fn write(&mut self, node: &Node, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Node::Leaf(leaf) = node {
            return self.write_leaf(*leaf, value); // without the calls below
        }
        let written = node.take_apart(value, &mut |end, value| match end {
            End::Leaf(leaf) => self.write_leaf(leaf, value),
            End::Text(_) => unreachable!("a text of a native environment is not written here"),
            End::Opaque(number, _) => self.write_opaque(number, value),
        });
        written.map_err(|misfit| match misfit.path() {
            None => misfit.error,
            Some(path) => {
                noted(value.py(), misfit.error, &format!("at observation{path} of the space"))
            }
        })
    }

    fn write_opaque(&mut self, number: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let record = self.infos.begin(RecordKind::Opaque, self.first + self.row, number);
        let written = Encoder::new(self.infos, self.foreign, self.row, true).value(value);
        self.foreign.end(self.infos, record, written)
    }

    fn write_leaf(&mut self, number: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (leaf, place) = (&self.leaves[number], self.place);
        if let Ok(array) = value.cast_exact::<PyUntypedArray>() {
            if self.write_array(number, array) {
                return Ok(());
            }
        } else if leaf.shape.is_empty() {
            if leaf.dtype == DType::I64
                && let Ok(integer) = value.cast_exact::<PyInt>()
            {
                let integer: i64 = integer.extract()?;
                self.put(number, place, &integer.to_ne_bytes());
                return Ok(());
            }
            if let Some((dtype, bytes)) = scalar(value)?
                && dtype == leaf.dtype
            {
                self.put(number, place, &bytes[..dtype.size()]);
                return Ok(());
            }
        } else if let Ok(list) = value.cast::<PyList>() // also `AgentValues` of Python, which fits itself
            && self.write_list(number, list)?
        {
            return Ok(());
        }
        let array = fit(value, leaf)?;
        if self.write_array(number, &array) {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("a fitted observation is just like its leaf"))
    }

    /// Writes a single element.
    fn put(&mut self, leaf: usize, place: usize, element: &[u8]) {
        self.sink.fill(leaf, place, |mut room| room.write(element));
    }

    /// Copies an array with the shape and dtype of the leaf; returns `false` for any other.
    fn write_array(&mut self, number: usize, array: &Bound<'_, PyUntypedArray>) -> bool {
        let leaf = &self.leaves[number];
        let fits = is_like(array, &leaf.shape, leaf.dtype);
        if fits {
            self.sink.fill(number, self.place, |room| copy_to_room(array, room));
        }
        fits
    }

    /// Copies a list of arrays that are the rows of the leaf; returns `false` for any other.
    fn write_list(&mut self, number: usize, list: &Bound<'_, PyList>) -> PyResult<bool> {
        let leaf = &self.leaves[number];
        let (shape, bytes) = (&leaf.shape[1..], leaf.row_bytes());
        if bytes == 0 || list.len() != leaf.shape[0] {
            return Ok(false);
        }
        let mut written = Ok(true);
        self.sink.fill(number, self.place, |mut room| {
            for (at, part) in room.parts(bytes / leaf.shape[0]).enumerate() {
                written = list.get_item(at).map(|value| match value.cast_exact() {
                    Ok(array) if is_like(array, shape, leaf.dtype) => {
                        copy_to_room(array, part);
                        true
                    }
                    _ => false,
                });
                if !matches!(written, Ok(true)) {
                    break;
                }
            }
        });
        written
    }
}

/// `value` as a contiguous array of the leaf's shape and dtype.
fn fit<'py>(value: &Bound<'py, PyAny>, leaf: &Leaf) -> PyResult<Bound<'py, PyUntypedArray>> {
    let (py, array) = (value.py(), as_array(value)?);
    if array.shape() != leaf.shape {
        let (shape, expected) = (array.shape(), &leaf.shape);
        let got = if value.is_instance_of::<PyUntypedArray>() {
            String::new()
        } else {
            format!(", got {}", value.get_type()) // `None`, if the environment forgot a `return`
        };
        return Err(PyValueError::new_err(format!(
            "the observation has shape {shape:?}, its space has {expected:?}{got}"
        )));
    }
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "casting"), intern!(py, "same_kind"))?;
    keywords.set_item(intern!(py, "order"), intern!(py, "C"))?;
    let cast = array.call_method("astype", (descr(py, leaf.dtype)?,), Some(&keywords));
    let cast = cast.map_err(|error| {
        if !error.is_instance_of::<PyTypeError>(py) {
            return error;
        }
        let (dtype, expected) = (array.dtype(), leaf.dtype.name());
        PyTypeError::new_err(format!("the observation has dtype {dtype}, its space has {expected}"))
    })?;
    Ok(cast.cast_into::<PyUntypedArray>()?)
}
