//! A shard's actions, from shared memory to each environment.
//!
//! Environments get the values that Gymnasium's `iterate` yields: NumPy scalars or rows with the
//! dtype of the batch, Python integers when the batch is a list of integers, and dictionaries and
//! tuples of these. The arrays are copies made for the step, so nothing changes them afterwards. NumPy
//! scalars of small integers, the usual discrete actions, are made once.

use std::ops::Range;

use cartwheel_engine::memory::ActionRows;
use cartwheel_engine::space::{ActionTag, DType, Leaf};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::array::{filled, from_bytes};
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

#[derive(Debug)]
pub(crate) enum LeafActions<'py> {
    Array(Bound<'py, PyAny>),
    Integers(Vec<i64>),
    /// NumPy scalars of small integers.
    Scalars(Vec<Bound<'py, PyAny>>),
}

/// The NumPy scalars of one leaf that were made so far, by their values: as Python keeps its own small
/// integers, since neither can change.
#[derive(Debug, Default)]
pub(crate) struct SmallIntegers {
    dtype: Option<DType>,
    scalars: [Option<Py<PyAny>>; 32],
}

impl SmallIntegers {
    /// The scalars of these elements, if all of them are small integers.
    fn scalars<'py>(
        &mut self,
        py: Python<'py>,
        dtype: DType,
        elements: &[u8],
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        if self.dtype.replace(dtype) != Some(dtype) {
            self.scalars = Default::default();
        }
        let mut found = Vec::with_capacity(elements.len() / dtype.size());
        for element in elements.chunks_exact(dtype.size()) {
            let Some(integer) = as_index(dtype, element) else { return Ok(None) };
            let Some(kept) = self.scalars.get_mut(integer) else { return Ok(None) };
            if kept.is_none() {
                let scalar = item(&from_bytes(py, dtype, Some(1), &[], element)?, 0)?;
                *kept = Some(scalar.unbind());
            }
            found.extend(kept.as_ref().map(|kept| kept.bind(py).clone()));
        }
        Ok(Some(found))
    }
}

/// An integer that is not negative, as an index.
fn as_index(dtype: DType, element: &[u8]) -> Option<usize> {
    match dtype {
        DType::I64 => i64::from_ne_bytes(element.try_into().ok()?).try_into().ok(),
        DType::I32 => i32::from_ne_bytes(element.try_into().ok()?).try_into().ok(),
        _ => None,
    }
}

impl<'py> Actions<'py> {
    /// Copies the actions of `rows` out of shared memory; a space without leaves has none. `known` has the
    /// scalars of each leaf.
    pub(crate) fn load(
        py: Python<'py>,
        leaves: &[Leaf],
        known: &mut [SmallIntegers],
        area: &ActionRows<'_>,
        rows: &Range<usize>,
    ) -> PyResult<Self> {
        let mut leaves = leaves.iter().zip(known).enumerate();
        let mut load =
            |(number, (leaf, known))| LeafActions::load(py, leaf, known, number, area, rows);
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
        known: &mut SmallIntegers,
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
            ActionTag::Array(dtype @ (DType::I32 | DType::I64)) if leaf.shape.is_empty() => {
                let mut bytes = vec![0; rows.len() * dtype.size()];
                area.load(number, tag, rows.clone(), &mut bytes);
                if let Some(scalars) = known.scalars(py, dtype, &bytes)? {
                    return Ok(Self::Scalars(scalars));
                }
                Ok(Self::Array(from_bytes(py, dtype, Some(rows.len()), &[], &bytes)?))
            }
            ActionTag::Array(dtype) => {
                let fill = |buffer: &mut [u8]| area.load(number, tag, rows.clone(), buffer);
                Ok(Self::Array(filled(py, dtype, Some(rows.len()), &leaf.shape, fill)?))
            }
        }
    }

    fn row(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Array(array) => item(array, row),
            Self::Integers(integers) => Ok(integers[row].into_pyobject(py)?.into_any()),
            Self::Scalars(scalars) => Ok(scalars[row].clone()),
        }
    }
}
