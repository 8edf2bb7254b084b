//! Rows that are sent and received in parts: any rows, at any time, several sends in flight.
//!
//! [`Pool::sending`] checks rows, [`Sending::send`] gives them to their workers and returns;
//! [`Pool::receive`] hands out the next batch: the first `batch_size` rows that are done, or all
//! rows in flight if these are fewer. [`Pool::receive_some`] hands out a part of a batch. The rows of
//! a batch are in the order in which they were sent, or in the order in which they were done: see
//! [`RecvOrder`].
//!
//! A row is in flight from its send until it is received, and cannot be sent meanwhile.
#![expect(unsafe_code, reason = "accesses mapped memory, see the invariants of the module")]

use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use cartwheel_core::schedule::runs;

use super::in_flight::RecvOrder;
use super::received::Found;
use super::sending::Sending;
use super::waiting::Awaited;
use super::{Pool, Received, ReceivedRows, Waker, Workers};
use crate::call::Call;
use crate::error::Error;
use crate::protocol::QueuedRows;
use crate::wake::{TaskWord, doorbell_disarm};
use crate::worker::{Limit, perform_sent};

impl Pool {
    /// Rows of a batch.
    pub fn batch_size(&self) -> usize {
        self.memory.plan().batch_size
    }

    /// The order in which rows are received that were sent. At first it is the order of the sends if a
    /// batch has room for every row, otherwise the order in which they are done.
    pub fn recv_order(&self) -> RecvOrder {
        self.sent.order
    }

    /// Sets this order for the rows that are sent while none is in flight. Those in flight, and
    /// those that join them, keep theirs.
    pub fn set_recv_order(&mut self, order: RecvOrder) {
        self.sent.order = order;
    }

    /// The rows that are in flight.
    pub fn in_flight(&self) -> Vec<usize> {
        self.sent.rows()
    }

    /// The rows that were sent for a step and are in flight.
    pub fn stepping(&self) -> Vec<usize> {
        self.sent.stepping()
    }

    /// Whether anything is in flight.
    pub fn is_flying(&self) -> bool {
        self.sent.any()
    }

    /// Checks that rows can be sent; `None` means all of them. `call` is [`Call::Step`] or
    /// [`Call::Reset`]. All rows are sent as a task if a batch has room for them: [`Pool::finish`]
    /// then returns them.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], [`Error::WorkerDied`], [`Error::Corrupt`], [`Error::AlreadyPending`],
    /// [`Error::NoSuchRow`], [`Error::NamedTwice`], [`Error::InFlight`], [`Error::Recording`]; for a
    /// step also [`Error::EpisodeOver`], [`Error::NeedsReset`] and [`Error::NeverReset`].
    pub fn sending<'a>(
        &'a mut self,
        call: Call,
        rows: Option<&'a [usize]>,
    ) -> Result<Sending<'a>, Error> {
        let all = self.phases.len();
        let rows = match rows {
            Some(rows) => Cow::Borrowed(rows),
            None if self.batch_size() < all => Cow::Owned((0..all).collect()),
            None => {
                self.check(call)?;
                return Ok(Sending { pool: self, call, rows: None, stored: 0, in_order: false });
            }
        };
        self.check_not_pending()?;
        let highest_phase = self.sent.check(&rows, &self.phases)?;
        self.check_sent(call)?;
        if self.policy.has_external_rewards && call == Call::Step {
            return Err(Error::SteppedTogether);
        }
        if call == Call::Step {
            self.check_rows(highest_phase, rows.iter().copied())?;
        }
        Ok(Sending { pool: self, call, rows: Some(rows), stored: 0, in_order: false })
    }

    /// `in_order`: see [`Sending::in_order`].
    pub(super) fn send(
        &mut self,
        call: Call,
        rows: &[usize],
        flags: u32,
        in_order: bool,
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        self.open_batches(self.sent.count + rows.len())?;
        if !self.sent.any() {
            let is_one_batch = in_order && self.batch_size() == self.phases.len();
            self.sent.is_dealt = is_one_batch || self.sent.order == RecvOrder::Sent;
        }
        self.meter.count_begun();
        self.end_time_between_calls();
        self.sent.woken.fill(false);
        for run in runs(rows) {
            let mut start = run.start;
            while start < run.end {
                let shards = &self.memory.plan().shards;
                let shard = shards.partition_point(|shard| shard.end <= start);
                let end = run.end.min(shards[shard].end);
                let place = self.deal(start..end);
                if !self.is_interrupted(shard) {
                    let queued = QueuedRows { op: call.into(), flags, rows: start..end, place };
                    self.memory.control.queue(shard).push(&queued);
                }
                self.sent.rows[start..end].fill(Some(call));
                if call == Call::Reset {
                    self.sent.reset_flags[start..end].fill(flags);
                }
                self.sent.count += end - start;
                self.sent.steps += if call == Call::Step { end - start } else { 0 };
                self.sent.woken[shard] = true;
                start = end;
            }
        }
        match &mut self.workers {
            Workers::Inline(..) => {}
            Workers::ThreadPool(thread_pool) => thread_pool.begin_sent(rows.len()),
            Workers::Threads | Workers::Processes(_) => {
                let woken = self.sent.woken.iter().enumerate().filter(|(_, woken)| **woken);
                self.memory.publish(woken.map(|(worker, _)| worker), TaskWord::TAKE);
            }
        }
        Ok(())
    }

    /// Deals the next places to rows, and returns the first of them; `None` where workers draw
    /// places.
    fn deal(&mut self, rows: Range<usize>) -> Option<u32> {
        let first = self.sent.given;
        self.sent.given += rows.len();
        let batch = self.sent.batch;
        self.sent.is_dealt.then(|| self.memory.control.batches().deal(batch, first, rows))
    }

    /// Opens batches until they have room for `rows` rows in flight; where there is no slab for one,
    /// none.
    fn open_batches(&mut self, rows: usize) -> Result<(), Error> {
        let open = self.sent.leases.len();
        while self.sent.leases.len() * self.memory.plan().batch_size < self.sent.taken + rows {
            // SAFETY: the lease is handed out when its batch is complete (invariant 3).
            let lease = match unsafe { self.slab_to_fill() } {
                Ok(lease) => lease.expect("checked in `Pool::new`"),
                Err(held) => {
                    self.sent.leases.truncate(open);
                    return Err(held);
                }
            };
            let batch = self.sent.batch + self.sent.leases.len() as u64;
            self.memory.control.batches().open(batch, lease.slab());
            self.sent.leases.push_back(lease);
        }
        Ok(())
    }

    /// Waits for the next batch and hands it out: as many rows as a batch has, or all in flight.
    ///
    /// `interrupted` as in [`Pool::finish`].
    ///
    /// # Errors
    ///
    /// As [`Pool::receive_some`].
    pub fn receive(
        &mut self,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Received, Error> {
        let size = self.batch_size();
        self.receive_some(size, size, timeout, interrupted)
    }

    /// Waits for `min` rows, and hands out those that are done then, at most `max`. Where the
    /// calling thread steps rows too, it first steps what was sent, up to `max`.
    ///
    /// They are the next rows in the pool's [order](Pool::recv_order). They are fewer than `min`
    /// if fewer are in flight, and at the end of a slab: rows that are received together are in one slab, and
    /// each slab has `batch_size` rows.
    ///
    /// `interrupted` as in [`Pool::finish`].
    ///
    /// # Errors
    ///
    /// [`Error::NothingInFlight`]. [`Error::Timeout`] and [`Error::Interrupted`] lose nothing: the
    /// batch can be received later. After [`Error::WorkerDied`] the pool can only be closed, unless
    /// it [can be resumed](Pool::can_resume); after [`Error::Corrupt`] it can only be closed.
    pub fn receive_some(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Received, Error> {
        self.await_rows(min, max, timeout, interrupted)?;
        let mut received = Received::default();
        self.take(&mut received)?;
        Ok(received)
    }

    /// The wait of [`Pool::receive_some`] alone: rows stay in flight until [`Pool::take`] hands them out.
    ///
    /// # Errors
    ///
    /// As [`Pool::receive_some`].
    pub fn await_rows(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error> {
        self.check_usable()?;
        if !self.sent.any() {
            return Err(Error::NothingInFlight);
        }
        let (batch, first) = (self.sent.batch, self.sent.taken);
        let max = max.min(self.sent.count).min(self.batch_size() - first);
        let end = first + min.min(max);
        let limit = timeout.map(Limit::new);
        self.want(end);
        let is_over = |_: &Waker| limit.as_ref().is_some_and(Limit::is_over);
        let stepped = self.step_sent(first..first + max, is_over);
        let count = if stepped >= end - first && stepped > 0 {
            stepped // without the wait, which looks at each place again
        } else {
            self.wait(Awaited::Rows { batch, first, end }, limit, interrupted)?;
            self.memory.control.batches().committed(batch, first..first + max)
        };
        self.found = Some(Found::Rows { batch, first, count });
        Ok(())
    }

    /// Requests a ring when the next batch is filled up to place `end`.
    fn want(&self, end: usize) {
        // A calling thread that steps all rows counts them in turn, and nothing wakes it.
        if !matches!(self.workers, Workers::Inline(..)) {
            doorbell_disarm(&self.memory.doorbell());
            let wanted = u32::try_from(end).expect("a batch has fewer than 2^32 rows");
            self.memory.control.batches().want(self.sent.batch, wanted);
        }
    }

    /// Where the calling thread steps rows too, steps rows that were sent until these places of the next batch
    /// are filled, or it `is_over`. Returns how many of the places are filled, from the first one on; 0 where
    /// only other threads or processes step.
    ///
    /// It steps as many as may be handed out: if it stopped at the least, rows that take next to no time would
    /// come back one by one. However soon it is over, it steps some rows: polling with a zero timeout
    /// eventually finishes.
    fn step_sent(&mut self, places: Range<usize>, is_over: impl Fn(&Waker) -> bool) -> usize {
        let (control, waker, batch) = (&self.memory.control, &*self.waker, self.sent.batch);
        let batches = control.batches();
        match &mut self.workers {
            Workers::Inline(worker, own) => {
                let mut taken = 0;
                while batches.counted(batch) < places.end && !(taken > 0 && is_over(waker)) {
                    match perform_sent(worker, own.as_mut()) {
                        0 => break,
                        rows => taken += rows,
                    }
                }
            }
            Workers::ThreadPool(thread_pool) => {
                let all = Awaited::Rows { batch, first: places.start, end: places.end };
                let enough = |taken| all.is_counted(control) || (taken > 0 && is_over(waker));
                if !enough(0) {
                    thread_pool.help_sent(enough);
                }
            }
            Workers::Threads | Workers::Processes(_) => return 0,
        }
        batches.committed(batch, places)
    }

    /// Waits for a row, for another thread that [wakes](Pool::waker) the pool, or until `timeout`, and
    /// hands out the rows that are done then; `None` if there are none. Unlike [`Pool::receive_some`],
    /// it may be called while nothing is in flight. Wake-ups that came before it returned are used up.
    /// Where the calling thread steps rows too, it first steps what was sent, until it is woken.
    ///
    /// `interrupted` as in [`Pool::finish`].
    ///
    /// # Errors
    ///
    /// As [`Pool::receive_some`], apart from [`Error::NothingInFlight`] and [`Error::Timeout`]. With
    /// [`OnDeath::Defer`](super::OnDeath::Defer), [`Error::WorkerDied`] is reported once, and the rows of
    /// the worker are in flight until it is replaced. Places that it had claimed, and those after them,
    /// are handed out then.
    pub fn receive_ready(
        &mut self,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Received>, Error> {
        self.check_usable()?;
        let (batch, place, any) = (self.sent.batch, self.sent.taken, self.sent.any());
        let end = place + self.sent.count.min(self.batch_size() - place);
        let limit = timeout.map(Limit::new);
        let awaited = if any {
            self.want(place + 1);
            let is_over =
                |waker: &Waker| waker.has_woken() || limit.as_ref().is_some_and(Limit::is_over);
            self.step_sent(place..end, is_over);
            Awaited::Row { batch, place }
        } else {
            doorbell_disarm(&self.memory.doorbell());
            Awaited::Wake
        };
        let waited = self.wait(awaited, limit, interrupted);
        self.waker.take();
        match waited {
            Ok(()) | Err(Error::Timeout { .. }) => {}
            Err(error) => return Err(error),
        }
        let batches = self.memory.control.batches();
        let count = if any { batches.committed(batch, place..end) } else { 0 };
        if count == 0 { Ok(None) } else { self.hand_out(count).map(Some) }
    }

    /// Hands out what the last [`await_call`](Pool::await_call) or [`await_rows`](Pool::await_rows) has found.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`]; afterwards the pool can only be closed.
    ///
    /// # Panics
    ///
    /// When it found nothing, or that was handed out before.
    #[inline]
    pub fn take(&mut self, received: &mut Received) -> Result<(), Error> {
        match self.found.take().expect("a wait has found something") {
            Found::Call(task) => self.take_finished(received, task),
            Found::Rows { batch, first, count } => {
                let next = (self.sent.batch, self.sent.taken);
                assert_eq!(next, (batch, first), "they were not handed out");
                *received = self.hand_out(count)?;
            }
        }
        Ok(())
    }

    /// Hands out the next `count` places of the batch, which are filled. What the places announce
    /// was written by another process, so it is checked.
    fn hand_out(&mut self, count: usize) -> Result<Received, Error> {
        let first = self.sent.taken;
        let ends = first + count == self.batch_size() || count == self.sent.count;
        let lease = if ends { self.sent.leases.pop_front() } else { None };
        let lease = match lease {
            Some(whole) => whole.starting_at(first),
            None => self.sent.leases[0].part(first..first + count),
        };
        let Self { sent, phases, .. } = self;
        sent.row_ids.load(&lease, count);
        let rows: Vec<usize> = sent.row_ids.rows().collect();
        let (mut place, mut wrong, mut resets) = (0, None, Vec::new());
        for run in runs(&rows) {
            wrong = wrong.or(sent.arrived(run.clone(), place, &mut resets));
            let end = place + run.len();
            if wrong.is_none() {
                phases[run].copy_from_slice(&sent.row_ids.phases()[place..end]);
            }
            place = end;
        }
        if let Some(place) = wrong {
            return Err(self.break_for_row(rows[place], place, lease));
        }
        sent.count -= count;
        sent.steps -= count - resets.len();
        let (infos, failed) = (sent.row_ids.infos(), sent.row_ids.failed());
        if let Some((row, bytes)) = self.overlong_infos(&rows, &infos) {
            return Err(self.break_for_infos(row, bytes, lease));
        }
        self.meter.count_batch(count, lease.must_copy());
        self.sent.taken += count;
        if ends {
            (self.sent.batch, self.sent.taken) = (self.sent.batch + 1, 0);
            self.sent.given = self.sent.given.saturating_sub(self.batch_size());
        }
        if !self.sent.any() {
            self.memory.control.batches().skip_to(self.sent.batch);
            self.sent.given = 0;
        }
        Ok(Received { lease: Some(lease), rows: ReceivedRows::Sent(rows), infos, failed, resets })
    }

    /// Copies the `bytes` bytes of infos that a received batch announces at row `row` to `into`.
    ///
    /// # Panics
    ///
    /// When a worker may be writing there: one of the rows to which the infos belong is in flight
    /// again, a call is pending, or the pool is closed or broken. When the row does not exist.
    pub fn load_infos(&self, row: usize, bytes: u32, into: &mut Vec<u8>) {
        let (shard, bytes) = (self.shard_of(row), bytes as usize);
        let rows = self.memory.infos.rows_of(shard, row, bytes);
        assert!(self.is_open() && !self.sent.any_of(rows), "infos are those of rows that arrived");
        // SAFETY: the rows were received, and none of them is in flight, as was just checked
        // (invariant 4).
        unsafe { self.memory.infos.load(shard, Some(row), bytes, into) }
    }

    /// The shard of row `row`.
    pub fn shard_of(&self, row: usize) -> usize {
        self.shards().partition_point(|shard| shard.end <= row)
    }
}
