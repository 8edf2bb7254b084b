//! Spaces in the binding: a tree with leaves at its ends.
//!
//! `cartwheel._internal.spaces` describes a Gymnasium space with nested tuples, which are passed to
//! this module and to worker processes:
//!
//! ```text
//! ("leaf", dtype name, shape)          an array of fixed shape
//! ("dict", [(key, node), …])           in the order of the space's items
//! ("tuple", [node, …])
//! ("text", bytes)                      a text of a native environment, and the bytes of its row
//! ("opaque", space)                    no fixed shape; `space` batches its values itself
//! ```

use std::fmt::Debug;

use cartwheel_engine::space::{DType, Leaf};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// One node of a space.
#[derive(Debug)]
pub(crate) enum Node {
    /// The number of a leaf of fixed shape.
    Leaf(usize),
    /// Keys and nodes, in order.
    Dict(Vec<(Py<PyAny>, Node)>),
    /// Nodes, in order.
    Tuple(Vec<Node>),
    /// The number among the texts of native environments.
    Text(usize),
    /// Number among the opaque parts, and the space that batches their values.
    Opaque(usize, Py<PyAny>),
}

/// An end of a space.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End<'a> {
    /// The number of a leaf of fixed shape.
    Leaf(usize),
    /// The number among the texts of native environments.
    Text(usize),
    /// A part without a fixed shape: its number among them, and the space that batches its values.
    Opaque(usize, &'a Py<PyAny>),
}

/// A part of a value that was refused: the exception, and the keys of the part, the innermost first.
/// In a box: a step takes many values apart, and results without one stay small.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) error: PyErr,
    keys: Vec<String>,
}

impl From<PyErr> for Box<Misfit> {
    #[cold]
    fn from(error: PyErr) -> Self {
        Self::new(Misfit { error, keys: Vec::new() })
    }
}

impl Misfit {
    /// Adds the key, or the place, of the part in the value around it.
    #[cold]
    fn add_key(&mut self, key: impl Debug) {
        self.keys.push(format!("[{key:?}]"));
    }

    /// The way to the part, as it is written behind the value; `None` for the value itself.
    pub(crate) fn path(&self) -> Option<String> {
        (!self.keys.is_empty()).then(|| self.keys.iter().rev().map(String::as_str).collect())
    }
}

impl Node {
    /// The value with this structure whose parts `make` makes.
    pub(crate) fn assemble<'py>(
        &self,
        py: Python<'py>,
        make: &dyn Fn(End<'_>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Leaf(leaf) => make(End::Leaf(*leaf))?,
            Self::Text(text) => make(End::Text(*text))?,
            Self::Dict(items) => {
                let dict = PyDict::new(py);
                for (key, node) in items {
                    dict.set_item(key, node.assemble(py, make)?)?;
                }
                dict.into_any()
            }
            Self::Tuple(nodes) => {
                let parts = nodes.iter().map(|node| node.assemble(py, make));
                PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any()
            }
            Self::Opaque(number, space) => make(End::Opaque(*number, space))?,
        })
    }

    /// Calls `take` with each part of a value with this structure.
    pub(crate) fn take_apart<'py, F>(
        &self,
        value: &Bound<'py, PyAny>,
        take: &mut F,
    ) -> Result<(), Box<Misfit>>
    where
        F: FnMut(End<'_>, &Bound<'py, PyAny>) -> PyResult<()>,
    {
        match self {
            Self::Leaf(leaf) => take(End::Leaf(*leaf), value)?,
            Self::Text(text) => take(End::Text(*text), value)?,
            Self::Dict(items) => {
                for (key, node) in items {
                    let within = |mut misfit: Box<Misfit>| {
                        misfit.add_key(key.bind(value.py()));
                        misfit
                    };
                    let part = value.get_item(key).map_err(|error| within(error.into()))?;
                    node.take_apart(&part, take).map_err(within)?;
                }
            }
            Self::Tuple(nodes) => {
                let tuple = value.cast_exact::<PyTuple>().ok(); // its items need no Python integers
                for (at, node) in nodes.iter().enumerate() {
                    let within = |mut misfit: Box<Misfit>| {
                        misfit.add_key(at);
                        misfit
                    };
                    let part = tuple.map_or_else(|| value.get_item(at), |tuple| tuple.get_item(at));
                    let part = part.map_err(|error| within(error.into()))?;
                    node.take_apart(&part, take).map_err(within)?;
                }
            }
            Self::Opaque(number, space) => take(End::Opaque(*number, space), value)?,
        }
        Ok(())
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Leaf(_) | Self::Text(_) => Ok(()),
            Self::Dict(parts) => parts.iter().try_for_each(|(key, part)| {
                visit.call(key)?;
                part.traverse(visit)
            }),
            Self::Tuple(parts) => parts.iter().try_for_each(|part| part.traverse(visit)),
            Self::Opaque(_, space) => visit.call(space),
        }
    }
}

/// A space: its tree, and the leaves to which the tree's numbers refer.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: Node,
    pub(crate) leaves: Vec<Leaf>,
    /// For each text, the number of the leaf that has its bytes.
    pub(crate) texts: Vec<usize>,
    pub(crate) opaque: usize,
}

impl Tree {
    /// Parses a description.
    pub(crate) fn new(description: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut tree =
            Self { root: Node::Leaf(0), leaves: Vec::new(), texts: Vec::new(), opaque: 0 };
        tree.root = tree.read(description)?;
        Ok(tree)
    }

    /// Tells Python's garbage collector which objects the tree keeps.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.root.traverse(visit)
    }

    fn read(&mut self, description: &Bound<'_, PyAny>) -> PyResult<Node> {
        let parts = description.cast::<PyTuple>()?;
        let kind: String = parts.get_item(0)?.extract()?;
        let first = parts.get_item(1)?;
        match kind.as_str() {
            "leaf" => {
                let name: String = first.extract()?;
                let dtype = DType::from_name(&name).ok_or_else(|| {
                    PyTypeError::new_err(format!("a leaf cannot have dtype {name}"))
                })?;
                self.leaves.push(Leaf { dtype, shape: parts.get_item(2)?.extract()? });
                Ok(Node::Leaf(self.leaves.len() - 1))
            }
            "text" => {
                self.texts.push(self.leaves.len());
                self.leaves.push(Leaf { dtype: DType::U8, shape: vec![first.extract()?] });
                Ok(Node::Text(self.texts.len() - 1))
            }
            "dict" => {
                let items = first.cast::<PyList>()?.iter();
                let items = items.map(|item| {
                    let item = item.cast_into::<PyTuple>()?;
                    Ok((item.get_item(0)?.unbind(), self.read(&item.get_item(1)?)?))
                });
                Ok(Node::Dict(items.collect::<PyResult<_>>()?))
            }
            "tuple" => {
                let parts = first.cast::<PyList>()?.iter();
                Ok(Node::Tuple(parts.map(|part| self.read(&part)).collect::<PyResult<_>>()?))
            }
            "opaque" => {
                self.opaque += 1;
                Ok(Node::Opaque(self.opaque - 1, first.unbind()))
            }
            other => Err(PyValueError::new_err(format!("{other:?} is not a kind of space"))),
        }
    }
}
