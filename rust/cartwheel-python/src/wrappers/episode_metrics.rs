//! Metrics of episodes; documented in the stub.
//!
//! # Invariants
//!
//! 1. `Running::write` of the kernels writes every number of its buffers, or panics.
#![expect(unsafe_code, reason = "values are written into new arrays, see the invariants")]

use std::mem::MaybeUninit;

use cartwheel_engine::platform::with_standard_floats;
use cartwheel_engine::space::DType;
use cartwheel_kernels::wrappers::{Archive, EpisodeMetrics, Finished, Running, StepResults};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::column::{Column, numbers};
use super::finished::{FLAGS, columns, episodes};
use super::locked::Locked;
use super::places::{PlaceColumns, Received, StepArrays, StepColumns, flags, sparse, sparse_flags};
use super::state::{self, entry, put, put_flags};
use crate::array::{Block, Blocks, Unwritten};
use crate::known::intern;

/// The episodes, and buffers for a step.
#[derive(Debug)]
struct Counted {
    metrics: EpisodeMetrics,
    received: Received,
    /// Whether success is shown, and failure.
    shown: (bool, bool),
}

#[pyclass(frozen, name = "EpisodeMetrics", module = "cartwheel._cartwheel")]
#[derive(Debug)]
pub(crate) struct PyEpisodeMetrics {
    num_envs: usize,
    is_same_step: bool,
    counted: Locked<Counted>,
}

/// Values by name, their mask, and both again for the final infos of the episodes that ended.
pub(super) type Shown<'py> = (Bound<'py, PyDict>, Bound<'py, PyAny>, Option<Final<'py>>);

/// Values of the episodes that ended, zeros elsewhere, and their mask.
pub(super) type Final<'py> = (Bound<'py, PyDict>, Bound<'py, PyAny>);

impl PyEpisodeMetrics {
    /// Adds a step, in which places said success and failure, and writes `new` arrays of its places.
    pub(super) fn count<'py>(
        &self,
        py: Python<'py>,
        results: &StepResults<'_>,
        said: [Option<&[u8]>; 2],
        seeds: Option<Vec<i64>>,
        new: NewValues<'py>,
    ) -> PyResult<Shown<'py>> {
        let (count, rows) = (results.places.len(), results.places.rows());
        // Made before the lock: a new dictionary may start Python's garbage collector.
        let (values, finals) = (PyDict::new(py), self.is_same_step.then(|| PyDict::new(py)));
        let mut counted = self.counted.lock(py);
        let Counted { metrics, shown, .. } = &mut *counted;
        let shown = *shown;
        let ended = with_standard_floats(|| metrics.step(results, said, seeds.as_deref()));
        let metrics = &*metrics;
        let running = &metrics.running;
        let mask = with_standard_floats(|| new.fill(&values, running, rows))?;
        add_reports(&values, metrics, shown, |of_rows| flags(py, rows, of_rows))?;
        let Some(finals) = finals.filter(|_| ended > 0) else { return Ok((values, mask, None)) };
        with_standard_floats(|| fill_ended(&finals, metrics, count, shown))?;
        let mask_of_finals = sparse_flags(py, count, running.ended(), |_| 1)?;
        Ok((values, mask, Some((finals, mask_of_finals))))
    }
}

#[pymethods]
impl PyEpisodeMetrics {
    #[new]
    fn new(num_envs: usize, is_same_step: bool, window: usize, max_waiting: usize) -> Self {
        let archive = Archive::new(window, max_waiting);
        let metrics = EpisodeMetrics::new(num_envs, is_same_step, archive);
        let counted = Counted { metrics, received: Received::default(), shown: (false, false) };
        Self { num_envs, is_same_step, counted: Locked::new(counted) }
    }

    #[getter]
    fn updates(&self, py: Python<'_>) -> bool {
        self.counted.lock(py).metrics.updates
    }

    #[setter]
    fn set_updates(&self, py: Python<'_>, updates: bool) {
        self.counted.lock(py).metrics.updates = updates;
    }

    #[pyo3(signature = (rows, kinds, seeds, /))]
    fn begin(
        &self,
        rows: Option<&Bound<'_, PyAny>>,
        kinds: &Bound<'_, PyAny>,
        seeds: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let places = PlaceColumns::new(rows, kinds, self.num_envs)?;
        let seeds = given_seeds(seeds, places.len())?;
        self.counted.lock(kinds.py()).metrics.begin(places.read(&mut Vec::new()), seeds.as_deref());
        Ok(())
    }

    #[pyo3(signature = (arrays, reported, seeds, /))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        arrays: StepArrays<'py>,
        reported: (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>),
        seeds: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Shown<'py>> {
        let columns = StepColumns::new(&arrays, self.num_envs)?;
        let count = columns.len();
        let seeds = given_seeds(seeds, count)?;
        let flags_of = |reported: Option<Bound<'py, PyAny>>| -> PyResult<_> {
            let Some(reported) = reported else { return Ok(None) };
            let mut flags = Vec::new();
            Column::flags("reported", &reported, count)?.copy_to(&mut flags);
            Ok(Some(flags))
        };
        let (success, fail) = (flags_of(reported.0)?, flags_of(reported.1)?);
        let mut received = std::mem::take(&mut self.counted.lock(py).received);
        let new = NewValues::new(py, count, &mut Blocks::default())?;
        let results = received.receive(&columns);
        let shown = self.count(py, &results, [success.as_deref(), fail.as_deref()], seeds, new);
        self.counted.lock(py).received = received; // its memory is used again
        shown
    }

    #[getter]
    fn shown(&self, py: Python<'_>) -> (bool, bool) {
        self.counted.lock(py).shown
    }

    #[setter]
    fn set_shown(&self, py: Python<'_>, shown: (bool, bool)) {
        self.counted.lock(py).shown = shown;
    }

    fn finished<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, usize)> {
        let (next_id, (episodes, dropped)) = {
            let archive = &mut self.counted.lock(py).metrics.archive;
            (archive.counts().0, archive.take())
        };
        Ok((columns(py, &episodes, next_id)?, dropped))
    }

    fn mean(&self, py: Python<'_>) -> Option<[f64; 7]> {
        let counted = self.counted.lock(py);
        with_standard_floats(|| counted.metrics.archive.means())
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = self.counted.lock(py).metrics.clone();
        let (running, state) = (&metrics.running, PyDict::new(py));
        put(&state, "returns", running.returns())?;
        put(&state, "lengths", &running.lengths().collect::<Vec<_>>())?;
        put_flags(&state, "stale", running.stale())?;
        let [success, fail] = &metrics.reports;
        let reports = [success.once(), success.at_end(), fail.once(), fail.at_end()];
        for (name, flags) in FLAGS.into_iter().zip(reports) {
            put_flags(&state, name, flags)?;
        }
        put(&state, "seeds", &metrics.seeds)?;
        let (next_id, dropped) = metrics.archive.counts();
        let collected = |episodes: &mut dyn Iterator<Item = &Finished>| {
            columns(py, &episodes.copied().collect::<Vec<_>>(), next_id)
        };
        state.set_item("window", collected(&mut metrics.archive.recent())?)?;
        state.set_item("finished", collected(&mut metrics.archive.waiting())?)?;
        state.set_item("episode_count", next_id)?;
        state.set_item("dropped", dropped)?;
        Ok(state)
    }

    #[pyo3(signature = (state, /))]
    fn set_state(&self, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let returns = entry::<f64>(state, "returns", self.num_envs)?;
        let lengths = entry::<i64>(state, "lengths", self.num_envs)?;
        let bytes = |name: &str| state::flags(state, name, self.num_envs);
        let of_past = bytes("stale")?;
        let reports = [bytes(FLAGS[0])?, bytes(FLAGS[1])?, bytes(FLAGS[2])?, bytes(FLAGS[3])?];
        let seeds = entry::<i64>(state, "seeds", self.num_envs)?;
        let nested = |name: &str| episodes(&state.as_any().get_item(name)?.cast_into()?);
        let (recent, waiting) = (nested("window")?, nested("finished")?);
        let next_id = state.as_any().get_item("episode_count")?.extract()?;
        let dropped = state.as_any().get_item("dropped")?.extract()?;

        let metrics = &mut self.counted.lock(state.py()).metrics;
        metrics.running.resume(returns, lengths, of_past);
        let ([success, fail], [once, at_end, fail_once, fail_at_end]) =
            (&mut metrics.reports, reports);
        success.resume(once, at_end);
        fail.resume(fail_once, fail_at_end);
        metrics.seeds = seeds;
        metrics.archive.resume(recent, waiting, next_id, dropped);
        Ok(())
    }
}

fn given_seeds(seeds: Option<&Bound<'_, PyAny>>, places: usize) -> PyResult<Option<Vec<i64>>> {
    let Some(seeds) = seeds.map(numbers).transpose()? else { return Ok(None) };
    if seeds.len() == places {
        return Ok(Some(seeds));
    }
    let text = format!("`seeds` must have {places} entries, got {}", seeds.len());
    Err(PyValueError::new_err(text))
}

fn flag_names(py: Python<'_>) -> [&Bound<'_, PyString>; 4] {
    [
        intern!(py, "success_once"),
        intern!(py, "success_at_end"),
        intern!(py, "fail_once"),
        intern!(py, "fail_at_end"),
    ]
}

/// New arrays for the values of each place, and for the mask of the episodes that ended.
pub(super) struct NewValues<'py> {
    returns: Unwritten<'py, f64>,
    lengths: Unwritten<'py, i64>,
    rewards: Unwritten<'py, f64>,
    mask: Unwritten<'py, u8>,
}

impl<'py> NewValues<'py> {
    /// Of `count` places.
    pub(super) fn new(py: Python<'py>, count: usize, blocks: &mut Blocks) -> PyResult<Self> {
        let numbers = Block::space(count * size_of::<f64>());
        let block = blocks.next(py, 3 * numbers + Block::space(count))?;
        Ok(Self {
            returns: Unwritten::new(py, block, count, &[])?,
            lengths: Unwritten::new(py, block, count, &[])?,
            rewards: Unwritten::new(py, block, count, &[])?,
            mask: Unwritten::flags(py, block, count)?,
        })
    }

    /// Writes them, puts the values into a dictionary, and returns the mask.
    fn fill(
        mut self,
        values: &Bound<'py, PyDict>,
        running: &Running,
        rows: Option<&[usize]>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = values.py();
        let (returns, lengths) = (self.returns.room(), self.lengths.room());
        let (rewards, mask) = (self.rewards.room(), self.mask.room());
        if let Some(rows) = rows {
            assert_eq!(rows.len(), returns.len(), "places");
            let rooms = returns.iter_mut().zip(lengths).zip(rewards);
            for (((total, length), reward), &row) in rooms.zip(rows) {
                total.write(running.returns()[row]);
                length.write(running.length(row));
                reward.write(running.mean_reward(row));
            }
        } else {
            running.write(returns, lengths, rewards);
        }
        mask.fill(MaybeUninit::new(0));
        for at in running.ended() {
            mask[at.place].write(1);
        }
        // SAFETY: all were written, those of all rows by `write` (invariant 1).
        let returns = unsafe { self.returns.written() };
        values.set_item(intern!(py, "return"), returns.into_shown().0)?;
        // SAFETY: as above.
        let lengths = unsafe { self.lengths.written() };
        values.set_item(intern!(py, "episode_len"), lengths.into_shown().0)?;
        // SAFETY: as above.
        let rewards = unsafe { self.rewards.written() };
        values.set_item(intern!(py, "reward"), rewards.into_shown().0)?;
        // SAFETY: as above.
        Ok(unsafe { self.mask.written() }.into_shown().0)
    }
}

/// Adds the reports that are shown, of which `array` makes arrays, to the values of the same places.
fn add_reports<'py>(
    values: &Bound<'py, PyDict>,
    metrics: &EpisodeMetrics,
    shown: (bool, bool),
    array: impl Fn(&[u8]) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let names = flag_names(values.py());
    for (at, (reports, shown)) in metrics.reports.iter().zip([shown.0, shown.1]).enumerate() {
        if shown {
            values.set_item(names[2 * at], array(reports.once())?)?;
            values.set_item(names[2 * at + 1], array(reports.at_end())?)?;
        }
    }
    Ok(())
}

/// Adds the values of the places at which an episode ended, with zeros at the others.
fn fill_ended(
    values: &Bound<'_, PyDict>,
    metrics: &EpisodeMetrics,
    places: usize,
    shown: (bool, bool),
) -> PyResult<()> {
    let (py, running) = (values.py(), &metrics.running);
    let (ended, returns) = (running.ended(), running.returns());
    let returns = sparse(py, DType::F64, places, ended, |row| returns[row].to_ne_bytes())?;
    values.set_item(intern!(py, "return"), returns)?;
    let lengths = sparse(py, DType::I64, places, ended, |row| running.length(row).to_ne_bytes())?;
    values.set_item(intern!(py, "episode_len"), lengths)?;
    let mean = |row| running.mean_reward(row).to_ne_bytes();
    values.set_item(intern!(py, "reward"), sparse(py, DType::F64, places, ended, mean)?)?;
    add_reports(values, metrics, shown, |of_rows| {
        sparse_flags(py, places, ended, |row| of_rows[row])
    })
}
