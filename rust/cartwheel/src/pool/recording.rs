//! Recording a rollout: the batches of the next steps go to one piece of memory.
//!
//! [`Pool::record`] chooses the rollout. The next reset of all rows goes to its first batch, every step to
//! the next one; after the last step batches go to slabs again. A reset after the first step is no part
//! of the rollout and goes to a slab.
//!
//! Batches of a rollout are of all rows. So meanwhile no rows are sent that would have to be in one: for a
//! step, or for a reset before the first one.

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
    /// Steps that were begun: every batch but the first is one's.
    fn steps(&self) -> usize {
        self.batch.saturating_sub(1)
    }
}

/// A rollout that is about to be recorded.
#[derive(Debug)]
pub struct Recorded {
    /// The rollout.
    pub rollout: Arc<RolloutLease>,
    /// The descriptor by which worker processes have to attach it, if they do not know it yet.
    pub descriptor: Option<OwnedFd>,
}

impl Pool {
    /// Takes a rollout of `steps` steps, to be recorded from [`Pool::record`] on.
    ///
    /// # Errors
    ///
    /// As [`Pool::check`] for a control call; [`Error::BadPlan`] when batches have not all rows or a rollout
    /// cannot have so many steps, [`Error::Os`] when there is no memory for it.
    pub fn new_rollout(&mut self, steps: usize) -> Result<Recorded, Error> {
        self.check(Call::Call)?;
        if self.batch_size() < self.phases.len() {
            return Err(Error::BadPlan(
                "a rollout needs batches of all rows: batch_size is less than num_envs".to_owned(),
            ));
        }
        if let Some(rollout) = self.slabs.free_rollout(steps) {
            return Ok(Recorded { rollout: Arc::new(rollout), descriptor: None });
        }
        let (rollout, backing) = self.memory.new_rollout(&self.slabs, steps)?;
        Ok(Recorded { rollout: Arc::new(rollout), descriptor: backing.into_descriptor() })
    }

    /// Records the next batches in this rollout, in place of one that was not finished.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when it is another pool's, whose workers know another rollout by its number; or
    /// when it was recorded before, since somebody may be looking at it.
    pub fn record(&mut self, rollout: Arc<RolloutLease>) -> Result<(), Error> {
        self.slabs.begin_recording(&rollout)?;
        self.recording = Some(Recording { rollout, batch: 0 });
        Ok(())
    }

    /// Ends the recording; the batches that it has are kept.
    pub fn stop_recording(&mut self) {
        self.recording = None;
    }

    /// Steps that the rollout which is being recorded has, one that is pending among them; `None` while
    /// nothing is recorded.
    pub fn recorded_steps(&self) -> Option<usize> {
        self.recording.as_ref().map(Recording::steps)
    }

    /// Whether a reset can begin, which may fill the first batch once more.
    ///
    /// # Errors
    ///
    /// [`Error::BadPlan`] when somebody holds it.
    pub(super) fn check_recording(&self) -> Result<(), Error> {
        match &self.recording {
            Some(Recording { rollout, batch: 0 | 1 }) if rollout.is_first_read() => {
                let held = "the rollout's first batch is held: drop its lease before another reset";
                Err(Error::BadPlan(held.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Whether rows can be sent for this call: what they do is no part of the rollout.
    ///
    /// # Errors
    ///
    /// [`Error::Recording`].
    pub(super) fn check_sent(&self, call: Call) -> Result<(), Error> {
        match &self.recording {
            Some(recording) if call == Call::Step || recording.steps() == 0 => {
                let (done, steps) = (recording.steps(), recording.rollout.steps());
                Err(Error::Recording { call, done, steps })
            }
            _ => Ok(()),
        }
    }

    /// The batch of the rollout that a call fills, if it fills one.
    pub(super) fn recorded(&mut self, call: Call) -> Option<Lease> {
        let Recording { rollout, batch } = self.recording.as_mut()?;
        let chosen = match (call, *batch) {
            (Call::Reset, 0 | 1) => 0,
            (Call::Step, 1..) => *batch,
            _ => return None,
        };
        let lease = self.slabs.batch_of(rollout, chosen);
        *batch = chosen + 1;
        if *batch > rollout.steps() {
            self.recording = None;
        }
        Some(lease)
    }
}
