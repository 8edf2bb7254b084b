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
use pyo3::types::PyList;

use crate::array::filled;
use crate::space::{End, Node};
use crate::worker::stable_abi::item;

/// The actions of one shard, ready to be passed to environments row by row.
#[derive(Debug)]
pub(crate) enum Actions<'py> {
    /// Those of each leaf. The usual single leaf is stored inline, so that a step allocates nothing for
    /// it.
    Leaves(LeafActions<'py>, Vec<LeafActions<'py>>),
    /// Values that can only be pickled, one for each row.
    Pickled(Bound<'py, PyList>),
}

/// The actions of one leaf.
#[derive(Debug)]
pub(crate) enum LeafActions<'py> {
    Array(Bound<'py, PyAny>),
    Integers(Vec<i64>),
}

impl<'py> Actions<'py> {
    /// Copies the actions of `rows` out of shared memory; a space without leaves has none.
    pub(crate) fn load(
        py: Python<'py>,
        leaves: &[Leaf],
        area: &ActionRows<'_>,
        rows: &Range<usize>,
    ) -> PyResult<Self> {
        let mut leaves = leaves.iter().enumerate();
        let mut load = |(number, leaf)| LeafActions::load(py, leaf, number, area, rows);
        let first = leaves.next().map_or(Ok(LeafActions::Integers(Vec::new())), &mut load)?;
        Ok(Self::Leaves(first, leaves.map(load).collect::<PyResult<_>>()?))
    }

    /// The action of row `row`, counted from the start of the shard, with the structure of `node`.
    pub(crate) fn row(
        &self,
        py: Python<'py>,
        node: &Node,
        row: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        match (self, node) {
            (Self::Pickled(rows), _) => rows.get_item(row),
            (Self::Leaves(only, _), Node::Leaf(_)) => only.row(py, row), // without the calls below
            (Self::Leaves(first, rest), _) => node.assemble(py, &|end| match end {
                End::Leaf(0) => first.row(py, row),
                End::Leaf(leaf) => rest[leaf - 1].row(py, row),
                End::Text(_) => unreachable!("an action is not a text"),
                End::Opaque(..) => unreachable!("opaque actions go over the socket"),
            }),
        }
    }
}

impl<'py> LeafActions<'py> {
    fn load(
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
                let fill = |buffer: &mut [u8]| area.load(number, tag, rows.clone(), buffer);
                let count = Some(rows.len());
                Ok(Self::Array(filled(py, dtype, count, &leaf.shape, fill)?))
            }
        }
    }

    fn row(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Array(array) => item(array, row),
            Self::Integers(integers) => Ok(integers[row].into_pyobject(py)?.into_any()),
        }
    }
}
