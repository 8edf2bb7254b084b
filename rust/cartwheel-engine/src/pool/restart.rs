//! Replacing a worker process that died.
//!
//! Where the policy allows it, [`Error::WorkerDied`] leaves pending tasks and rows in flight as
//! they are. The caller asks what the worker [lost](Pool::lost), starts a process whose rows know
//! that they lost their environments, and calls [`Pool::resume`]. The new worker then finishes the
//! pending task, or the rows that the dead worker had not counted as filled.
//!
//! A dead process writes nothing any more, so the pool may change its line of the control words
//! until the new process serves. What the dead worker had acknowledged or counted stays; the rest
//! is repeated from the beginning, into the same places. If the worker died while it claimed or
//! counted places, the words of the batch say what it did, see `protocol/settling.rs`. The pool may
//! have to wait for that until living workers are at rest: until then a receipt hands out nothing.
//!
//! The pool breaks, as without the policy, in one case: two workers died before the pool noticed
//! the first death, both while they claimed or counted places of the same batch, and it cannot be
//! determined which of them did.

use std::sync::atomic::Ordering;

use super::broken::Cause;
use super::{OnDeath, Pending, Pool, Workers};
use crate::call::Call;
use crate::error::Error;
use crate::protocol::{Left, Settled, Settling, Work};
use crate::transition::PhaseTag;
use crate::wake::{Command, Op};
use crate::worker::{ProcessHandle, has_ended};

/// What the rows of a dead worker were doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// For each row, whether its episode was over.
    pub over: Vec<bool>,
    /// Rows that were sent for a reset that has not happened yet, counted from the worker's first
    /// row.
    pub resetting: Vec<usize>,
    /// Rows in flight whose results are complete, counted from the first row of the pool. What the
    /// dead worker announced about them outside the batch is lost with it, also after a restart.
    pub filled: Vec<usize>,
}

/// The work of a dead worker that waits for the next worker.
#[derive(Debug)]
pub(super) struct Interrupted {
    worker: usize,
    work: Vec<Work>,
    /// Whether the words that the dead worker left were cleared.
    is_cleared: bool,
}

impl Pool {
    /// Records a death: the pool can be resumed if that is its policy, and is broken otherwise.
    /// Returns `None` while it is not settled what the dead worker left; then nothing was changed.
    pub(super) fn note_death(&mut self, worker: usize) -> Option<Error> {
        if self.work_of(worker).is_some() {
            return Some(self.died(worker)); // it has not been replaced yet
        }
        let left = match self.policy.on_death {
            OnDeath::Resume => self.left_behind(worker),
            OnDeath::Break if self.is_hung(worker) => self.left_behind(worker),
            OnDeath::Break => Settled::Never,
        };
        match left {
            // Other workers may wait too, whose restart was itself interrupted.
            Settled::Left(work) => {
                self.interrupted.push(Interrupted { worker, work, is_cleared: false });
            }
            Settled::Later => return None,
            Settled::Never => self.give_up(worker),
        }
        Some(self.died(worker))
    }

    /// Whether a worker died that can be replaced.
    pub fn can_resume(&self) -> bool {
        !self.interrupted.is_empty()
    }

    /// The work that waits for the replacement of a dead worker.
    fn work_of(&self, worker: usize) -> Option<&[Work]> {
        let mut interrupted = self.interrupted.iter();
        interrupted.find(|interrupted| interrupted.worker == worker).map(|found| &*found.work)
    }

    /// Gives work to a worker, or to the one that will replace it.
    pub(super) fn push(&mut self, worker: usize, work: Work) {
        let mut interrupted = self.interrupted.iter_mut();
        let Some(dead) = interrupted.find(|dead| dead.worker == worker) else {
            return self.memory.control.queue(worker).push(&work);
        };
        // As what it left: one `Work` for each row, without messages.
        dead.work.extend((0..).zip(work.rows).map(|(nth, row)| Work {
            op: work.op,
            flags: 0,
            rows: row..row + 1,
            place: work.place.map(|first: u32| first + nth),
        }));
    }

    /// What the dead worker's rows lost. Afterwards its queue and its command word are empty, and
    /// another process may [serve](crate::worker::serve) it.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyServed`] when the process that serves the worker has not ended, or no death
    /// of it was noticed: a replacement process that was started and abandoned has to end first.
    pub fn lost(&mut self, worker: usize) -> Result<Lost, Error> {
        self.clear(worker)?;
        let rows = self.shards()[worker].clone();
        let work = self.work_of(worker).unwrap_or_default();
        let is_filled = |row: usize| {
            self.sent.any_of(row..row + 1) && !work.iter().any(|work| work.rows.contains(&row))
        };
        let is_over = |row: usize| {
            // Only the dead worker knew the phase of a row that was filled and not yet received; a
            // row that is to be repeated is in the phase in which it was before.
            let phase = if is_filled(row) {
                self.memory.control.phases()[row].load(Ordering::Acquire)
            } else {
                self.phases[row]
            };
            phase == PhaseTag::Over as u8
        };
        let over = rows.clone().map(is_over).collect();
        let resets = work.iter().filter(|work| work.op == Op::Reset);
        let resetting = resets.flat_map(|work| work.rows.clone()).map(|row| row - rows.start);
        let (resetting, filled) =
            (resetting.collect(), rows.filter(|&row| is_filled(row)).collect());
        Ok(Lost { over, resetting, filled })
    }

    /// Clears the words that a dead worker left, and frees its claim.
    fn clear(&mut self, worker: usize) -> Result<(), Error> {
        let mut interrupted = self.interrupted.iter_mut();
        let interrupted = interrupted.find(|interrupted| interrupted.worker == worker);
        let handle = match &self.workers {
            Workers::Processes(handles) => handles.get(worker),
            Workers::Inline(_) | Workers::Threads | Workers::Crew(_) => None,
        };
        // The process that took the claim may be another one than the process that the pool was
        // given.
        let is_dead = |pid: u32| {
            let known = handle.filter(|handle| handle.pid() == pid);
            known.map_or_else(|| has_ended(pid), |handle| !handle.is_alive())
        };
        match interrupted {
            Some(dead) if self.memory.control.slot(worker).clear(is_dead) => dead.is_cleared = true,
            _ => return Err(Error::AlreadyServed { worker }),
        }
        Ok(())
    }

    /// Lets a new process finish what the dead worker owes.
    ///
    /// # Panics
    ///
    /// When [`Pool::lost`] was not called before, so that the new process may have found the dead
    /// one's words.
    pub fn resume(&mut self, worker: usize, handle: ProcessHandle) {
        let mut dead = self.interrupted.iter();
        let Some(at) = dead.position(|interrupted| interrupted.worker == worker) else { return };
        let Interrupted { work, is_cleared, .. } = self.interrupted.remove(at);
        assert!(is_cleared, "a worker is followed after it was asked what was lost");
        if let Workers::Processes(handles) = &mut self.workers {
            handles[worker] = handle;
        }
        self.meter.count_restart(worker);
        self.watch.replaced(worker);
        let slot = self.memory.control.slot(worker);
        let command = if let Some(Pending { command, .. }) = &self.pending {
            // The flags of a step or a control call concerned messages to the dead process.
            if command.op != Op::Reset {
                slot.flags.store(0, Ordering::Relaxed);
            }
            *command
        } else {
            let queue = self.memory.control.queue(worker);
            for work in &work {
                queue.push(work);
            }
            Command::TAKE
        };
        self.memory.publish([worker], command);
    }

    /// Breaks the pool: the dead worker is not replaced, and the batch that it was filling is never
    /// handed out.
    pub fn give_up(&mut self, worker: usize) {
        self.break_for(Cause::Died(worker), None);
    }

    /// The rows in flight that the dead worker had not counted.
    fn left_behind(&self, worker: usize) -> Settled {
        if self.pending.is_some() {
            return Settled::Left(Vec::new());
        }
        let control = &self.memory.control;
        let look = |other: usize| {
            if let Some(work) = self.work_of(other) {
                return Some(Left::known(work.to_vec()));
            }
            let left = control.queue(other).left()?;
            (!left.is_in_doubt() || !self.is_alive(other)).then_some(left)
        };
        let settling = Settling {
            batches: control.batches(),
            next: self.sent.next_batch(),
            dealt: self.dealt(),
        };
        let mut work = match settling.settle(worker, control.workers(), look) {
            Settled::Left(work) => work,
            unsettled => return unsettled,
        };
        // The pool's own records take precedence over those of the dead worker.
        let shard = &self.shards()[worker];
        work.retain(|work| shard.contains(&work.rows.start));
        for work in &mut work {
            work.op = match self.sent.call_of(work.rows.start) {
                Some(Call::Reset) => Op::Reset,
                Some(Call::Step | Call::Call | Call::Judge) => Op::Step,
                None => return Settled::Never,
            };
        }
        Settled::Left(work)
    }
}
