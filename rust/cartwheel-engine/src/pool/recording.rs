//! Recording a rollout: the batches of the next steps go to one mapping.
//!
//! [`Pool::record`] chooses the rollout. The next reset of all rows goes to its first batch, every
//! step to the next one; after the last step batches go to slabs again. A reset after the first
//! step is not part of the rollout and goes to a slab.
//!
//! A batch of a rollout contains all rows. So during a recording no rows are sent whose results
//! would belong in one: for a step, or for a reset before the first step.
#![expect(
    unsafe_code,
    reason = "leases slabs before they are filled, see the invariants of the module"
)]

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::Pool;
use crate::call::Call;
use crate::error::Error;
use crate::memory::{Lease, RolloutLease};

#[derive(Debug)]
pub(super) struct Recording {
    rollout: Arc<RolloutLease>,
    /// The batch that is filled next.
    batch: usize,
}

impl Recording {
    /// Number of steps that were begun: each filled one batch after the first.
    fn steps(&self) -> usize {
        self.batch.saturating_sub(1)
    }
}

/// A rollout that is about to be recorded.
#[derive(Debug)]
pub struct Recorded {
    /// The rollout.
    pub rollout: Arc<RolloutLease>,
    descriptor: Option<OwnedFd>,
}

impl Recorded {
    /// The rollout; and the descriptor that worker processes need to attach it, if they do not know
    /// it yet.
    ///
    /// # Safety
    ///
    /// As for [`Memory::descriptors`](crate::protocol::Memory::descriptors): the descriptor is only
    /// passed to [`Memory::attach_rollout`](crate::protocol::Memory::attach_rollout).
    pub unsafe fn into_parts(self) -> (Arc<RolloutLease>, Option<OwnedFd>) {
        (self.rollout, self.descriptor)
    }
}

impl Pool {
    /// Takes a rollout of `steps` steps, for a recording that begins with [`Pool::record`].
    ///
    /// # Errors
    ///
    /// As [`Pool::check`] for a control call; [`Error::BadPlan`] when batches do not contain all
    /// rows or a rollout cannot have `steps` steps, [`Error::Os`] when there is no memory for it.
    pub fn new_rollout(&mut self, steps: usize) -> Result<Recorded, Error> {
        self.check(Call::Call)?;
        if self.batch_size() < self.phases.len() {
            return Err(Error::BadPlan(format!(
                "a rollout needs batches of all {} rows, but batch_size is {}",
                self.phases.len(),
                self.batch_size()
            )));
        }
        if let Some(rollout) = self.slabs.free_rollout(steps) {
            return Ok(Recorded { rollout: Arc::new(rollout), descriptor: None });
        }
        let (rollout, backing) = self.memory.new_rollout(&self.slabs, steps)?;
        Ok(Recorded { rollout: Arc::new(rollout), descriptor: backing.into_descriptor() })
    }

    /// Records the next batches in this rollout, replacing an unfinished recording.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when it belongs to another pool, whose workers know another rollout by its
    /// number; or when it was recorded before, since its batches may be in use.
    pub fn record(&mut self, rollout: Arc<RolloutLease>) -> Result<(), Error> {
        self.slabs.begin_recording(&rollout)?;
        self.recording = Some(Recording { rollout, batch: 0 });
        Ok(())
    }

    /// Ends the recording; the batches that it has are kept.
    pub fn stop_recording(&mut self) {
        self.recording = None;
    }

    /// Number of steps recorded so far, including a pending one; `None` while nothing is recorded.
    pub fn recorded_steps(&self) -> Option<usize> {
        self.recording.as_ref().map(Recording::steps)
    }

    /// Checks whether a reset can begin, which may fill the first batch once more.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when a lease on that batch is held.
    pub(super) fn check_recording(&self) -> Result<(), Error> {
        match &self.recording {
            Some(Recording { rollout, batch: 0 | 1 }) if rollout.is_first_read() => {
                let held = "the rollout's first batch is held: drop its lease before another reset";
                Err(Error::BadPlan(held.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Checks whether rows can be sent for this call: their results are not part of the rollout.
    pub(super) fn check_sent(&self, call: Call) -> Result<(), Error> {
        match &self.recording {
            Some(recording) if call == Call::Step || recording.steps() == 0 => {
                let (done, steps) = (recording.steps(), recording.rollout.steps());
                Err(Error::Recording { call, done, steps })
            }
            _ => Ok(()),
        }
    }

    /// The batch of the rollout that a call fills, if there is one.
    pub(super) fn recorded(&mut self, call: Call) -> Option<Lease> {
        let Recording { rollout, batch } = self.recording.as_mut()?;
        let chosen = match (call, *batch) {
            (Call::Reset, 0 | 1) => 0,
            (Call::Step, 1..) if !self.policy.has_external_rewards => *batch,
            (Call::Settle, 1..) => *batch,
            _ => return None,
        };
        // SAFETY: the lease is handed out when its task has finished (invariant 3).
        let lease = unsafe { self.slabs.batch_of(rollout, chosen) };
        *batch = chosen + 1;
        if *batch > rollout.steps() {
            self.recording = None;
        }
        Some(lease)
    }
}
