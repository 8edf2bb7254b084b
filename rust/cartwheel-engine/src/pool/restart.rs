//! Replacing a worker process that died.
//!
//! Where the policy allows it, [`Error::WorkerDied`] leaves pending tasks and rows in flight as
//! they are. The caller asks what the worker [lost](Pool::lost), starts a process whose rows know
//! that they lost their environments, and calls [`Pool::resume`]. The new worker then finishes the
//! pending task, or the rows that the dead worker had not committed.
//!
//! A dead process writes nothing any more, so the pool may change its line of the control words
//! until the new process serves. What the dead worker had acknowledged or committed stays; the rest
//! is repeated from the beginning, into the places that it had claimed. The words of the places say
//! which row that is for, at any moment and whichever other workers died: see
//! `protocol/place_state.rs`.

use std::sync::atomic::Ordering;

use super::broken::Cause;
use super::{OnDeath, Pending, Pool, Workers};
use crate::call::Call;
use crate::error::Error;
use crate::protocol::QueuedRows;
use crate::transition::PhaseTag;
use crate::wake::{Op, TaskWord};
use crate::worker::ProcessHandle;

/// The work of a dead worker's rows.
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

/// A dead worker that waits for its successor.
#[derive(Debug)]
pub(super) struct Interrupted {
    worker: usize,
    /// Whether the words that the dead worker left were cleared.
    is_cleared: bool,
}

impl Interrupted {
    /// The workers whose processes are started later.
    pub(super) fn absent(workers: &Workers) -> Vec<Self> {
        let Workers::Processes(handles) = workers else { return Vec::new() };
        let absent = (0..handles.len()).filter(|&worker| !handles[worker].was_started());
        absent.map(|worker| Self { worker, is_cleared: false }).collect()
    }
}

/// A row of a worker that is in flight.
#[derive(Debug)]
struct Flying {
    row: usize,
    call: Call,
    /// Its place, counted through the ring of open batches; `None` if it has none.
    place: Option<usize>,
    /// The phase with which it was written; `None` if it was not.
    phase: Option<u8>,
}

impl Pool {
    /// Records a death: the pool can be resumed if that is its policy, and is broken otherwise.
    pub(super) fn note_death(&mut self, worker: usize) -> Error {
        if self.policy.on_death == OnDeath::Break && !self.is_hung(worker) {
            self.give_up(worker);
        } else if !self.is_interrupted(worker) {
            // Other workers may wait too, whose restart was itself interrupted.
            self.interrupted.push(Interrupted { worker, is_cleared: false });
        }
        self.died(worker)
    }

    /// Whether a worker died that can be replaced.
    pub fn can_resume(&self) -> bool {
        !self.interrupted.is_empty()
    }

    /// The workers that died, or were not started, and were not replaced.
    pub fn dead_workers(&self) -> Vec<usize> {
        self.interrupted.iter().map(|interrupted| interrupted.worker).collect()
    }

    /// Whether a worker died and was not replaced. Its successor gets what is in flight then.
    pub(super) fn is_interrupted(&self, worker: usize) -> bool {
        self.interrupted.iter().any(|interrupted| interrupted.worker == worker)
    }

    /// The rows of a dead worker that are in flight, and what became of them.
    fn flying(&self, worker: usize) -> Vec<Flying> {
        let rows = self.shards()[worker].clone();
        let flying = rows.clone().map(|row| {
            self.sent.call_of(row).map(|call| Flying { row, call, place: None, phase: None })
        });
        let mut flying: Vec<_> = flying.collect();
        for (batch, from, lease) in self.sent.leases() {
            for (place, holder) in self.memory.control.batches().holders(batch, from) {
                // Only the worker's own rows count, whatever a dead worker wrote.
                let own = holder.row.checked_sub(rows.start).and_then(|row| flying.get_mut(row));
                let Some(Some(own)) = own else { continue };
                own.place = Some(place);
                own.phase = holder.is_committed.then(|| {
                    let mut phase = [0];
                    let offset = lease.layout().phases_offset() + place % self.batch_size();
                    lease.read(offset, &mut phase); // a place that is committed is not written
                    phase[0]
                });
            }
        }
        flying.into_iter().flatten().collect()
    }

    /// Takes the lost work of the dead worker's rows. Afterwards its queue and its task word are
    /// empty, and another process may [serve](crate::worker::serve) it.
    ///
    /// A replacement process that was started and abandoned has to end first, as
    /// [`WorkerToken::attach`](crate::protocol::WorkerToken::attach) demands.
    ///
    /// # Panics
    ///
    /// When no death of the worker was noticed, or it was replaced.
    pub fn lost(&mut self, worker: usize) -> Lost {
        let mut dead = self.interrupted.iter_mut();
        let dead = dead.find(|dead| dead.worker == worker).expect("a worker that died");
        dead.is_cleared = true;
        self.memory.control.slot(worker).forget();
        let rows = self.shards()[worker].clone();
        let mut lost = Lost { over: Vec::new(), resetting: Vec::new(), filled: Vec::new() };
        let mut phases = self.phases[rows.clone()].to_vec();
        for Flying { row, call, phase, .. } in self.flying(worker) {
            if let Some(phase) = phase {
                // Only its place knows the phase of a row that is not yet received.
                phases[row - rows.start] = phase;
                lost.filled.push(row);
            } else if call == Call::Reset {
                lost.resetting.push(row - rows.start);
            }
        }
        lost.over = phases.into_iter().map(|phase| phase == PhaseTag::Over as u8).collect();
        lost
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
        let Interrupted { is_cleared, .. } = self.interrupted.remove(at);
        assert!(is_cleared, "a worker is followed after it was asked what was lost");
        if let Workers::Processes(handles) = &mut self.workers {
            handles[worker] = handle;
        }
        self.meter.count_restart(worker);
        self.watchdog.replaced(worker);
        let slot = self.memory.control.slot(worker);
        let task_word = if let Some(Pending { task_word, .. }) = &self.pending {
            // The flags of a step or a control call concerned messages to the dead process.
            if task_word.op != Op::Reset {
                slot.flags.store(0, Ordering::Relaxed);
            }
            *task_word
        } else {
            let queue = self.memory.control.queue(worker);
            for Flying { row, call, place, .. } in
                self.flying(worker).into_iter().filter(|flying| flying.phase.is_none())
            {
                let flags = if call == Call::Reset { self.sent.reset_flags[row] } else { 0 }; // as above
                let place = place.map(|place| u32::try_from(place).expect("a place"));
                queue.push(&QueuedRows { op: call.into(), flags, rows: row..row + 1, place });
            }
            TaskWord::TAKE
        };
        self.memory.publish([worker], task_word);
    }

    /// Breaks the pool: the dead worker is not replaced, and the batch that it was filling is never
    /// handed out.
    pub fn give_up(&mut self, worker: usize) {
        self.break_for(Cause::Died(worker), None);
    }
}
