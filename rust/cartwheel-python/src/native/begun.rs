//! Native rows that began an episode, whose first states a callable of Python writes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cartwheel_engine::native::{Answer, Beginning, BegunRow, Request};
use cartwheel_engine::rng::Rng;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::array::BorrowedMut;
use crate::error::to_py_err;
use crate::native::PyNativeEnvs;
use crate::native::value::{from_value, to_value};

/// The rows, what the owner knows them by, and their random streams, each in the order of the rows.
#[derive(Debug)]
pub(crate) struct BegunRows<'py> {
    pub(crate) rows: Vec<usize>,
    pub(crate) known_as: Vec<Bound<'py, PyAny>>,
    pub(crate) streams: Vec<Rng>,
}

impl<'py> BegunRows<'py> {
    pub(crate) fn new(py: Python<'py>, begun: Vec<BegunRow>) -> PyResult<Self> {
        let (mut rows, mut known_as, mut streams) = (Vec::new(), Vec::new(), Vec::new());
        for BegunRow { row, known_as: value, stream } in begun {
            rows.push(row);
            known_as.push(from_value(py, &value)?);
            streams.push(stream);
        }
        Ok(Self { rows, known_as, streams })
    }
}

#[pyclass(frozen, name = "RowStreams", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyRowStreams(Mutex<Vec<Rng>>);

impl PyRowStreams {
    pub(crate) fn new(streams: Vec<Rng>) -> Self {
        Self(Mutex::new(streams))
    }

    /// Takes the streams; afterwards nothing is drawn from them here.
    pub(crate) fn take(&self) -> Vec<Rng> {
        std::mem::take(&mut *self.streams())
    }

    fn streams(&self) -> MutexGuard<'_, Vec<Rng>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills an array, `(rows, n)`, with draws: each row from its own stream.
    fn fill<T: Copy>(&self, cells: &mut [T], draw: impl Fn(&mut Rng, &mut [T])) -> PyResult<()> {
        let mut streams = self.streams();
        if streams.is_empty() {
            return Err(PyRuntimeError::new_err(
                "`rng` draws numbers only during the call of `reset` that got it",
            ));
        }
        if !cells.len().is_multiple_of(streams.len()) {
            let (cells, rows) = (cells.len(), streams.len());
            return Err(PyValueError::new_err(format!("{cells} elements for {rows} rows")));
        }
        let each = cells.len() / streams.len();
        if each > 0 {
            streams.iter_mut().zip(cells.chunks_mut(each)).for_each(|(rng, own)| draw(rng, own));
        }
        Ok(())
    }
}

#[pymethods]
impl PyRowStreams {
    fn random(&self, into: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut into = BorrowedMut::<f64>::new("into", into, 2)?;
        self.fill(into.cells()?, |rng, own| own.fill_with(|| rng.random()))
    }

    fn standard_normal(&self, into: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut into = BorrowedMut::<f64>::new("into", into, 2)?;
        self.fill(into.cells()?, |rng, own| own.fill_with(|| rng.standard_normal()))
    }

    fn integers(&self, low: i64, high: i64, into: &Bound<'_, PyAny>) -> PyResult<()> {
        if low > high {
            return Err(PyValueError::new_err(format!("there is no integer from {low} to {high}")));
        }
        let mut into = BorrowedMut::<i64>::new("into", into, 2)?;
        self.fill(into.cells()?, |rng, own| rng.fill_integers(low..=high, own))
    }
}

impl PyNativeEnvs {
    /// Takes the rows that began an episode and were not taken before, in order.
    pub(crate) fn take_begun(&self) -> Vec<BegunRow> {
        let mut begun: Vec<_> =
            self.mailboxes().iter().flat_map(|mailbox| mailbox.take_begun()).collect();
        begun.sort_by_key(|begun| begun.row); // rows that were sent are reported one by one
        begun
    }

    /// Posts to all shards that the states of these rows, which are in order, were written: the
    /// parameter is set to `value` in each of them.
    pub(crate) fn post_begun(
        &self,
        parameter: &str,
        value: &Bound<'_, PyInt>,
        rows: &[usize],
        streams: Vec<Rng>,
    ) -> PyResult<()> {
        let value = to_value(parameter, value)?;
        let mut streams = streams.into_iter();
        for (mailbox, shard) in self.mailboxes().iter().zip(&self.rows) {
            let begin = rows.partition_point(|&row| row < shard.start);
            let end = rows.partition_point(|&row| row < shard.end);
            let own: Vec<_> = rows[begin..end].iter().map(|row| row - shard.start).collect();
            mailbox.post_request(if own.is_empty() {
                Request::Nothing
            } else {
                let streams = streams.by_ref().take(own.len()).collect();
                Request::Begin(Beginning {
                    rows: own,
                    streams,
                    parameter: (parameter.to_owned(), value.clone()),
                })
            });
        }
        Ok(())
    }

    /// Posts to all shards that these rows need a reset.
    pub(crate) fn post_failed(&self, rows: &[usize]) {
        for (mailbox, shard) in self.mailboxes().iter().zip(&self.rows) {
            let own = rows.iter().filter(|row| shard.contains(row));
            mailbox.post_request(Request::Fail(own.map(|row| row - shard.start).collect()));
        }
    }

    /// Takes what these rows show: for each leaf the elements of all of them.
    ///
    /// # Errors
    ///
    /// The failure of the first row that did not take its state.
    pub(crate) fn take_shown(&self, rows: &[usize]) -> PyResult<Vec<Vec<u8>>> {
        let mut shown: Vec<Vec<u8>> = Vec::new();
        let answers: Vec<_> = (0..self.rows.len())
            .map(|shard| Ok(self.mailbox(shard)?.take_answer()))
            .collect::<PyResult<_>>()?;
        for (answer, shard) in answers.into_iter().zip(&self.rows) {
            if !rows.iter().any(|row| shard.contains(row)) {
                continue;
            }
            let answer = answer.ok_or_else(|| PyRuntimeError::new_err("nothing was asked"))?;
            match answer.map_err(|error| to_py_err(error.of_shard(shard.start)))? {
                Answer::Begun(leaves) => {
                    shown.resize(leaves.len(), Vec::new());
                    for (all, own) in shown.iter_mut().zip(leaves) {
                        all.extend(own);
                    }
                }
                other => {
                    return Err(PyRuntimeError::new_err(format!("{other:?} shows no row")));
                }
            }
        }
        Ok(shown)
    }
}
