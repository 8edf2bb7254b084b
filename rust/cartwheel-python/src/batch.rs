//! Batches out: from a filled slab and the infos beside it to what `step` and `reset` return.

use std::sync::atomic::{AtomicBool, Ordering};

use cartwheel::memory::Lease;
use cartwheel::pool::{Finished, Pool};
use cartwheel::space::DType;
use pyo3::exceptions::{PyRuntimeWarning, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{SlabLease, filled, view};
use crate::infos::Infos;
use crate::space::{Node, Tree};

/// Batches of observations up to this size are copied out of their slab: for them a copy costs no
/// more than the lease, and keeps nothing else in memory. See `ARCHITECTURE.md` for the figures.
const COPY_UP_TO: usize = 4096;

/// What one call returns, before it is put into a tuple.
#[derive(Debug)]
pub(crate) struct Outputs<'py> {
    pub(crate) observations: Bound<'py, PyAny>,
    /// Rewards, terminations, truncations.
    pub(crate) outcomes: [Bound<'py, PyAny>; 3],
    pub(crate) infos: Bound<'py, PyDict>,
}

/// Makes batches for Python.
#[derive(Debug)]
pub(crate) struct Batches {
    observations: Tree,
    rows: usize,
    /// The warning about copies was given.
    warned: AtomicBool,
}

impl Batches {
    pub(crate) fn new(observations: Tree, rows: usize) -> Self {
        Self { observations, rows, warned: AtomicBool::new(false) }
    }

    /// Makes Python's results of a finished step or reset, or raises what its environments raised.
    pub(crate) fn collect<'py>(
        &self,
        link: &Bound<'py, PyAny>,
        pool: &Pool,
        infos: &mut Infos,
        finished: Finished,
    ) -> PyResult<Outputs<'py>> {
        let py = link.py();
        let lease = finished.lease;
        let lease = lease.ok_or_else(|| PyValueError::new_err("the call has no batch"))?;
        for (shard, report) in pool.reports().enumerate() {
            if report.failed {
                link.call_method1(intern!(py, "receive_faults"), (shard,))?;
            }
            if report.spilled {
                let rest = link.call_method1(intern!(py, "receive_rest"), (shard,))?;
                infos.streams[shard] = rest.extract()?;
            } else {
                pool.load_infos(shard, &mut infos.streams[shard]);
            }
        }
        if pool.reports().any(|report| report.failed) {
            link.call_method0(intern!(py, "raise_faults"))?;
        }
        let gathered = infos.gather(py, link)?;
        let layout = lease.layout();
        let outcomes = [
            self.outcome(py, &lease, layout.rewards_offset(), DType::F64)?,
            self.outcome(py, &lease, layout.terminations_offset(), DType::Bool)?,
            self.outcome(py, &lease, layout.truncations_offset(), DType::Bool)?,
        ];
        let observations = self.observations(link, lease, infos)?;
        Ok(Outputs { observations, outcomes, infos: gathered })
    }

    /// A copy of rewards or flags: they are small, and a kept reward must not keep observations.
    fn outcome<'py>(
        &self,
        py: Python<'py>,
        lease: &Lease,
        offset: usize,
        dtype: DType,
    ) -> PyResult<Bound<'py, PyAny>> {
        filled(py, dtype, Some(self.rows), &[], |room| {
            lease.read(offset, room);
            if dtype == DType::Bool {
                // A truth value that another process wrote may be any byte; Python's may not.
                for flag in room {
                    *flag = u8::from(*flag != 0);
                }
            }
        })
    }

    /// The observations of a filled slab: views that keep its lease, or copies.
    fn observations<'py>(
        &self,
        link: &Bound<'py, PyAny>,
        lease: Lease,
        infos: &Infos,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = link.py();
        let leaves = &self.observations.leaves;
        let bytes = leaves.iter().map(|leaf| leaf.row_bytes() * self.rows).sum::<usize>();
        if lease.must_copy() && !self.warned.swap(true, Ordering::Relaxed) {
            let text = c"every slab is leased: observations are copied from now on. Keep fewer \
                         batches, or give max_slabs=";
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), text, 2)?;
        }
        let root = &self.observations.root;
        if lease.must_copy() || bytes <= COPY_UP_TO {
            let copy = |number: usize| {
                let offset = lease.layout().leaf_offset(number);
                let fill = |room: &mut [u8]| lease.read(offset, room);
                filled(py, leaves[number].dtype, Some(self.rows), &leaves[number].shape, fill)
            };
            return assemble(link, root, &copy, infos);
        }
        let owner = Bound::new(py, SlabLease::new(lease))?;
        let show = |number: usize| view(&owner, number, self.rows);
        assemble(link, root, &show, infos)
    }
}

/// Puts leaves, which `array` makes by their number, and opaque parts together as the space has them.
fn assemble<'py>(
    link: &Bound<'py, PyAny>,
    node: &Node,
    array: &dyn Fn(usize) -> PyResult<Bound<'py, PyAny>>,
    infos: &Infos,
) -> PyResult<Bound<'py, PyAny>> {
    let py = link.py();
    Ok(match node {
        Node::Leaf(leaf) => array(*leaf)?,
        Node::Dict(items) => {
            let dict = PyDict::new(py);
            for (key, node) in items {
                dict.set_item(key, assemble(link, node, array, infos)?)?;
            }
            dict.into_any()
        }
        Node::Tuple(nodes) => {
            let nodes = nodes.iter().map(|node| assemble(link, node, array, infos));
            PyTuple::new(py, nodes.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Node::Opaque(number, space) => {
            let found = PyDict::new(py);
            for opaque in infos.opaque.iter().filter(|opaque| opaque.part == *number) {
                found.set_item(opaque.at.row, infos.value(py, opaque.at)?)?;
            }
            link.call_method1(intern!(py, "batch_opaque"), (space, found))?
        }
    })
}
