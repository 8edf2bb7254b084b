//! Returns, lengths and durations of episodes; documented in the stub.

use std::time::Instant;

use cartwheel_engine::platform::with_standard_floats;
use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::{Ends, StepResults, Timed, TimedEpisodes};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::locked::Locked;
use super::places::{PlaceColumns, Received, StepArrays, StepColumns};
use super::state::{entry, flags, put, put_flags};
use crate::array::{Block, Blocks, from_numbers};
use crate::known::intern;

/// The episodes, and buffers for a step.
#[derive(Debug)]
struct Counted {
    episodes: TimedEpisodes,
    received: Received,
    /// The places at which an episode ended.
    ended: Vec<(usize, Timed)>,
}

#[pyclass(frozen, name = "TimedEpisodes", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyTimedEpisodes {
    num_envs: usize,
    /// Time zero.
    made: Instant,
    counted: Locked<Counted>,
}

impl PyTimedEpisodes {
    fn now(&self) -> f64 {
        self.made.elapsed().as_secs_f64()
    }

    /// Adds a step; returns whether complete episodes ended, of which there is a [`report`](Self::report).
    pub(super) fn count(&self, py: Python<'_>, results: &StepResults<'_>) -> bool {
        let Counted { episodes, ended, .. } = &mut *self.counted.lock(py);
        ended.clear();
        let add = |place, episode| ended.push((place, episode));
        let now = self.now();
        let Ends { complete, .. } = with_standard_floats(|| episodes.step(results, now, add));
        complete > 0
    }

    /// Reports the complete episodes that ended in the last step, which had so many places.
    pub(super) fn report<'py>(
        &self,
        py: Python<'py>,
        places: usize,
        blocks: &mut Blocks,
    ) -> PyResult<Report<'py>> {
        // Without the lock: arrays or a dictionary that are made may call functions of Python.
        let ended = std::mem::take(&mut self.counted.lock(py).ended);
        let report = report(py, &ended, places, blocks)?;
        self.counted.lock(py).ended = ended; // its memory is used again
        Ok(report)
    }
}

#[pymethods]
impl PyTimedEpisodes {
    #[new]
    fn new(num_envs: usize, is_same_step: bool, max_recent: usize) -> Self {
        let episodes = TimedEpisodes::new(num_envs, is_same_step, max_recent, 0.0);
        let counted = Counted { episodes, received: Received::default(), ended: Vec::new() };
        Self { num_envs, made: Instant::now(), counted: Locked::new(counted) }
    }

    #[pyo3(signature = (rows, kinds, /))]
    fn begin(&self, rows: Option<&Bound<'_, PyAny>>, kinds: &Bound<'_, PyAny>) -> PyResult<()> {
        let places = PlaceColumns::new(rows, kinds, self.num_envs)?;
        self.counted.lock(kinds.py()).episodes.begin(places.read(&mut Vec::new()), self.now());
        Ok(())
    }

    #[pyo3(signature = (arrays, /))]
    fn step<'py>(&self, py: Python<'py>, arrays: StepArrays<'py>) -> PyResult<Option<Report<'py>>> {
        let columns = StepColumns::new(&arrays, self.num_envs)?;
        let mut received = std::mem::take(&mut self.counted.lock(py).received);
        let has_report = self.count(py, &received.receive(&columns));
        self.counted.lock(py).received = received; // its memory is used again
        let report = || self.report(py, columns.len(), &mut Blocks::default());
        has_report.then(report).transpose()
    }

    #[getter]
    fn counts(&self, py: Python<'_>) -> (u64, u64) {
        self.counted.lock(py).episodes.counts
    }

    #[setter]
    fn set_counts(&self, py: Python<'_>, counts: (u64, u64)) {
        self.counted.lock(py).episodes.counts = counts;
    }

    #[getter]
    fn updates(&self, py: Python<'_>) -> bool {
        self.counted.lock(py).episodes.updates
    }

    #[setter]
    fn set_updates(&self, py: Python<'_>, updates: bool) {
        self.counted.lock(py).episodes.updates = updates;
    }

    fn take_recent<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyList>; 3]> {
        let recent = self.counted.lock(py).episodes.take_recent();
        Ok([
            PyList::new(py, recent.iter().map(|episode| episode.total))?,
            PyList::new(py, recent.iter().map(|episode| episode.length))?,
            PyList::new(py, recent.iter().map(|episode| episode.seconds))?,
        ])
    }

    fn running<'py>(&self, py: Python<'py>) -> PyResult<Running<'py>> {
        let counted = self.counted.lock(py);
        let TimedEpisodes { running, begun, .. } = &counted.episodes;
        let present = running.stale().iter().map(|&stale| stale == 0);
        let returns = running.returns().iter().zip(present.clone());
        let returns: Vec<_> = returns.map(|(&total, is)| if is { total } else { 0.0 }).collect();
        let lengths = running.lengths().zip(present);
        let lengths: Vec<_> = lengths.map(|(length, is)| if is { length } else { 0 }).collect();
        Ok((
            from_numbers(py, self.num_envs, &[], &returns)?,
            from_numbers(py, self.num_envs, &[], &lengths)?,
            from_numbers(py, self.num_envs, &[], begun)?,
        ))
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let episodes = self.counted.lock(py).episodes.clone();
        let (now, running) = (self.now(), &episodes.running);
        let state = PyDict::new(py);
        put(&state, "returns", running.returns())?;
        put(&state, "lengths", &running.lengths().collect::<Vec<_>>())?;
        put_flags(&state, "stale", running.stale())?;
        let seconds: Vec<f64> = episodes.begun.iter().map(|begun| now - begun).collect();
        put(&state, "seconds", &seconds)?;
        Ok(state)
    }

    #[pyo3(signature = (state, /))]
    fn set_state(&self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let returns = entry::<f64>(state, "returns", self.num_envs)?;
        let lengths = entry::<i64>(state, "lengths", self.num_envs)?;
        let of_past = flags(state, "stale", self.num_envs)?;
        let seconds = entry::<f64>(state, "seconds", self.num_envs)?;
        let (now, mut counted) = (self.now(), self.counted.lock(state.py()));
        let begun = counted.episodes.begun.iter_mut();
        begun.zip(seconds).for_each(|(begun, seconds)| *begun = now - seconds);
        counted.episodes.running.resume(returns, lengths, of_past);
        Ok(())
    }
}

/// Returns, lengths and beginnings.
type Running<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Values by name, and their mask.
pub(super) type Report<'py> = (Bound<'py, PyDict>, Bound<'py, PyAny>);

/// A number of each episode at its place, and zeros elsewhere.
fn numbers_of<'py>(
    py: Python<'py>,
    block: &Block,
    dtype: DType,
    ended: &[(usize, Timed)],
    places: usize,
    number: impl Fn(&Timed) -> [u8; 8],
) -> PyResult<Bound<'py, PyAny>> {
    block.filled(py, dtype, places, &[], |buffer| {
        let buffer = buffer.as_chunks_mut().0;
        for (place, episode) in ended {
            buffer[*place] = number(episode);
        }
    })
}

/// The arrays of a step that ended episodes, with zeros elsewhere.
fn report<'py>(
    py: Python<'py>,
    ended: &[(usize, Timed)],
    places: usize,
    blocks: &mut Blocks,
) -> PyResult<Report<'py>> {
    let numbers = Block::space(places * size_of::<f64>());
    let block = blocks.next(py, 3 * numbers + Block::space(places))?;
    let values = PyDict::new(py);
    let number = |episode: &Timed| episode.total.to_ne_bytes();
    let returns = numbers_of(py, block, DType::F64, ended, places, number)?;
    values.set_item(intern!(py, "r"), returns)?;
    let number = |episode: &Timed| episode.length.to_ne_bytes();
    let lengths = numbers_of(py, block, DType::I64, ended, places, number)?;
    values.set_item(intern!(py, "l"), lengths)?;
    let number = |episode: &Timed| episode.seconds.to_ne_bytes();
    let seconds = numbers_of(py, block, DType::F64, ended, places, number)?;
    values.set_item(intern!(py, "t"), seconds)?;
    let mask = block.filled(py, DType::Bool, places, &[], |buffer| {
        for (place, _) in ended {
            buffer[*place] = 1;
        }
    })?;
    Ok((values, mask))
}
