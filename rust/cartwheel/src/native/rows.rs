//! Native environments row by row, as the autoreset machine drives them.

use std::convert::Infallible;

use super::{Info, Seed, Space, View};
use crate::autoreset::{Rows, Transition};
use crate::env::Env;
use crate::info::{InfoWriter, Kind, RecordAt};
use crate::rng::Rng;

/// The environments of a shard, in columns: a step does not touch the random streams of most kinds.
pub(super) struct Crew<E> {
    pub(super) envs: Vec<E>,
    pub(super) rngs: Vec<Rng>,
    /// What the random streams started from.
    pub(super) seeds: Vec<Seed>,
    /// Steps since the last reset.
    pub(super) elapsed: Vec<u32>,
    /// Steps after which an episode is truncated; 0 for no limit.
    pub(super) limit: u32,
}

/// The rows of a shard during one task. A failure is a panic, so there are no errors.
pub(super) struct NativeRows<'a, E: Env> {
    /// The shard's first row in the batch.
    pub(super) first: usize,
    pub(super) crew: &'a mut Crew<E>,
    /// The actions of a step.
    pub(super) actions: Option<<E::Action as View>::Rows<'a>>,
    pub(super) observations: <E::Observation as View>::RowsMut<'a>,
    pub(super) space: &'a Space,
    /// Options of autoresets, and of explicit resets without any.
    pub(super) options: &'a E::ResetOptions,
    pub(super) infos: &'a mut InfoWriter,
    /// The info record that is being written.
    pub(super) open: &'a mut Option<RecordAt>,
}

impl<E: Env> NativeRows<'_, E> {
    pub(super) fn reset_with(&mut self, row: usize, options: &E::ResetOptions) {
        let crew = &mut *self.crew;
        crew.elapsed[row] = 0;
        crew.envs[row].reset(&mut crew.rngs[row], options);
    }

    #[inline]
    fn observe(&mut self, row: usize) {
        let place = E::Observation::row_mut(&mut self.observations, row);
        self.crew.envs[row].observe(place);
    }

    fn begin(&mut self, row: usize) {
        *self.open = Some(self.infos.begin(Kind::Info, self.first + row, 0));
    }

    fn end(&mut self) {
        self.infos.end(self.open.take().expect("a record was begun"));
    }
}

impl<E: Env> Rows for NativeRows<'_, E> {
    type Error = Infallible;

    #[inline]
    fn step(&mut self, row: usize) -> Result<Transition, Infallible> {
        let actions = self.actions.as_ref().expect("a step has actions");
        let action = E::Action::row(actions, row);
        let crew = &mut *self.crew;
        let mut transition = crew.envs[row].step(action, &mut crew.rngs[row]);
        crew.elapsed[row] = crew.elapsed[row].wrapping_add(1);
        transition.truncated |= crew.limit != 0 && crew.elapsed[row] >= crew.limit;
        Ok(transition)
    }

    #[inline(never)] // once an episode; the loop of steps stays small
    fn reset(&mut self, row: usize) -> Result<(), Infallible> {
        self.reset_with(row, self.options);
        Ok(())
    }

    #[inline(never)] // likewise
    fn keep_final(&mut self, row: usize) -> Result<(), Infallible> {
        self.observe(row); // into the row's own place; the reset overwrites it
        let info = self.crew.envs[row].info();
        self.begin(row);
        self.infos.key("final_obs");
        let observations = &self.observations;
        let leaf = |leaf: usize| {
            E::Observation::bytes(observations, row, &mut { leaf }).expect("the space was checked")
        };
        self.space.write_value(&leaf, &mut 0, self.infos);
        self.infos.key("final_info");
        self.infos.dict(info.len());
        info.write(self.infos);
        self.end();
        Ok(())
    }

    #[inline]
    fn publish(&mut self, row: usize) -> Result<(), Infallible> {
        self.observe(row);
        if !E::Info::EMPTY {
            let info = self.crew.envs[row].info();
            if !info.is_empty() {
                self.begin(row);
                info.write(self.infos);
                self.end();
            }
        }
        Ok(())
    }

    fn repeat(&mut self, row: usize) -> Result<(), Infallible> {
        self.observe(row);
        Ok(())
    }
}
