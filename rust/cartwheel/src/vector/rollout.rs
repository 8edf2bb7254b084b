//! Rollouts: consecutive steps in one memory.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use cartwheel_engine::autoreset::AutoresetMode;
use cartwheel_engine::memory::RolloutLease;
use cartwheel_engine::native::RowReset;
use cartwheel_engine::{Call, PhaseTag};
use cartwheel_kernels::returns::{
    Bootstrap, Error as ReturnsError, FinalValues, Flags, PerStep, Restart, TimeMajor, Transitions,
    next_values, valid_mask,
};

use super::batch::Batch;
use super::error::VectorError;
use super::ffi::BatchMemory;
use super::observations::Observations;
use super::vector_env::VectorEnv;
use crate::env::{Arrays, Env, View};

/// A rollout that is being recorded; dropping it ends the recording.
///
/// It steps the environments: other calls wait until it is finished.
pub struct Recording<'e, E: Env> {
    envs: &'e mut VectorEnv<E>,
    lease: Arc<RolloutLease>,
    /// The last batch, the first one before the first step.
    last: Batch<E>,
    done: usize,
    /// Rows that were over before the first step.
    prev_done: Vec<u8>,
    /// Step and row of episodes that ended, where their last observations are kept apart.
    ends: Vec<[usize; 2]>,
    /// The bytes of these observations, for each leaf.
    finals: Vec<Vec<u8>>,
}

impl<E: Env> fmt::Debug for Recording<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("envs", &self.envs)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl<E: Env> VectorEnv<E> {
    /// Begins to record the next `steps` steps of all rows in one memory, from where the rows are
    /// now: reset them before.
    ///
    /// # Errors
    ///
    /// [`VectorError::Engine`] when rows are in flight, when batches do not have all rows, or when
    /// there is no memory.
    pub fn record(&mut self, steps: usize) -> Result<Recording<'_, E>, VectorError> {
        self.check(Call::Reset)?;
        let lease = self.pool.new_rollout(steps)?.rollout;
        self.pool.record(Arc::clone(&lease))?;
        // A reset of no row: all show their observations, in the first batch of the rollout.
        let last = match self.reset_all(vec![RowReset::Leave; self.len()], None, 0) {
            Ok(last) => last,
            Err(error) => {
                self.pool.stop_recording();
                return Err(error);
            }
        };
        let over = |phase: &u8| u8::from(*phase == PhaseTag::Over as u8);
        let prev_done = last.phases().iter().map(over).collect();
        let finals = vec![Vec::new(); self.leaves.len()];
        Ok(Recording { envs: self, lease, last, done: 0, prev_done, ends: Vec::new(), finals })
    }
}

impl<E: Env> Recording<'_, E> {
    /// The last batch: before the first step, what rows showed when the recording began.
    pub fn last(&self) -> &Batch<E> {
        &self.last
    }

    /// Number of steps so far.
    pub fn len(&self) -> usize {
        self.done
    }

    /// Whether there was no step yet.
    pub fn is_empty(&self) -> bool {
        self.done == 0
    }

    /// Whether all steps are recorded.
    pub fn is_complete(&self) -> bool {
        self.done == self.lease.steps()
    }

    /// Steps all rows, as [`VectorEnv::step`].
    ///
    /// # Errors
    ///
    /// As [`VectorEnv::step`], and in [`SameStep`](crate::AutoresetMode::SameStep) as
    /// [`Batch::finals`]; [`VectorError::Engine`] when the rollout is complete. After any error that
    /// is not about the actions, the recording cannot be completed: every later step is refused.
    pub fn step(
        &mut self,
        actions: &[<E::Action as View>::Owned],
    ) -> Result<&Batch<E>, VectorError> {
        if self.is_complete() {
            let steps = self.done;
            return Err(VectorError::refused(format!("the rollout has its {steps} steps")));
        }
        if self.envs.pool.recorded_steps() != Some(self.done) {
            let what = format!("the step after {} gave an error: record again", self.done);
            return Err(VectorError::refused(what));
        }
        let batch = self.envs.step(actions)?;
        if self.envs.settings.autoreset == AutoresetMode::SameStep {
            let finals = batch.finals()?;
            self.ends.extend(finals.places().iter().map(|row| [self.done, *row]));
            for (leaf, bytes) in self.finals.iter_mut().enumerate() {
                bytes.extend_from_slice(finals.leaf_bytes(leaf));
            }
        }
        self.last = batch;
        self.done += 1;
        Ok(&self.last)
    }

    /// The rollout.
    ///
    /// # Errors
    ///
    /// [`VectorError::Engine`] when steps are missing.
    ///
    /// # Panics
    ///
    /// Never: every flag of a rollout was written by its steps.
    pub fn finish(mut self) -> Result<Rollout<E>, VectorError> {
        let (steps, rows) = (self.lease.steps(), self.envs.len());
        if !self.is_complete() {
            let done = self.done;
            return Err(VectorError::refused(format!("{done} of {steps} steps are recorded")));
        }
        let ends = std::mem::take(&mut self.ends);
        let mut finals = Arrays::new(self.envs.leaves.to_vec(), ends.len());
        for (leaf, bytes) in self.finals.iter().enumerate() {
            finals.store(leaf, bytes);
        }
        let settings = self.envs.settings;
        let mut rollout = Rollout {
            memory: BatchMemory::of_rollout(Arc::clone(&self.lease), &self.envs.leaves),
            shape: [steps, rows],
            restart: Restart::new(settings.autoreset, settings.on_done),
            valid: Vec::new(),
            ends,
            finals,
            env: PhantomData,
        };
        let mut valid = vec![0; steps * rows];
        valid_mask(rollout.flags(), rollout.restart, &self.prev_done, &mut valid)
            .expect("flags of one mode, and masks of this shape");
        rollout.valid = valid;
        Ok(rollout)
    }
}

impl<E: Env> Drop for Recording<'_, E> {
    fn drop(&mut self) {
        self.envs.pool.stop_recording();
    }
}

/// Consecutive steps of all rows, in one memory: what [`returns`](crate::returns) needs, except for
/// the values, which are the policy's. Arrays are time-major, `[steps, rows]`.
///
/// ```text
/// observation(0) ─▶ rewards, flags of step 0 ─▶ observation(1) ─▶ … ─▶ observation(steps)
/// ```
pub struct Rollout<E> {
    memory: BatchMemory,
    /// Steps and rows.
    shape: [usize; 2],
    restart: Restart,
    valid: Vec<u8>,
    ends: Vec<[usize; 2]>,
    finals: Arrays,
    env: PhantomData<fn() -> E>,
}

impl<E> fmt::Debug for Rollout<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rollout")
            .field("env", &std::any::type_name::<E>())
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

impl<E: Env> Rollout<E> {
    /// Number of steps and of rows.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The observations after `steps` steps: 0 for those before the first step.
    ///
    /// # Panics
    ///
    /// When there are fewer steps.
    pub fn observations(&self, steps: usize) -> Observations<'_, E::Observation> {
        assert!(steps <= self.shape[0], "{steps} steps of {}", self.shape[0]);
        Observations::new(self.memory.observations::<E::Observation>(steps), self.shape[1])
    }

    /// The rewards of every step.
    pub fn rewards(&self) -> TimeMajor<'_, f64> {
        self.time_major(self.memory.rewards(1..self.shape[0] + 1))
    }

    /// Ends of episodes in every step; a flag that is set is 1.
    pub fn flags(&self) -> Flags<'_> {
        let [terminated, truncated] = self.memory.flags(1..self.shape[0] + 1);
        Flags { terminated: self.time_major(terminated), truncated: self.time_major(truncated) }
    }

    /// Entries that are transitions: in [`NextStep`](crate::AutoresetMode::NextStep), a step that
    /// only resets a row is none. Those that are have 1.
    pub fn valid(&self) -> TimeMajor<'_, u8> {
        self.time_major(&self.valid)
    }

    /// Rewards, flags and valid entries, with this discount, as the estimators of
    /// [`returns`](crate::returns) take them.
    pub fn transitions(&self, gamma: f64) -> Transitions<'_, f64> {
        Transitions {
            rewards: self.rewards(),
            flags: self.flags(),
            valid: Some(self.valid()),
            gamma: PerStep::Same(gamma),
            bootstrap: Bootstrap::default(),
            num_threads: None,
        }
    }

    /// Step and row of every episode that ended, in [`SameStep`](crate::AutoresetMode::SameStep),
    /// where the next observation belongs to the next episode; empty in the other modes.
    pub fn ends(&self) -> &[[usize; 2]] {
        &self.ends
    }

    /// The last observations of these episodes, in the order of [`Rollout::ends`].
    pub fn final_observations(&self) -> Observations<'_, E::Observation> {
        Observations::new(self.finals.rows(E::Observation::rows), self.ends.len())
    }

    /// The value of the true next observation of each step, `[steps, rows]`, from the `values` of all
    /// observations, `[steps + 1, rows]`, and those of [`Rollout::final_observations`].
    ///
    /// # Errors
    ///
    /// [`returns::Error`](crate::returns::Error) when there are not as many values.
    pub fn next_values(
        &self,
        values: &[f64],
        final_values: &[f64],
        bootstrap: Bootstrap,
    ) -> Result<Vec<f64>, ReturnsError> {
        let [steps, rows] = self.shape;
        let values = TimeMajor::new(values, steps + 1, rows)?;
        let finals = FinalValues { values: final_values, index: &self.ends };
        let mut next = vec![0.0; steps * rows];
        next_values(values, self.flags(), self.restart, bootstrap, Some(finals), &mut next)?;
        Ok(next)
    }

    fn time_major<'a, T>(&self, cells: &'a [T]) -> TimeMajor<'a, T> {
        let [steps, rows] = self.shape;
        TimeMajor::new(cells, steps, rows)
            .expect("a rollout has steps and rows, and cells for them")
    }
}
