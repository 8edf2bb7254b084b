//! Returns, lengths and durations of episodes; documented in the stub.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cartwheel_engine::space::DType;
use cartwheel_engine::wrappers::{Ends, TimedEpisodes};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3::{IntoPyObjectExt, intern};

use super::places::{Received, StepArrays, StepColumns, column_of, rows_and_kinds};
use super::state::{entry, put};
use crate::array::filled;

/// The episodes, and room for a step. Nobody runs Python code while it is locked.
#[derive(Debug)]
struct Counted {
    episodes: TimedEpisodes,
    received: Received,
    /// Of the places where an episode ended: place, return, length and seconds.
    ends: Vec<(usize, f64, i64, f64)>,
}

#[pyclass(frozen, name = "TimedEpisodes", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyTimedEpisodes {
    num_envs: usize,
    /// Time zero.
    made: Instant,
    counted: Mutex<Counted>,
}

impl PyTimedEpisodes {
    fn locked(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner) // every number is valid
    }

    fn now(&self) -> f64 {
        self.made.elapsed().as_secs_f64()
    }
}

#[pymethods]
impl PyTimedEpisodes {
    #[new]
    fn new(num_envs: usize, is_same_step: bool) -> Self {
        let episodes = TimedEpisodes::new(num_envs, is_same_step, 0.0);
        let counted = Counted { episodes, received: Received::default(), ends: Vec::new() };
        Self { num_envs, made: Instant::now(), counted: Mutex::new(counted) }
    }

    #[pyo3(signature = (rows, kinds, /))]
    fn begin(&self, rows: Option<&Bound<'_, PyAny>>, kinds: &Bound<'_, PyAny>) -> PyResult<()> {
        let (rows, kinds) = rows_and_kinds(rows, kinds, self.num_envs)?;
        let mut room = Vec::new();
        kinds.copy_to(&mut room);
        self.locked().episodes.begin(rows.as_deref(), &room, self.now());
        Ok(())
    }

    #[pyo3(signature = (arrays, most, /))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        arrays: StepArrays<'py>,
        most: usize,
    ) -> PyResult<(usize, Option<Bound<'py, PyAny>>)> {
        let columns = StepColumns::new(&arrays, self.num_envs)?;
        let count = columns.len();
        let mut counted = self.locked();
        let Counted { episodes, received, ends } = &mut *counted;
        let places = received.receive(columns);
        let Ends { complete, dropped } = episodes.step(&places);
        let now = self.now();
        ends.clear();
        if complete > 0 {
            let add = |place, total, length, seconds| ends.push((place, total, length, seconds));
            episodes.report(now, add);
        }
        episodes.go_on(now);
        let ends = std::mem::take(ends);
        drop(counted);
        let report = if ends.is_empty() { None } else { Some(report(py, &ends, count, most)?) };
        self.locked().ends = ends; // its room is used again
        Ok((dropped, report))
    }

    /// Returns and lengths of the running episodes.
    fn running<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let counted = self.locked();
        let running = counted.episodes.running();
        Ok((column_of(py, None, running.returns())?, column_of(py, None, running.lengths())?))
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let episodes = self.locked().episodes.clone();
        let (now, running) = (self.now(), episodes.running());
        let state = PyDict::new(py);
        put(&state, "returns", running.returns())?;
        put(&state, "lengths", running.lengths())?;
        put(&state, "stale", &running.stale().iter().map(|&flag| flag == 1).collect::<Vec<_>>())?;
        let seconds: Vec<f64> = episodes.begun().iter().map(|begun| now - begun).collect();
        put(&state, "seconds", &seconds)?;
        Ok(state)
    }

    #[pyo3(signature = (state, /))]
    fn set_state(&self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let returns = entry::<f64>(state, "returns", self.num_envs)?;
        let lengths = entry::<i64>(state, "lengths", self.num_envs)?;
        let stale = entry::<bool>(state, "stale", self.num_envs)?;
        let seconds = entry::<f64>(state, "seconds", self.num_envs)?;
        let (now, mut counted) = (self.now(), self.locked());
        let begun = counted.episodes.begun_mut().iter_mut();
        begun.zip(seconds).for_each(|(begun, seconds)| *begun = now - seconds);
        let stale = stale.into_iter().map(u8::from).collect();
        counted.episodes.running_mut().resume(returns, lengths, stale);
        Ok(())
    }
}

/// The arrays of a step that ended episodes, with zeros elsewhere; its mask; and the values of the
/// last `most` episodes that ended.
fn report<'py>(
    py: Python<'py>,
    ends: &[(usize, f64, i64, f64)],
    places: usize,
    most: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let sparse = |dtype, number: &dyn Fn(&(usize, f64, i64, f64)) -> [u8; 8]| {
        filled(py, dtype, Some(places), &[], |room| {
            let room = room.as_chunks_mut().0;
            ends.iter().for_each(|end| room[end.0] = number(end));
        })
    };
    let values = PyDict::new(py);
    values.set_item(intern!(py, "r"), sparse(DType::F64, &|end| end.1.to_ne_bytes())?)?;
    values.set_item(intern!(py, "l"), sparse(DType::I64, &|end| end.2.to_ne_bytes())?)?;
    values.set_item(intern!(py, "t"), sparse(DType::F64, &|end| end.3.to_ne_bytes())?)?;
    let mask = filled(py, DType::Bool, Some(places), &[], |room| {
        ends.iter().for_each(|end| room[end.0] = 1);
    })?;
    let last = &ends[ends.len().saturating_sub(most)..];
    let returns = PyList::new(py, last.iter().map(|end| end.1))?;
    let lengths = PyList::new(py, last.iter().map(|end| end.2))?;
    let seconds = PyList::new(py, last.iter().map(|end| end.3))?;
    (values, mask, ends.len(), returns, lengths, seconds).into_bound_py_any(py)
}
