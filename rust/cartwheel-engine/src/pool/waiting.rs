//! Waiting for workers: for their acknowledgements, their death and their end.
//!
//! A wait consists of slices of 1 to 50 ms. At the end of a slice the pool checks the workers'
//! pidfds, so a death is noticed within 50 ms, and asks its caller whether to continue, so Ctrl-C
//! works. A slice may take several sleeps: a ring or a handled signal ends a sleep, not the slice.
//!
//! A pool that receives rows in parts may never sleep: rows of living workers keep arriving, and a
//! dead worker's rows are not missed. So receiving checks the pidfds too, when the last check is 50
//! ms ago.
#![expect(unsafe_code, reason = "makes mapped memory private, see the invariants of the module")]

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{OnDeath, Pool, Workers};
use crate::error::Error;
use crate::memory::Lease;
use crate::platform::process_id;
use crate::protocol::Control;
use crate::wake::{Op, Parked, TaskWord, doorbell_disarm, has_acknowledged, park};
use crate::worker::{Limit, close};

/// First and longest time between two checks of the workers' health and the caller's interrupts.
const FIRST_SLICE: Duration = Duration::from_millis(1);
const LAST_SLICE: Duration = Duration::from_millis(50);

/// The event that a pool waits for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Awaited {
    /// Every worker has acknowledged this task.
    Task(u32),
    /// The rows of this batch from place `first` to before place `end` have arrived; those before
    /// `first` were handed out.
    Rows { batch: u64, first: usize, end: usize },
    /// The row of this place of this batch has arrived, or another thread [wakes](super::Waker) the pool.
    Row { batch: u64, place: usize },
    /// Another thread wakes the pool.
    Wake,
}

impl Awaited {
    /// Whether it is there, as far as workers have counted.
    pub(super) fn is_counted(self, control: &Control) -> bool {
        match self {
            Self::Task(task) => waiting(control, task).next().is_none(),
            Self::Rows { batch, end, .. } => {
                control.batches().counted(batch) >= end && self.is_complete(control)
            }
            Self::Row { .. } | Self::Wake => self.is_complete(control),
        }
    }

    /// Whether it is there, though a worker may have died before it counted its rows.
    fn is_complete(self, control: &Control) -> bool {
        match self {
            Self::Task(_) => self.is_counted(control),
            Self::Rows { batch, first, end } => control.batches().arrived(batch, first..end),
            Self::Row { batch, place } => control.batches().arrived(batch, place..place + 1),
            Self::Wake => false,
        }
    }

    /// Whether a wake-up by another thread ends the wait.
    fn heeds_wakes(self) -> bool {
        matches!(self, Self::Row { .. } | Self::Wake)
    }
}

/// The last check of the worker processes' health.
#[derive(Debug)]
pub(super) struct Look {
    at: Instant,
    /// A call that had its rows found a dead worker: batches before this number were complete by
    /// then.
    whole_before: Option<u64>,
}

impl Look {
    pub(super) fn now() -> Self {
        Self { at: Instant::now(), whole_before: None }
    }
}

/// The time between two checks, measured from the previous check: signals that interrupt every
/// sleep must not delay the next check.
#[derive(Debug)]
struct Slice {
    began: Instant,
    length: Duration,
}

impl Slice {
    /// The first slice of a wait.
    fn first(now: Instant) -> Self {
        Self { began: now, length: FIRST_SLICE }
    }

    /// The rest of the slice.
    fn left(&self, now: Instant) -> Duration {
        self.length.saturating_sub(now.saturating_duration_since(self.began))
    }

    /// The slice after this one, which begins now.
    fn next(&self, now: Instant) -> Self {
        Self { began: now, length: (self.length * 2).min(LAST_SLICE) }
    }
}

/// Workers that have not acknowledged `task`.
fn waiting(control: &Control, task: u32) -> impl Iterator<Item = usize> + '_ {
    (0..control.workers())
        .filter(move |&worker| !has_acknowledged(&control.slot(worker).done, task))
}

impl Pool {
    /// The caller gives work to workers, which ends the time between two calls.
    pub(super) fn end_time_between_calls(&mut self) {
        if let Some(began) = self.call_ended.take() {
            self.memory.control.header().caller.set_time_between_calls(began.elapsed());
        }
    }

    /// Waits for acknowledgements or rows; then the time between two calls begins.
    pub(super) fn wait(
        &mut self,
        awaited: Awaited,
        limit: Option<Limit>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error> {
        let outcome = if awaited.is_counted(&self.memory.control) {
            Ok(())
        } else {
            let began = Instant::now();
            self.memory.control.header().caller.set_waits(true);
            let outcome = self.wait_for(awaited, limit, interrupted);
            self.memory.control.header().caller.set_waits(false);
            self.meter.count_wait(began.elapsed());
            outcome
        };
        // Not for a thread pool: two more looks at the clock would be a tenth of its cheapest steps.
        if matches!(self.workers, Workers::Threads | Workers::Processes(_)) {
            self.call_ended = Some(Instant::now());
        }
        outcome?;
        match awaited {
            Awaited::Rows { batch, .. } | Awaited::Row { batch, .. } if self.is_look_due() => {
                let dead = self.dead_after_batch(awaited, batch);
                dead.map_or(Ok(()), |dead| Err(self.note_death(dead)))
            }
            _ => Ok(()), // all workers have acknowledged the task; those stepped here cannot die
        }
    }

    /// Whether a call that has its rows should check the health of worker processes.
    fn is_look_due(&self) -> bool {
        matches!(self.workers, Workers::Processes(_))
            && (self.look.whole_before.is_some() || self.look.at.elapsed() >= LAST_SLICE)
    }

    /// Checks the health of workers although batch number `batch` is complete. Returns a worker that
    /// died, after the rows were handed out that were complete when its death was noticed.
    fn dead_after_batch(&mut self, awaited: Awaited, batch: u64) -> Option<usize> {
        let Some(dead) = self.dead(awaited) else {
            self.look.whole_before = None;
            return None;
        };
        let (size, batches) = (self.batch_size(), self.memory.control.batches());
        let is_whole = |batch: &u64| batches.arrived(*batch, 0..size);
        let open = batch + 1..batch + self.sent.open_batches();
        let not_whole = open.clone().find(|batch| !is_whole(batch)).unwrap_or(open.end);
        (batch >= *self.look.whole_before.get_or_insert(not_whole)).then_some(dead)
    }

    /// A worker that died and owes rows or an acknowledgement.
    fn dead(&mut self, awaited: Awaited) -> Option<usize> {
        self.look.at = Instant::now();
        let owing = self.owing(awaited);
        self.kill_hung(&owing);
        let is_known =
            |worker| self.policy.on_death == OnDeath::Defer && self.is_interrupted(worker);
        owing.into_iter().find(|&worker| !self.is_alive(worker) && !is_known(worker))
    }

    fn wait_for(
        &mut self,
        awaited: Awaited,
        limit: Option<Limit>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error> {
        let control = self.memory.control.clone();
        let waker = awaited.heeds_wakes().then(|| Arc::clone(&self.waker));
        let is_woken = || waker.as_ref().is_some_and(|waker| waker.has_woken());
        let ready = || awaited.is_complete(&control) || is_woken();
        let answered = match limit {
            Some(limit) if limit.is_over() => ready(),
            _ => self.spin_policy.wait(None, || awaited.is_counted(&control) || is_woken()),
        };
        if answered {
            return Ok(());
        }
        let began = Instant::now();
        let mut slice = Slice::first(began);
        loop {
            let doorbell = self.memory.doorbell();
            let left = slice.left(Instant::now());
            if park(&doorbell, limit.map_or(left, |limit| limit.left().min(left))) == Parked::Ready
            {
                doorbell_disarm(&doorbell);
            }
            if ready() {
                return Ok(());
            }
            let now = Instant::now();
            if !slice.left(now).is_zero() && !limit.is_some_and(|limit| limit.is_over()) {
                continue; // woken early: no health check is due yet
            }
            // It may have acknowledged and then ended between the two checks.
            let dead = self.dead(awaited);
            if let Some(worker) = dead.filter(|dead| !ready() && self.owing(awaited).contains(dead))
            {
                return Err(self.note_death(worker));
            }
            if interrupted() {
                return Err(Error::Interrupted);
            }
            let waited = began.elapsed();
            let over = limit.filter(Limit::is_over);
            if over.is_some() || self.reminder.is_some_and(|reminder| waited >= reminder) {
                let rows = self.owed(awaited);
                if ready() {
                    return Ok(()); // since the last look: `rows` may be empty
                }
                return Err(match over {
                    Some(limit) => Error::Timeout { timeout: limit.timeout(), rows },
                    None => Error::StillWaiting { waited, rows },
                });
            }
            slice = slice.next(now);
        }
    }

    /// Workers that owe rows or an acknowledgement.
    fn owing(&self, awaited: Awaited) -> Vec<usize> {
        match awaited {
            Awaited::Task(task) => waiting(&self.memory.control, task).collect(),
            Awaited::Rows { .. } | Awaited::Row { .. } => self.owing_rows(),
            Awaited::Wake => Vec::new(),
        }
    }

    /// Workers that owe sent rows.
    pub(super) fn owing_rows(&self) -> Vec<usize> {
        let shards = self.shards().iter().enumerate();
        let owing = shards.filter(|(_, rows)| self.sent.any_of((*rows).clone()));
        owing.map(|(worker, _)| worker).collect()
    }

    /// The rows that have not answered the pending call.
    pub(super) fn unanswered(&self) -> Vec<Range<usize>> {
        let pending = self.pending.as_ref();
        pending.map_or_else(Vec::new, |pending| self.owed(Awaited::Task(pending.task_word.task)))
    }

    /// The rows that have not answered: all rows of a worker that owes an acknowledgement, or each sent
    /// row that is not done.
    fn owed(&self, awaited: Awaited) -> Vec<Range<usize>> {
        match awaited {
            Awaited::Task(_) => {
                let owing = self.owing(awaited).into_iter();
                owing.map(|worker| self.shards()[worker].clone()).collect()
            }
            Awaited::Rows { .. } | Awaited::Row { .. } | Awaited::Wake => self.undone(),
        }
    }

    /// The rows in flight that have no committed place: those that have one only wait to be received.
    fn undone(&self) -> Vec<Range<usize>> {
        let mut is_done = vec![false; self.sent.rows.len()];
        let batches = self.memory.control.batches();
        for (batch, from, lease) in self.sent.leases() {
            let places = from..self.batch_size();
            for place in places.filter(|&place| batches.arrived(batch, place..place + 1)) {
                let mut row = [0; size_of::<u32>()];
                let offset = lease.layout().row_numbers_offset() + place * row.len();
                lease.read(offset, &mut row); // a place that is committed is not written
                // Receiving it checks the number, which another process wrote; here it is only a name.
                if let Some(is_done) = is_done.get_mut(u32::from_ne_bytes(row) as usize) {
                    *is_done = true;
                }
            }
        }
        let rows = self.sent.rows().into_iter().filter(|&row| !is_done[row]);
        rows.map(|row| row..row + 1).collect()
    }

    pub(super) fn is_alive(&self, worker: usize) -> bool {
        match &self.workers {
            Workers::Processes(handles) => handles[worker].is_alive(),
            Workers::Inline(..) | Workers::Threads | Workers::ThreadPool(_) => true,
        }
    }

    pub(super) fn died(&self, worker: usize) -> Error {
        let pid = match &self.workers {
            Workers::Processes(handles) => handles[worker].pid(),
            Workers::Inline(..) | Workers::Threads | Workers::ThreadPool(_) => self.owner,
        };
        Error::WorkerDied { worker, pid, rows: self.shards()[worker].clone() }
    }

    /// Ends the workers: asks them to close, waits for `grace`, and kills the processes that are
    /// left.
    ///
    /// Idempotent, bounded, and never an error. Returns the workers that did not end by themselves;
    /// a thread among them continues until its environment returns, and keeps its memory.
    pub fn close(&mut self, grace: Duration) -> Vec<usize> {
        if std::mem::replace(&mut self.closed, true) || self.owner != process_id() {
            return Vec::new();
        }
        drop(self.parked.take().map(Lease::unpark));
        self.slabs.close(); // before what workers may still be filling is free
        self.pending = None; // a slab that is still being filled is free now, but never acquired
        self.task = TaskWord::next(self.task);
        let task_word = TaskWord { op: Op::Close, task: self.task };
        match &mut self.workers {
            Workers::Inline(_, own) => {
                close(own.as_mut());
                return Vec::new();
            }
            Workers::ThreadPool(thread_pool) => return thread_pool.close(task_word.task, grace),
            Workers::Threads | Workers::Processes(_) => {}
        }
        self.memory.publish(0..self.memory.control.workers(), task_word);
        let limit = Limit::new(grace);
        if let Workers::Processes(handles) = &self.workers {
            let late: Vec<_> =
                (0..handles.len()).filter(|&worker| !handles[worker].wait(limit.left())).collect();
            for &worker in &late {
                handles[worker].kill();
            }
            if let Some(sharing) = self.memory.sharing() {
                // SAFETY: every worker process has ended or was just killed (invariant 5).
                unsafe { sharing.make_private_at_the_end() };
            }
            return late;
        }
        let doorbell = self.memory.doorbell();
        loop {
            let late: Vec<_> = waiting(&self.memory.control, task_word.task).collect();
            if late.is_empty() || limit.is_over() {
                return late;
            }
            doorbell_disarm(&doorbell);
            park(&doorbell, limit.left().min(FIRST_SLICE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_interrupt_every_sleep_delay_no_check() {
        let signals = Duration::from_micros(700); // from one to the next: less than the first slice
        let mut now = Instant::now();
        let mut slice = Slice::first(now);
        for expected in [1, 2, 4, 8, 16, 32, 50, 50].map(Duration::from_millis) {
            let looked = now;
            while !slice.left(now).is_zero() {
                now += slice.left(now).min(signals);
                assert!(now - looked <= expected, "no check after {:?}", now - looked);
            }
            assert_eq!(now - looked, expected);
            slice = slice.next(now);
        }
    }
}
