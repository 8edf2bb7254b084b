//! A worker process in the place of one that died.
//!
//! Where the policy allows it, [`Error::WorkerDied`] leaves what is pending and what is in flight as they
//! are. The caller asks what was [`Pool::lost`], starts a process whose rows know that they lost their
//! environments, and lets the pool [`Pool::resume`]: the pending task, or the rows that the dead worker had
//! not counted as filled, are then the new worker's to finish.
//!
//! A dead process writes nothing any more, so its line of the control words is the pool's until the new one
//! serves. What the dead one had acknowledged or counted stays; the rest is done once more, from the
//! beginning, into the same places. Only a worker that died between the two halves of claiming or counting
//! a place, some nanoseconds each, leaves the pool unable to tell; then it is broken as without the policy.

use std::sync::atomic::Ordering;

use super::broken::Cause;
use super::{OnDeath, Pending, Pool, Workers};
use crate::call::Call;
use crate::error::Error;
use crate::protocol::Work;
use crate::transition::PhaseTag;
use crate::wake::{Command, Futex, Op, publish};
use crate::worker::{ProcessHandle, has_ended};

/// What the rows of a dead worker were doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Of each row, whether its episode was over.
    pub over: Vec<bool>,
    /// Rows that were sent to be reset and are not yet, counted from the worker's first.
    pub resetting: Vec<usize>,
    /// Rows in flight whose results are there, counted from the start of the environments. What the dead
    /// worker tells of them beside the batch is its own, whoever follows it.
    pub filled: Vec<usize>,
}

/// The work of a dead worker that waits for the next.
#[derive(Debug)]
pub(super) struct Interrupted {
    worker: usize,
    work: Vec<Work>,
    /// What the dead worker left in the control words was cleared.
    is_cleared: bool,
}

impl Pool {
    /// Takes note of a death: the pool can be resumed if that is its policy, and is broken otherwise.
    pub(super) fn note_death(&mut self, worker: usize) -> Error {
        if self.work_of(worker).is_some() {
            return self.died(worker); // nobody has followed it yet
        }
        let left = match self.policy.on_death {
            OnDeath::Resume => self.left_behind(worker),
            OnDeath::Break => None,
        };
        match left {
            // Beside that of others whose start was itself interrupted.
            Some(work) => {
                self.interrupted.push(Interrupted { worker, work, is_cleared: false });
            }
            None => self.give_up(worker),
        }
        self.died(worker)
    }

    /// Whether a worker died whom another one can follow.
    pub fn can_resume(&self) -> bool {
        !self.interrupted.is_empty()
    }

    /// What waits for the one that follows a dead worker.
    fn work_of(&self, worker: usize) -> Option<&[Work]> {
        let mut interrupted = self.interrupted.iter();
        interrupted.find(|interrupted| interrupted.worker == worker).map(|found| &*found.work)
    }

    /// What the dead worker's rows lost. Its queue and its command word are empty then, and another process
    /// may [serve](crate::worker::serve) it.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyServed`] when who serves the worker has not ended, or no death of it was noticed: a
    /// process that was started in its place and given up has to end first.
    pub fn lost(&mut self, worker: usize) -> Result<Lost, Error> {
        self.clear(worker)?;
        let rows = self.shards()[worker].clone();
        let work = self.work_of(worker).unwrap_or_default();
        let is_filled = |row: usize| {
            self.sent.any_of(row..row + 1) && !work.iter().any(|work| work.rows.contains(&row))
        };
        let is_over = |row: usize| {
            // What was filled and is not yet received, only the dead worker knew; what is to be done once
            // more is as it was before.
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

    /// Clears what a dead worker left, and frees its place.
    fn clear(&mut self, worker: usize) -> Result<(), Error> {
        let mut interrupted = self.interrupted.iter_mut();
        let interrupted = interrupted.find(|interrupted| interrupted.worker == worker);
        let handle = match &self.workers {
            Workers::Processes(handles) => handles.get(worker),
            Workers::Inline(_) | Workers::Threads | Workers::Crew(_) => None,
        };
        // Who took the claim need not be the process that the pool was told of.
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
    /// When nobody asked what was [lost](Pool::lost), so that the new process may have found what the dead one
    /// left.
    pub fn resume(&mut self, worker: usize, handle: ProcessHandle) {
        let mut dead = self.interrupted.iter();
        let Some(at) = dead.position(|interrupted| interrupted.worker == worker) else { return };
        let Interrupted { work, is_cleared, .. } = self.interrupted.remove(at);
        assert!(is_cleared, "a worker is followed after it was asked what was lost");
        if let Workers::Processes(handles) = &mut self.workers {
            handles[worker] = handle;
        }
        self.meter.count_restart(worker);
        let slot = self.memory.control.slot(worker);
        let command = if let Some(Pending { command, .. }) = &self.pending {
            // What was told beside the operation concerned messages to the dead one.
            slot.flags.store(0, Ordering::Relaxed);
            *command
        } else {
            let queue = self.memory.control.queue(worker);
            for work in &work {
                queue.push(work);
            }
            self.task = Command::next(self.task);
            Command { op: Op::Take, task: self.task }
        };
        publish(&Futex::new(&slot.word, self.memory.scope()), command);
    }

    /// Ends the process of a worker, which is dead then as others that die. Threads cannot be ended.
    pub fn kill(&self, worker: usize) {
        if let Workers::Processes(handles) = &self.workers {
            handles[worker].kill();
        }
    }

    /// Breaks the pool: nobody follows the dead worker, and what it was filling is nobody's any more.
    pub fn give_up(&mut self, worker: usize) {
        self.break_for(Cause::Died(worker), None);
    }

    /// What the dead worker had not counted of the rows in flight; `None` when that cannot be told.
    fn left_behind(&self, worker: usize) -> Option<Vec<Work>> {
        if self.pending.is_some() {
            return Some(Vec::new());
        }
        let shard = &self.shards()[worker];
        let mut work = self.memory.control.queue(worker).left_behind()?;
        // The pool's own records are believed before those of somebody who died.
        work.retain(|work| shard.contains(&work.rows.start));
        for work in &mut work {
            work.op = match self.sent.call_of(work.rows.start)? {
                Call::Reset => Op::Reset,
                Call::Step | Call::Call => Op::Step,
            };
        }
        Some(work)
    }
}
