//! Native environments row by row.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::stream::Seed;
use crate::autoreset::Command;
use crate::env::{Block, Env, Info, Space, View};
use crate::info::{InfoWriter, Kind, RecordAt};
use crate::protocol::Tally;
use cartwheel_core::Transition;
use cartwheel_core::rng::Rng;

/// The environments of a shard, in columns: for most kinds a step does not touch the random
/// streams.
pub(super) struct EnvColumns<E> {
    pub(super) envs: Vec<E>,
    pub(super) rngs: Vec<Rng>,
    /// The seeds of the random streams.
    pub(super) seeds: Vec<Seed>,
    /// The state in which a row was shown before a parameter was set, until it is stepped or reset;
    /// empty when there is no such row. See [`NativeRows::repeat`].
    pub(super) shown: Vec<Option<E>>,
    ahead: Ahead,
}

/// A block that was stepped before the loop reaches its rows.
#[derive(Default)]
struct Ahead {
    running: Vec<bool>,
    transitions: Vec<Option<Transition>>,
    /// Its rows, counted from the start of the shard.
    rows: Range<usize>,
}

impl<E: Env> EnvColumns<E> {
    /// Columns of these environments and streams.
    pub(super) fn new(envs: Vec<E>, rngs: Vec<Rng>, seeds: Vec<Seed>) -> Self {
        let mut ahead = Ahead::default();
        if E::BLOCK > 1 {
            ahead.running = vec![false; E::BLOCK];
            ahead.transitions = vec![None; E::BLOCK];
        }
        Self { envs, rngs, seeds, shown: Vec::new(), ahead }
    }

    /// A new task begins: a block that was stepped belongs to the last one.
    pub(super) fn forget_block(&mut self) {
        self.ahead.rows = 0..0;
    }

    /// Keeps the state in which every row was shown last, because its parameters are about to be
    /// set.
    pub(super) fn keep_shown(&mut self) {
        self.shown.resize_with(self.envs.len(), || None);
        for (shown, env) in self.shown.iter_mut().zip(&self.envs) {
            *shown = shown.take().or_else(|| env.snapshot());
        }
    }

    /// The row is about to be shown in its present state.
    pub(super) fn forget_shown(&mut self, row: usize) {
        if let Some(shown) = self.shown.get_mut(row) {
            *shown = None;
        }
    }
}

impl<E> EnvColumns<E> {
    /// Ends the environments, one by one: if a second destructor panicked while the panic of the
    /// first is unwinding, the process would end.
    pub(super) fn clear(&mut self) {
        let shown = self.shown.drain(..).flatten();
        for env in self.envs.drain(..).chain(shown) {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(env)));
        }
    }
}

impl<E> Drop for EnvColumns<E> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The rows of a shard during one task. A failure is a panic, so this type has no errors.
pub(super) struct NativeRows<'a, E: Env> {
    /// The shard's first row.
    pub(super) first: usize,
    /// The rows of the task, counted from the first row of the shard, as all rows here are; actions
    /// and observations belong to these rows.
    pub(super) span: Range<usize>,
    pub(super) env_columns: &'a mut EnvColumns<E>,
    /// What a step does to each row of the task, a [`Command`] each.
    pub(super) commands: &'a [u8],
    /// The actions of a step.
    pub(super) actions: Option<<E::Action as View>::Rows<'a>>,
    pub(super) observations: <E::Observation as View>::RowsMut<'a>,
    pub(super) space: &'a Space,
    /// Options of autoresets, and of explicit resets without any.
    pub(super) options: &'a E::ResetOptions,
    pub(super) infos: &'a mut InfoWriter,
    /// The info record that is being written.
    pub(super) open: &'a mut Option<RecordAt>,
    /// The counters of the shard's rows.
    pub(super) tally: Tally<'a>,
}

impl<E: Env> NativeRows<'_, E> {
    pub(super) fn reset_with(&mut self, row: usize, options: &E::ResetOptions) {
        let EnvColumns { envs, rngs, .. } = &mut *self.env_columns;
        envs[row].reset(&mut rngs[row], options);
        self.tally.count_resets(row, 1);
    }

    /// Steps the block that begins at `row`, unless that row was stepped with an earlier block.
    /// Must be called for each row of a step, in order, before the row itself is stepped.
    #[inline]
    pub(super) fn step_ahead(&mut self, row: usize) {
        if E::BLOCK > 1 && !self.env_columns.ahead.rows.contains(&row) {
            self.step_block(row);
        }
    }

    /// What a step does to a row.
    #[inline]
    pub(super) fn command(&self, row: usize) -> Command {
        Command::from_byte(self.commands[row - self.span.start])
    }

    #[inline(never)] // called once for each block; the loop of rows stays small
    fn step_block(&mut self, first: usize) {
        let actions = self.actions.as_ref().expect("a step has actions");
        let EnvColumns { envs, rngs, ahead, .. } = &mut *self.env_columns;
        let rows = first..self.span.end.min(first + E::BLOCK);
        ahead.transitions[..rows.len()].fill(None);
        let commands = &self.commands[first - self.span.start..];
        for (running, &command) in ahead.running.iter_mut().zip(commands) {
            *running = command == Command::Step as u8;
        }
        let mut block = Block {
            envs: &mut envs[rows.clone()],
            rngs: &mut rngs[rows.clone()],
            running: &ahead.running[..rows.len()],
            transitions: &mut ahead.transitions[..rows.len()],
            actions,
            first: first - self.span.start,
        };
        // A row that panics here panics again when it is stepped by itself, and is identified then.
        drop(catch_unwind(AssertUnwindSafe(|| E::step_block(&mut block))));
        ahead.rows = rows;
    }

    #[inline]
    fn step_one(&mut self, row: usize) -> Transition {
        let actions = self.actions.as_ref().expect("a step has actions");
        let action = E::Action::row(actions, row - self.span.start);
        self.env_columns.envs[row].step(action, &mut self.env_columns.rngs[row])
    }

    #[inline(never)] // rarely called where blocks are stepped; the loop of rows stays small
    fn step_alone(&mut self, row: usize) -> Transition {
        self.step_one(row)
    }

    #[inline]
    fn observe(&mut self, row: usize) {
        let place = E::Observation::row_mut(&mut self.observations, row - self.span.start);
        self.env_columns.envs[row].observe(place);
    }

    fn begin(&mut self, row: usize) {
        *self.open = Some(self.infos.begin(Kind::Info, self.first + row, 0));
    }

    fn end(&mut self) {
        self.infos.end(self.open.take().expect("a record was begun"));
    }

    /// Steps the environment of a row, unless it was stepped with its block.
    #[inline]
    pub(super) fn step(&mut self, row: usize) -> Transition {
        if E::BLOCK > 1 {
            let ahead = &self.env_columns.ahead;
            let stepped = ahead.transitions[row - ahead.rows.start];
            stepped.unwrap_or_else(|| self.step_alone(row))
        } else {
            self.step_one(row)
        }
    }

    #[inline(never)] // called once for each episode; the loop of steps stays small
    pub(super) fn reset(&mut self, row: usize) {
        self.reset_with(row, self.options);
    }

    /// Copies observation and info to `final_obs` and `final_info`, before a reset overwrites what
    /// the environment still owns.
    #[inline(never)] // called once for each episode
    pub(super) fn keep_final(&mut self, row: usize) {
        self.observe(row); // into the row's own place; the reset overwrites it
        let info = self.env_columns.envs[row].info();
        self.begin(row);
        self.infos.key("final_obs");
        let (observations, place) = (&self.observations, row - self.span.start);
        let leaf = |leaf: usize| {
            E::Observation::bytes(observations, place, &mut { leaf })
                .expect("the space was checked")
        };
        self.space.write_value(&leaf, &mut 0, self.infos);
        self.infos.key("final_info");
        self.infos.dict(info.len());
        info.write(self.infos);
        self.end();
    }

    /// Writes observation and info to the batch.
    #[inline]
    pub(super) fn publish(&mut self, row: usize) {
        self.observe(row);
        if !E::Info::EMPTY {
            let info = self.env_columns.envs[row].info();
            if !info.is_empty() {
                self.begin(row);
                info.write(self.infos);
                self.end();
            }
        }
    }

    /// Writes the last observation to the batch again, without an info.
    ///
    /// An observation is a function of the state, so a row that was not touched since shows its
    /// observation again. Nothing has to be kept for that: neither a copy for each step nor the
    /// slab of the batch before, which belongs to the caller by now and may have been written to.
    /// Only setting a parameter keeps a copy of the environment first.
    pub(super) fn repeat(&mut self, row: usize) {
        match self.env_columns.shown.get(row) {
            Some(Some(shown)) => {
                let place = row - self.span.start;
                shown.observe(E::Observation::row_mut(&mut self.observations, place));
            }
            _ => self.observe(row),
        }
    }
}
