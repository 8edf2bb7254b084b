//! Batches out: from a filled slab and the infos beside it to what `step` and `reset` return.

use std::sync::atomic::{AtomicBool, Ordering};

use cartwheel::memory::Lease;
use cartwheel::memory::Told;
use cartwheel::pool::{Event, Finished, Pool, Received};
use cartwheel::space::DType;
use numpy::PyArray1;
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
    pub(crate) observations: Tree,
    /// The warning about copies was given.
    warned: AtomicBool,
}

impl Batches {
    pub(crate) fn new(observations: Tree) -> Self {
        Self { observations, warned: AtomicBool::new(false) }
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
        infos.begin_task(pool.shards().len());
        for (shard, report) in pool.reports().enumerate() {
            if report.failed {
                link.call_method1(intern!(py, "receive_faults"), (shard,))?;
            }
            if report.spilled {
                let row = pool.shards()[shard].start;
                let rest = link.call_method1(intern!(py, "receive_rest"), (shard, row))?;
                infos.streams[shard] = rest.extract()?;
            } else {
                pool.load_infos(shard, &mut infos.streams[shard]);
            }
        }
        if pool.reports().any(|report| report.failed) {
            link.call_method0(intern!(py, "raise_faults"))?;
        }
        self.outputs(link, lease, infos)
    }

    /// Makes Python's results of a batch of rows that were sent, or raises what their environments raised.
    pub(crate) fn collect_received<'py>(
        &self,
        link: &Bound<'py, PyAny>,
        pool: &Pool,
        infos: &mut Infos,
        received: Received,
    ) -> PyResult<Outputs<'py>> {
        let py = link.py();
        infos.begin_received(&received.rows, received.infos.len());
        let mut streams = infos.streams.iter_mut();
        for event in received.events() {
            match event {
                Event::Failed(row) => {
                    let told = (pool.shard_of(row), row);
                    link.call_method1(intern!(py, "receive_fault"), told)?;
                }
                Event::Infos(row, told) => {
                    let stream = streams.next().expect("a stream for each");
                    match told {
                        Told::Bytes(bytes) => pool.load_received_infos(row, bytes, stream),
                        Told::Spilled => {
                            let told = (pool.shard_of(row), row);
                            let rest = link.call_method1(intern!(py, "receive_rest"), told)?;
                            *stream = rest.extract()?;
                        }
                    }
                }
            }
        }
        if !received.failed.is_empty() {
            link.call_method1(intern!(py, "raise_faults"), (&received.rows,))?;
        }
        let outputs = self.outputs(link, received.lease, infos)?;
        let rows = env_index(py, received.rows.into_iter());
        outputs.infos.set_item(intern!(py, "env_index"), rows)?;
        Ok(outputs)
    }

    fn outputs<'py>(
        &self,
        link: &Bound<'py, PyAny>,
        lease: Lease,
        infos: &mut Infos,
    ) -> PyResult<Outputs<'py>> {
        let py = link.py();
        let gathered = infos.gather(py, link)?;
        let (layout, rows) = (lease.layout(), infos.rows);
        let outcomes = [
            outcome(py, &lease, rows, layout.rewards_offset(), DType::F64)?,
            outcome(py, &lease, rows, layout.terminations_offset(), DType::Bool)?,
            outcome(py, &lease, rows, layout.truncations_offset(), DType::Bool)?,
        ];
        let observations = self.observations(link, lease, infos)?;
        Ok(Outputs { observations, outcomes, infos: gathered })
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
        let rows = infos.rows;
        let bytes = leaves.iter().map(|leaf| leaf.row_bytes() * rows).sum::<usize>();
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
                filled(py, leaves[number].dtype, Some(rows), &leaves[number].shape, fill)
            };
            return assemble(link, root, &copy, infos);
        }
        let owner = Bound::new(py, SlabLease::new(lease))?;
        let show = |number: usize| view(&owner, number, rows);
        assemble(link, root, &show, infos)
    }
}

/// The rows of a batch as an array.
pub(crate) fn env_index(
    py: Python<'_>,
    rows: impl Iterator<Item = usize>,
) -> Bound<'_, PyArray1<i64>> {
    let rows = rows.map(|row| i64::try_from(row).expect("a pool has fewer than 2^32 rows"));
    PyArray1::from_vec(py, rows.collect())
}

/// A copy of rewards or flags: they are small, and a kept reward must not keep observations.
fn outcome<'py>(
    py: Python<'py>,
    lease: &Lease,
    rows: usize,
    offset: usize,
    dtype: DType,
) -> PyResult<Bound<'py, PyAny>> {
    filled(py, dtype, Some(rows), &[], |room| {
        lease.read(offset, room);
        if dtype == DType::Bool {
            // A truth value that another process wrote may be any byte; Python's may not.
            for flag in room {
                *flag = u8::from(*flag != 0);
            }
        }
    })
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
                found.set_item(opaque.at.place, infos.value(py, opaque.at)?)?;
            }
            link.call_method1(intern!(py, "batch_opaque"), (space, found, infos.rows))?
        }
    })
}
