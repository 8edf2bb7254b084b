//! Steps of all rows.

use cartwheel_engine::Call;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::pool::actions::{Checked, Rows};
use crate::pool::batch::{Outputs, narrow_rewards};
use crate::pool::next_reset::flags_of;
use crate::pool::posted::To;
use crate::pool::state::{State, cast_for, check_values};
use crate::worker::shard::ACTIONS_BY_CHANNEL;

impl State {
    /// `step_async` and `step_wait` in one.
    pub(super) fn step<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.begin_step(py, actions, "step")?;
        self.finish_step(py, "step", self.timeout)?.into_tuple(py)
    }

    /// `step_async` and `step_wait_by_row` in one.
    pub(super) fn step_by_row<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        reset_infos: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.begin_step(py, actions, "step")?;
        self.finish_step_by_row(py, "step", self.timeout, reset_infos)
    }

    /// Begins a step. `calling` is the method that the user called.
    pub(super) fn begin_step<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        calling: &str,
    ) -> PyResult<()> {
        let explain = |error| self.link.explain_for(py, error, Call::Step, calling, true);
        // A pool that can begin no call says so first.
        let checked = self.pool.check(Call::Call).and_then(|()| self.check_episodes(0..self.rows));
        checked.and_then(|()| self.pool.check(Call::Step)).map_err(explain)?;
        let next = self.pack_next_resets(py, 0..self.rows)?;
        if self.actions.opaque > 0 {
            let link = self.link.bind(py);
            let messages = link.call_method1(intern!(py, "pack_actions"), (actions,))?;
            let begun = self.pool.begin(Call::Step, ACTIONS_BY_CHANNEL | flags_of(next.as_ref()));
            begun.map_err(explain)?;
            self.link.all_sent = calling == "send";
            self.post(py, To::All, &messages)?;
            return self.send_next_resets(py, next);
        }
        let (pool, native) = (&mut self.pool, self.native.as_ref());
        let rows = Rows::All(self.rows);
        let checked = Checked::new(&self.actions, actions, rows, cast_for(native))?;
        for (leaf, part) in checked.parts() {
            let filled = pool.fill_actions(leaf, part.tag(), |room| {
                part.copy_to(0, room);
                check_values(native, leaf, part.tag(), room)
            });
            filled.map_err(explain)?;
        }
        pool.begin(Call::Step, flags_of(next.as_ref())).map_err(explain)?;
        self.keep_judged(&checked, py)?;
        self.link.all_sent = calling == "send";
        self.send_next_resets(py, next)
    }

    pub(super) fn finish_step<'py>(
        &mut self,
        py: Python<'py>,
        calling: &str,
        timeout: Option<f64>,
    ) -> PyResult<Outputs<'py>> {
        let finished = self.finish(py, Call::Step, calling, timeout)?;
        let finished = self.judged(py, finished, calling)?;
        let outputs = self.collect(py, finished);
        if outputs.is_err() {
            self.lose(0..self.rows);
        }
        outputs
    }

    /// Observations, rewards, whether episodes are over, and the infos of each row; those of resets
    /// replace entries of `reset_infos`.
    pub(super) fn finish_step_by_row<'py>(
        &mut self,
        py: Python<'py>,
        calling: &str,
        timeout: Option<f64>,
        reset_infos: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let finished = self.finish(py, Call::Step, calling, timeout)?;
        let finished = self.judged(py, finished, calling)?;
        let lease = self.load(py, finished)?;
        let Self { link, batches, infos, by_row, rows, .. } = self;
        let rewards = narrow_rewards(py, &lease, *rows)?;
        let [dones, dicts] = by_row.step(py, infos, &lease, reset_infos)?;
        let (observations, _) = batches.observations(link.bind(py), lease, infos)?;
        PyTuple::new(py, [observations, rewards, dones, dicts])
    }
}
