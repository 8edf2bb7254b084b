//! Batches: what a step or a reset of many rows gives.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use cartwheel_core::space::Space;

use super::ffi::BatchMemory;
use super::finals::Finals;
use super::infos::Infos;
use super::observations::Observations;
use crate::Error;
use crate::env::{Env, View};

/// The results of a step or a reset: observations, rewards, flags and infos of rows.
///
/// A batch of `step` or `reset` has all rows in order; one of
/// [`recv`](crate::VectorEnv::recv) has some, and [`Batch::rows`] says which row is in which place.
/// The memory belongs to the batch: it does not change while the batch lives, and is used again
/// after it was dropped. So batches may be kept, sent to other threads, and compared with later
/// ones.
pub struct Batch<E> {
    memory: BatchMemory,
    rows: Arc<[usize]>,
    infos: Vec<u8>,
    space: Arc<Space>,
    env: PhantomData<fn() -> E>,
}

/// Also where `E` is not `Debug`, as a derived implementation would require.
impl<E> fmt::Debug for Batch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("env", &std::any::type_name::<E>())
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl<E: Env> Batch<E> {
    pub(super) fn new(
        memory: BatchMemory,
        rows: Arc<[usize]>,
        infos: Vec<u8>,
        space: &Arc<Space>,
    ) -> Self {
        Self { memory, rows, infos, space: Arc::clone(space), env: PhantomData }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.memory.places()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row in each place; in a batch of all rows, row `i` is in place `i`.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The observation in place `at`.
    ///
    /// # Panics
    ///
    /// When there is no such place.
    pub fn observation(&self, at: usize) -> <E::Observation as View>::Ref<'_> {
        self.observations().row(at)
    }

    /// All observations. Take them once where many rows are read.
    pub fn observations(&self) -> Observations<'_, E::Observation> {
        Observations::new(self.memory.observations::<E::Observation>(0), self.len())
    }

    /// The reward of each row; 0 where it was reset or left alone.
    pub fn rewards(&self) -> &[f64] {
        self.memory.rewards(0..1)
    }

    /// Places at which the step ended the episode.
    pub fn terminations(&self) -> &[bool] {
        self.memory.terminations()
    }

    /// Where the step cut the episode short: the environment did, or the limit of steps, or the
    /// environment was replaced.
    pub fn truncations(&self) -> &[bool] {
        self.memory.truncations()
    }

    /// Whether the episode of the row in place `at` is over.
    ///
    /// # Panics
    ///
    /// When there is no such place.
    pub fn is_over(&self, at: usize) -> bool {
        self.terminations()[at] || self.truncations()[at]
    }

    /// The infos of environments.
    ///
    /// # Errors
    ///
    /// [`Error::MalformedInfo`]: an author's own [`InfoValue`](crate::InfoValue) writes no value, or
    /// several.
    pub fn infos(&self) -> Result<Infos<'_>, Error> {
        Infos::new(&self.infos, &self.rows)
    }

    /// The last observations and infos of episodes that ended in this step, in
    /// [`SameStep`](crate::AutoresetMode::SameStep): the batch itself shows the first ones of the next
    /// episodes. Empty in the other modes, in which the batch shows the last observations.
    ///
    /// # Errors
    ///
    /// As [`Batch::infos`]; also when an environment has an info of its own with the key `final_obs`
    /// that is not an observation.
    pub fn finals(&self) -> Result<Finals<'_, E>, Error> {
        Finals::new(self.infos()?, self.space.leaves())
    }

    /// The phase of each row, an [`cartwheel_engine::PhaseTag`].
    pub(super) fn phases(&self) -> &[u8] {
        self.memory.phases()
    }

    /// The bytes of the observation in place `at`, leaf after leaf.
    pub(crate) fn observation_bytes(&self, at: usize) -> Vec<u8> {
        self.memory.observation_bytes(at)
    }
}
