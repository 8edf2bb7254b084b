//! A shard's actions, from shared memory to each environment.
//!
//! Environments get the values that Gymnasium's `iterate` yields: NumPy scalars or rows with the
//! dtype of the batch, Python integers when the batch is a list of integers, and dictionaries and
//! tuples of these. The arrays are copies made for the step, so nothing changes them afterwards.

use std::ops::Range;

use cartwheel_engine::memory::ActionRows;
use cartwheel_engine::space::{ActionTag, Leaf};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::array::filled;
use crate::space::{Node, Tree};
use crate::worker::stable_abi::item;

/// The actions of one shard, ready to be passed to environments row by row.
#[derive(Debug)]
pub(crate) enum Actions<'py> {
    Array(Bound<'py, PyAny>),
    Integers(Vec<i64>),
    Dict(Vec<(Bound<'py, PyAny>, Self)>),
    Tuple(Vec<Self>),
    /// Values that can only be pickled, one for each row.
    Rows(Bound<'py, PyList>),
}

impl<'py> Actions<'py> {
    /// Copies the actions of `rows` out of shared memory.
    pub(crate) fn load(
        py: Python<'py>,
        tree: &Tree,
        node: &Node,
        area: &ActionRows<'_>,
        rows: &Range<usize>,
    ) -> PyResult<Self> {
        Ok(match node {
            Node::Leaf(leaf) => Self::load_leaf(py, &tree.leaves[*leaf], *leaf, area, rows)?,
            Node::Dict(items) => {
                let items = items.iter().map(|(key, node)| {
                    let actions = Self::load(py, tree, node, area, rows)?;
                    Ok((key.bind(py).clone(), actions))
                });
                Self::Dict(items.collect::<PyResult<_>>()?)
            }
            Node::Tuple(nodes) => {
                let nodes = nodes.iter().map(|node| Self::load(py, tree, node, area, rows));
                Self::Tuple(nodes.collect::<PyResult<_>>()?)
            }
            Node::Opaque(..) => unreachable!("opaque actions go over the socket"),
        })
    }

    fn load_leaf(
        py: Python<'py>,
        leaf: &Leaf,
        number: usize,
        area: &ActionRows<'_>,
        rows: &Range<usize>,
    ) -> PyResult<Self> {
        let tag =
            area.tag(number).ok_or_else(|| PyValueError::new_err("no actions were stored"))?;
        match tag {
            ActionTag::Integers => {
                let mut bytes = vec![0; rows.len() * size_of::<i64>()];
                area.load(number, tag, rows.clone(), &mut bytes);
                let (integers, _) = bytes.as_chunks::<8>();
                Ok(Self::Integers(integers.iter().map(|n| i64::from_ne_bytes(*n)).collect()))
            }
            ActionTag::Array(dtype) => {
                let fill = |room: &mut [u8]| area.load(number, tag, rows.clone(), room);
                let count = Some(rows.len());
                Ok(Self::Array(filled(py, dtype, count, &leaf.shape, fill)?))
            }
        }
    }

    /// The action of row `row`, counted from the start of the shard.
    pub(crate) fn row(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Array(array) => item(array, row),
            Self::Integers(integers) => Ok(integers[row].into_pyobject(py)?.into_any()),
            Self::Rows(rows) => rows.get_item(row),
            Self::Dict(items) => {
                let dict = PyDict::new(py);
                for (key, actions) in items {
                    dict.set_item(key, actions.row(py, row)?)?;
                }
                Ok(dict.into_any())
            }
            Self::Tuple(parts) => {
                let parts = parts.iter().map(|part| part.row(py, row));
                Ok(PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
        }
    }
}
