//! Python environments row by row: their calls, and what they returned.

use std::ops::Range;

use cartwheel_engine::Transition;
use cartwheel_engine::autoreset::{Autoreset, SavedRow};
use cartwheel_engine::info::{InfoWriter, RecordKind, TERMINAL};
use cartwheel_engine::memory::{SlabRows, process_id};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyDict, PyList};

use crate::known::{imported, intern};
use crate::space::{Node, Tree};
use crate::value::{Encoder, Foreign, has_text_keys};
use crate::worker::actions::Actions;
use crate::worker::observation::{ObservationBytes, ObservationWriter};
use crate::worker::retirement::{LeftEnd, Retirement};
use crate::worker::returned::{as_parts, flag, number, numbers};
use crate::worker::stable_abi::call_method;

/// The last results of a row's environment.
#[derive(Debug, Default)]
pub(crate) struct LastResult {
    /// The observation that was written last: the row shows it when it is not stepped or reset.
    pub(crate) shown: Option<Py<PyAny>>,
    /// An observation that has not been written yet, and may not fit the space.
    fresh: Option<Py<PyAny>>,
    info: Option<Py<PyAny>>,
    /// Number of resets since they were last counted.
    pub(crate) resets: u64,
    /// Number of replacements since they were last counted.
    pub(crate) replacements: u64,
    /// The observation that ended an episode in `SAME_STEP`, as the bytes of its leaves, where batches
    /// have final observations. The environment was reset since.
    last: Option<Vec<u8>>,
    /// Where rewards are arrays: the reward of the task, zeros unless the environment was stepped.
    rewards: Vec<f64>,
}

impl LastResult {
    /// No results; `reward_width` is the length of rewards that are arrays.
    pub(super) fn new(reward_width: Option<usize>) -> Self {
        Self { rewards: vec![0.0; reward_width.unwrap_or_default()], ..Self::default() }
    }

    /// Tells Python's garbage collector which objects the row keeps.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        [&self.shown, &self.fresh, &self.info].into_iter().try_for_each(|object| visit.call(object))
    }
}

/// The rows of a shard during one task.
pub(crate) struct PyRows<'a, 's, 'py> {
    pub(crate) py: Python<'py>,
    /// The first row of the shard.
    pub(crate) first: usize,
    /// The rows of the task, counted from the first row of the shard, as all rows here are; the
    /// actions belong to these rows.
    pub(crate) span: Range<usize>,
    /// `cartwheel.workers.serving.worker.Worker`, which replaces environments.
    pub(crate) worker: &'a Bound<'py, PyAny>,
    pub(crate) envs: &'a Bound<'py, PyList>,
    /// The worker's entries for the next automatic resets of rows.
    pub(crate) next_resets: &'a Bound<'py, PyDict>,
    pub(crate) autoreset: &'a mut Autoreset,
    /// Rows that lost their environments before the caller was informed.
    pub(crate) lost: &'a mut [bool],
    pub(crate) retirement: &'a mut Retirement,
    pub(crate) tree: &'a Tree,
    /// Whether batches have final observations.
    pub(crate) dense_finals: bool,
    /// The length of rewards that are arrays; transitions have no reward then.
    pub(crate) reward_width: Option<usize>,
    pub(crate) held: &'a mut [LastResult],
    pub(crate) infos: &'a mut InfoWriter,
    pub(crate) foreign: &'a Foreign,
    /// Their places, in order; `None` before they have places.
    pub(crate) slab: Option<&'a mut SlabRows<'s>>,
    /// The actions of a step.
    pub(crate) actions: Option<Actions<'py>>,
    /// The structure of an action.
    pub(crate) action_node: &'a Node,
    /// Whether the task is a step.
    pub(crate) stepping: bool,
    /// Whether the task is a full reset whose rows are staggered.
    pub(crate) staggers: bool,
    /// The process of the worker, see [`PyShard::served`](crate::worker::shard::PyShard::served).
    pub(crate) server: Option<u32>,
}

impl<'py> PyRows<'_, '_, 'py> {
    /// Steps the environment with its action, as often as the rules say: until its episode is over,
    /// with the sum of the rewards.
    pub(super) fn call_steps(&mut self, row: usize) -> PyResult<Transition> {
        let actions = self.actions.as_ref().expect("a step has actions");
        let action = actions.row(self.py, self.action_node, row - self.span.start)?;
        let repeats = self.autoreset.rules().action_repeat.get();
        if repeats == 1 {
            return self.call_step(row, action);
        }
        let copied = imported!(self.py, "copy", "deepcopy");
        let mut sum = 0.0;
        let mut sums = vec![0.0; self.held[row].rewards.len()];
        for _ in 1..repeats {
            // An environment that writes into its action must not change the next one.
            let last = self.call_step(row, copied.call1((&action,))?)?;
            sum += last.reward;
            self.sum_rewards(row, &mut sums);
            if !self.autoreset.settle_repeated_row(row, &last) {
                return Ok(Transition { reward: sum, ..last });
            }
        }
        let last = self.call_step(row, action)?;
        self.sum_rewards(row, &mut sums);
        Ok(Transition { reward: sum + last.reward, ..last })
    }

    /// Adds a reward that is an array to those of the repetitions before, and keeps the sum.
    fn sum_rewards(&mut self, row: usize, sums: &mut [f64]) {
        for (sum, reward) in sums.iter_mut().zip(&mut self.held[row].rewards) {
            *sum += *reward;
            *reward = *sum;
        }
    }

    fn call_step(&mut self, row: usize, action: Bound<'py, PyAny>) -> PyResult<Transition> {
        let py = self.py;
        let env = self.envs.get_item(row)?;
        let result = call_method(&env, intern!(py, "step"), &action);
        let result = self.come_back(result)?;
        let names = ["observation", "reward", "terminated", "truncated", "info"];
        let parts = as_parts(result, "step", &names)?;
        let reward = parts.get_borrowed_item(1)?;
        let transition = Transition {
            reward: if self.reward_width.is_some() {
                numbers(&reward, &mut self.held[row].rewards)?;
                0.0
            } else {
                number(&reward)?
            },
            terminated: flag(&*parts.get_borrowed_item(2)?)?,
            truncated: flag(&*parts.get_borrowed_item(3)?)?,
        };
        self.hold(row, parts.get_item(0)?, parts.get_item(4)?);
        Ok(transition)
    }

    pub(super) fn call_reset(
        &mut self,
        row: usize,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let py = self.py;
        let env = self.envs.get_item(row)?;
        let result = env.call_method(intern!(py, "reset"), (), keywords);
        let parts = as_parts(self.come_back(result)?, "reset", &["observation", "info"])?;
        self.hold(row, parts.get_item(0)?, parts.get_item(1)?);
        self.held[row].resets += 1;
        Ok(())
    }

    /// The keywords of an automatic reset, if the caller has chosen some for the row's next one.
    pub(super) fn automatic(&self, row: usize) -> PyResult<Option<Py<PyDict>>> {
        if self.next_resets.is_empty() {
            return Ok(None);
        }
        let keywords = self.worker.call_method1(intern!(self.py, "take_next_reset"), (row,))?;
        if keywords.is_none() {
            return Ok(None);
        }
        Ok(Some(keywords.cast_into::<PyDict>()?.unbind()))
    }

    /// Restores an environment from a saved state, and holds the observation that was saved, if the
    /// row had one. Returns the place in the episode.
    pub(super) fn call_restore(
        &mut self,
        row: usize,
        state: &Bound<'py, PyAny>,
    ) -> PyResult<SavedRow> {
        let restored = self.worker.call_method1(intern!(self.py, "restore"), (row, state));
        let (saved, observations): (Vec<u8>, Vec<Bound<'py, PyAny>>) =
            self.come_back(restored)?.extract()?;
        let saved = saved.try_into().ok().and_then(SavedRow::from_bytes);
        let saved =
            saved.ok_or_else(|| PyValueError::new_err("the state holds values that no row has"))?;
        self.held[row] = LastResult {
            fresh: observations.into_iter().next().map(Bound::unbind),
            resets: self.held[row].resets,
            replacements: self.held[row].replacements,
            rewards: std::mem::take(&mut self.held[row].rewards),
            ..LastResult::default()
        };
        Ok(saved)
    }

    /// Whether the row holds an observation that has not been written.
    pub(super) fn has_fresh(&self, row: usize) -> bool {
        self.held[row].fresh.is_some()
    }

    /// Passes on what an environment returned or raised; ends this process if it is not the
    /// worker's process.
    fn come_back<T>(&self, result: PyResult<T>) -> PyResult<T> {
        if self.server.is_some_and(|server| server != process_id()) {
            let failure = result.as_ref().err().map(|failure| failure.value(self.py));
            self.worker.call_method1(intern!(self.py, "end_copy"), (failure,))?;
        }
        result
    }

    fn hold(&mut self, row: usize, observation: Bound<'py, PyAny>, info: Bound<'py, PyAny>) {
        let held = &mut self.held[row];
        held.fresh = Some(observation.unbind());
        held.info = Some(info.unbind());
    }

    pub(super) fn forget_info(&mut self, row: usize) {
        self.held[row].info = None;
    }

    fn write(&mut self, row: usize, observation: &Bound<'py, PyAny>) -> PyResult<()> {
        let (sink, place) = placed(&mut self.slab, &self.span, row);
        let mut writer = ObservationWriter {
            leaves: &self.tree.leaves,
            sink,
            infos: self.infos,
            foreign: self.foreign,
            first: self.first,
            row,
            place,
        };
        writer.write(&self.tree.root, observation)
    }

    /// Writes reward, flags and phase of a row.
    #[inline]
    pub(super) fn write_transition(&mut self, row: usize, transition: &Transition) {
        let (slab, place) = placed(&mut self.slab, &self.span, row);
        slab.write_transition(place, transition, self.autoreset.phase(row));
        if self.reward_width.is_some() {
            self.write_rewards(row);
        }
    }

    /// Writes a reward that is an array. Apart, so that rows with numbers do not pay for it: the
    /// function above is part of its callers.
    #[cold]
    fn write_rewards(&mut self, row: usize) {
        let (slab, place) = placed(&mut self.slab, &self.span, row);
        slab.write_rewards(place, &self.held[row].rewards);
    }

    /// Tells the caller that the row lost its environment, if it did and the caller does not know.
    pub(super) fn report_loss(&mut self, row: usize) -> bool {
        let lost = std::mem::take(&mut self.lost[row]);
        if lost {
            let key = if self.retirement.follows { "restarted" } else { "worker_restarted" };
            self.tell(row, key, |infos| infos.bool(true));
        }
        lost
    }

    /// Lets the worker process end before the next episode of its row, if it has served long enough.
    /// Another process repeats the task; it gets `ended`, the last step of the episode, if that is a
    /// part of the task.
    pub(super) fn retire(&self, row: usize, ended: Option<&Transition>) -> PyResult<()> {
        if !self.retirement.is_limited {
            return Ok(());
        }
        let held = &self.held[row];
        let ended = ended.map(|last| {
            let Transition { reward, terminated, truncated } = *last;
            (&held.fresh, reward, terminated, truncated, held.rewards.clone(), &held.info)
        });
        self.worker.call_method1(intern!(self.py, "retire"), (row, &held.shown, ended))?;
        Ok(())
    }

    /// Holds the end of the episode that a retired worker left, if it left one.
    pub(super) fn take_left_end(&mut self, row: usize) -> Option<Transition> {
        let LeftEnd { observation, info, transition, rewards } = self.retirement.left.take()?;
        let held = &mut self.held[row];
        (held.fresh, held.info, held.rewards) = (Some(observation), Some(info), rewards);
        Some(transition)
    }

    /// Adds an info of `row` to those of its environment.
    fn tell(&mut self, row: usize, key: &str, write: impl FnOnce(&mut InfoWriter)) {
        let record = self.infos.begin(RecordKind::Info, self.first + row, 0);
        self.infos.key(key);
        write(self.infos);
        self.infos.end(record);
    }

    /// Writes one info dictionary as a record of `row`.
    fn write_info(&mut self, row: usize, info: &Bound<'py, PyAny>, snapshot: bool) -> PyResult<()> {
        let dict = match info.cast::<PyDict>() {
            Ok(dict) => dict.clone(),
            Err(_) if info.hasattr(intern!(self.py, "items"))? => {
                self.py.get_type::<PyDict>().call1((info,))?.cast_into::<PyDict>()?
            }
            Err(_) => {
                let got = info.get_type();
                return Err(PyTypeError::new_err(format!("an info must be a dict, got {got}")));
            }
        };
        if dict.is_empty() {
            return Ok(());
        }
        with_critical_section(&dict, || self.put_dict(row, &dict, snapshot))
    }

    /// Writes a dictionary that no other thread changes now.
    fn put_dict(&mut self, row: usize, dict: &Bound<'py, PyDict>, snapshot: bool) -> PyResult<()> {
        let regular = has_text_keys(dict);
        let kind = if regular { RecordKind::Info } else { RecordKind::Whole };
        let record = self.infos.begin(kind, self.first + row, 0);
        let mut encoder = Encoder::new(self.infos, self.foreign, row, snapshot);
        let written = if regular { encoder.info(dict) } else { encoder.value(dict.as_any()) };
        if regular && encoder.irregular {
            self.infos.mark_irregular(&record);
        }
        self.foreign.end(self.infos, record, written)
    }

    /// Copies the held observation and info to `final_obs` and `final_info`, before a reset can
    /// overwrite what the environment still owns; with `draws` also the frame of the terminal state,
    /// if the row was chosen for that.
    pub(super) fn keep_final(&mut self, row: usize, draws: bool) -> PyResult<()> {
        let py = self.py;
        let held = &self.held[row];
        let (Some(observation), Some(info)) = (&held.fresh, &held.info) else {
            return Err(PyRuntimeError::new_err("a row is stepped before it is over"));
        };
        let (observation, info) = (observation.bind(py).clone(), info.bind(py).clone());
        let kept = PyDict::new(py);
        if self.dense_finals {
            self.held[row].last = Some(self.encode(row, &observation)?);
        } else {
            kept.set_item(intern!(py, "final_obs"), observation)?;
        }
        if draws {
            self.keep_frame(row)?;
        }
        // Without an observation, only an info that says something needs a record.
        if !self.dense_finals || !info.is_instance_of::<PyDict>() || info.len()? > 0 {
            kept.set_item(intern!(py, "final_info"), info)?;
        }
        self.write_info(row, kept.as_any(), true)
    }

    /// An observation as the bytes of its leaves, one after the other.
    fn encode(&mut self, row: usize, observation: &Bound<'py, PyAny>) -> PyResult<Vec<u8>> {
        let mut bytes = ObservationBytes::new(&self.tree.leaves);
        let mut writer = ObservationWriter {
            leaves: &self.tree.leaves,
            sink: &mut bytes,
            infos: self.infos,
            foreign: self.foreign,
            first: self.first,
            row,
            place: 0,
        };
        writer.write(&self.tree.root, observation)?;
        Ok(bytes.into_bytes())
    }

    /// Draws the environment of a row that was chosen, and writes the frame as a record.
    fn keep_frame(&mut self, row: usize) -> PyResult<()> {
        let py = self.py;
        if !self.worker.getattr(intern!(py, "drawn"))?.contains(row)? {
            return Ok(());
        }
        let frame = self.worker.call_method1(intern!(py, "draw"), (row,));
        let frame = self.come_back(frame)?;
        let record = self.infos.begin(RecordKind::Opaque, self.first + row, TERMINAL);
        let written = Encoder::new(self.infos, self.foreign, row, true).value(&frame);
        self.foreign.end(self.infos, record, written)
    }

    /// No episode of the row has ended in this task.
    pub(super) fn forget_final(&mut self, row: usize) {
        self.held[row].last = None;
        self.forget_rewards(row);
    }

    /// Where rewards are arrays, the row has no reward until its environment is stepped.
    pub(super) fn forget_rewards(&mut self, row: usize) {
        if self.reward_width.is_some() {
            self.held[row].rewards.fill(0.0);
        }
    }

    /// Writes the true next observation of a row that was written, where batches have final ones.
    pub(super) fn write_final(&mut self, row: usize) {
        if !self.dense_finals {
            return;
        }
        let (slab, place) = placed(&mut self.slab, &self.span, row);
        slab.write_final(place, self.held[row].last.take().as_deref());
    }

    /// Writes the held observation and info to the batch.
    pub(super) fn publish(&mut self, row: usize) -> PyResult<()> {
        let py = self.py;
        if let Some(fresh) = self.held[row].fresh.take() {
            self.write(row, fresh.bind(py))?;
            self.held[row].shown = Some(fresh);
        }
        match self.held[row].info.take() {
            Some(info) => self.write_info(row, info.bind(py), false),
            None => Ok(()),
        }
    }

    /// Writes the last observation to the batch again, without an info.
    pub(super) fn repeat(&mut self, row: usize) -> PyResult<()> {
        if let Some(shown) = &self.held[row].shown {
            let shown = shown.bind(self.py).clone();
            return self.write(row, &shown);
        }
        // Never reset: zeros, as in Gymnasium's own buffer.
        let (slab, place) = placed(&mut self.slab, &self.span, row);
        for leaf in 0..self.tree.leaves.len() {
            slab.write_zeros(leaf, place);
        }
        Ok(())
    }

    /// Replaces a failed environment by a new one, not yet reset, and holds the last observation
    /// that the row showed. The error is `failure` itself if it is not to be replaced, or the reason
    /// why that was not possible.
    pub(super) fn replace(&mut self, row: usize, failure: PyErr) -> PyResult<()> {
        let py = self.py;
        let held = &mut self.held[row];
        if self.stepping && held.shown.is_none() {
            return Err(failure); // stepped before its first reset: there is no episode to end
        }
        // The last observation becomes the result of the failed step.
        held.fresh = held.shown.as_ref().map(|shown| shown.clone_ref(py));
        held.info = Some(PyDict::new(py).into_any().unbind());
        let text = self.worker.call_method1(intern!(py, "replace"), (row, failure.value(py)));
        let text = self.come_back(text)?;
        if text.is_none() {
            return Err(failure);
        }
        self.held[row].replacements += 1;
        let text: String = text.extract()?;
        self.tell(row, "env_error", |infos| infos.text(&text));
        Ok(())
    }
}

/// The memory of the rows, and the place of one of them.
fn placed<'a, 's>(
    slab: &'a mut Option<&mut SlabRows<'s>>,
    span: &Range<usize>,
    row: usize,
) -> (&'a mut SlabRows<'s>, usize) {
    let slab = slab.as_deref_mut().expect("rows are written when they have places");
    let place = slab.rows().start + row - span.start;
    (slab, place)
}
