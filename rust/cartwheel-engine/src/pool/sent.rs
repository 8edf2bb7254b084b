//! Rows that are sent and received in parts: any rows, at any time, several sends in flight.
//!
//! [`Pool::sending`] checks rows, [`Sending::send`] gives them to their workers and returns;
//! [`Pool::receive`] hands out the next batch: the first `batch_size` rows that are done, or all
//! rows in flight if these are fewer. In a pool whose batches have room for every row, the rows of
//! a batch are in the order in which they were sent; in any other pool in the order in which they
//! were done.
//!
//! A row is in flight from its send to its receipt, and cannot be sent meanwhile.
#![expect(unsafe_code, reason = "accesses mapped memory, see the invariants of the module")]

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use super::sending::{Sending, runs};
use super::waiting::Awaited;
use super::{Pool, Received, Workers};
use crate::call::Call;
use crate::error::Error;
use crate::memory::{Lease, Plan};
use crate::protocol::{Receipts, Work};
use crate::wake::{Command, Futex, Op, doorbell_disarm};
use crate::worker::{Limit, perform_sent};

/// The rows in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    /// For each row, what it was sent for.
    rows: Vec<Option<Call>>,
    count: usize,
    /// Number of rows in flight that step.
    pub(super) steps: usize,
    /// Number of the batch that is received next.
    batch: u64,
    /// The slabs of the open batches, starting with that batch.
    leases: VecDeque<Lease>,
    /// Number of places of the only batch that were dealt.
    given: usize,
    /// For each row, the number of the last request that named it.
    named: Vec<u64>,
    requests: u64,
    /// Whether the last request concerns each worker.
    woken: Vec<bool>,
    receipts: Receipts,
}

impl InFlight {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            rows: vec![None; plan.rows()],
            count: 0,
            steps: 0,
            batch: 0,
            leases: VecDeque::with_capacity(plan.open_batches()),
            given: 0,
            named: vec![0; plan.rows()],
            requests: 0,
            woken: vec![false; plan.shards.len()],
            receipts: Receipts::default(),
        }
    }

    /// The rows in flight that step.
    pub(super) fn stepping(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&row| self.rows[row] == Some(Call::Step)).collect()
    }

    /// Whether any row is in flight.
    pub(super) fn any(&self) -> bool {
        self.count > 0
    }

    /// The slab of each open batch, with the number of the batch.
    pub(super) fn leases(&self) -> impl Iterator<Item = (u64, &Lease)> {
        (self.batch..).zip(&self.leases)
    }

    /// Number of open batches.
    pub(super) fn open_batches(&self) -> u64 {
        self.leases.len() as u64
    }

    /// Whether any of these rows is in flight.
    pub(super) fn any_of(&self, rows: Range<usize>) -> bool {
        self.rows[rows].iter().any(Option::is_some)
    }

    /// What a row was sent for.
    pub(super) fn call_of(&self, row: usize) -> Option<Call> {
        self.rows.get(row).copied().flatten()
    }

    /// The rows in flight.
    pub(super) fn rows(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&row| self.rows[row].is_some()).collect()
    }

    /// Checks that rows can be sent: they exist, are named once and are not in flight.
    fn check(&mut self, rows: &[usize]) -> Result<(), Error> {
        self.requests += 1;
        let request = self.requests;
        let mut wrong = None;
        for &row in rows {
            let Some(named) = self.named.get_mut(row) else {
                let last = self.rows.len() - 1;
                return Err(Error::BadRows(format!(
                    "there is no row {row}, only rows 0 to {last}"
                )));
            };
            if *named == request || self.rows[row].is_some() {
                wrong = wrong.or(Some(row));
            }
            *named = request;
        }
        let Some(row) = wrong else { return Ok(()) };
        let flies = |row: &usize| self.rows[*row].is_some();
        let flying: Vec<usize> = rows.iter().copied().filter(flies).collect();
        Err(if flying.is_empty() {
            Error::BadRows(format!("row {row} is named twice"))
        } else {
            Error::InFlight { rows: flying }
        })
    }
}

impl Pool {
    /// Rows of a batch.
    pub fn batch_size(&self) -> usize {
        self.memory.plan().batch_size
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

    /// Checks that rows can be sent. `call` is [`Call::Step`] or [`Call::Reset`].
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], [`Error::WorkerDied`], [`Error::Corrupt`], [`Error::AlreadyPending`],
    /// [`Error::BadRows`], [`Error::InFlight`], [`Error::Recording`]; for a step also
    /// [`Error::EpisodeOver`], [`Error::NeedsReset`] and [`Error::NeverReset`].
    pub fn sending<'a>(&'a mut self, call: Call, rows: &'a [usize]) -> Result<Sending<'a>, Error> {
        self.check_usable()?;
        if let Some(pending) = self.pending() {
            let rows = self.unanswered();
            return Err(Error::AlreadyPending { pending, rows });
        }
        self.sent.check(rows)?;
        self.check_sent(call)?;
        if self.policy.judges && call == Call::Step {
            return Err(Error::JudgedTogether);
        }
        if call == Call::Step {
            self.check_rows(rows.iter().copied())?;
        }
        Ok(Sending { pool: self, call, rows })
    }

    pub(super) fn send(&mut self, call: Call, rows: &[usize], flags: u32) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        self.open_batches(self.sent.count + rows.len())?;
        let op = if call == Call::Reset { Op::Reset } else { Op::Step };
        self.sent.woken.fill(false);
        for run in runs(rows) {
            let mut start = run.start;
            while start < run.end {
                let shards = &self.memory.plan().shards;
                let shard = shards.partition_point(|shard| shard.end <= start);
                let end = run.end.min(shards[shard].end);
                let place = self.deal(start..end);
                if !self.is_interrupted(shard) {
                    let work = Work { op, flags, rows: start..end, place };
                    self.memory.control.queue(shard).push(&work);
                }
                self.sent.rows[start..end].fill(Some(call));
                self.sent.count += end - start;
                self.sent.steps += if call == Call::Step { end - start } else { 0 };
                self.sent.woken[shard] = true;
                start = end;
            }
        }
        match &mut self.workers {
            Workers::Inline(..) => {}
            Workers::Crew(crew) => crew.begin_sent(rows.len()),
            Workers::Threads | Workers::Processes(_) => {
                let woken = self.sent.woken.iter().enumerate().filter(|(_, woken)| **woken);
                self.memory.publish(woken.map(|(worker, _)| worker), Command::TAKE);
            }
        }
        Ok(())
    }

    /// Deals the next places of the only batch to rows, and returns the first of them; `None` where
    /// workers draw places.
    fn deal(&mut self, rows: Range<usize>) -> Option<u32> {
        let given = self.sent.given;
        self.sent.given += rows.len();
        (self.batch_size() == self.phases.len()).then(|| {
            self.memory.control.batches().deal(self.sent.batch, given, rows);
            u32::try_from(given).expect("a place")
        })
    }

    /// Opens batches until they have room for `rows` rows; where there is no slab for one, none.
    fn open_batches(&mut self, rows: usize) -> Result<(), Error> {
        let backing = self.memory.slab_backing().expect("checked in `Pool::new`");
        let open = self.sent.leases.len();
        while self.sent.leases.len() * self.memory.plan().batch_size < rows {
            // SAFETY: the lease is handed out when its batch is complete (invariant 3).
            let lease = match unsafe { self.slabs.acquire(backing) } {
                Ok(lease) => lease,
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

    /// Waits for the next batch and hands it out.
    ///
    /// `interrupted` as in [`Pool::finish`].
    ///
    /// # Errors
    ///
    /// [`Error::NothingInFlight`]. [`Error::Timeout`] and [`Error::Interrupted`] lose nothing: the
    /// batch can be received later. After [`Error::WorkerDied`] the pool can only be closed, unless
    /// it [can be resumed](Pool::can_resume); after [`Error::Corrupt`] it can only be closed.
    ///
    /// # Panics
    ///
    /// Never: a batch has fewer than 2^32 rows.
    pub fn receive(
        &mut self,
        timeout: Option<Duration>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Received, Error> {
        self.check_usable()?;
        if !self.sent.any() {
            return Err(Error::NothingInFlight);
        }
        let rows = self.batch_size().min(self.sent.count);
        let wanted = u32::try_from(rows).expect("a batch has fewer than 2^32 rows");
        let (control, batch) = (&self.memory.control, self.sent.batch);
        let doorbell = &control.header().doorbell;
        doorbell_disarm(&Futex::new(doorbell, self.memory.scope()));
        control.batches().want(batch, wanted);
        let limit = timeout.map(Limit::new);
        // Whether the calling thread, which has itself stepped `taken` rows, should stop. However
        // short the limit is, it steps some rows: polling with a zero timeout eventually finishes.
        let enough = |taken: usize| {
            control.batches().counted(batch) >= rows
                || (taken > 0 && limit.as_ref().is_some_and(Limit::is_over))
        };
        match &mut self.workers {
            Workers::Inline(worker, own) => {
                let mut taken = 0;
                while !enough(taken) {
                    match perform_sent(worker, own.as_mut()) {
                        0 => break,
                        rows => taken += rows,
                    }
                }
            }
            Workers::Crew(crew) if !enough(0) => crew.help_sent(enough),
            Workers::Crew(_) | Workers::Threads | Workers::Processes(_) => {}
        }
        self.wait(Awaited::Rows(batch, rows), limit, interrupted)?;
        self.hand_out(rows)
    }

    /// Hands out the next batch, whose first `count` places are filled. What the places announce
    /// was written by another process, so it is checked.
    fn hand_out(&mut self, count: usize) -> Result<Received, Error> {
        let lease = self.sent.leases.pop_front().expect("an open batch for every row in flight");
        let Self { sent, phases, .. } = self;
        sent.receipts.load(&lease, count);
        let (mut steps, mut wrong) = (0, None);
        let receipts = sent.receipts.rows().zip(sent.receipts.phases());
        for (place, (row, &phase)) in receipts.enumerate() {
            if let Some(call) = sent.rows.get_mut(row).and_then(Option::take) {
                steps += usize::from(call == Call::Step);
                phases[row] = phase;
            } else {
                wrong = wrong.or(Some((place, row)));
            }
        }
        let rows: Vec<usize> = sent.receipts.rows().collect();
        if let Some((place, row)) = wrong {
            return Err(self.break_for_row(row, place, lease));
        }
        sent.count -= count;
        sent.steps -= steps;
        let (infos, failed) = (sent.receipts.infos(), sent.receipts.failed());
        if let Some((row, bytes)) = self.overlong_infos(&rows, &infos) {
            return Err(self.break_for_infos(row, bytes, lease));
        }
        self.meter.count_batch(count, lease.must_copy());
        self.sent.batch += 1;
        if !self.sent.any() {
            self.memory.control.batches().skip_to(self.sent.batch);
            self.sent.given = 0;
        }
        Ok(Received { lease, rows, infos, failed })
    }

    /// Copies the `bytes` bytes of infos that begin with received row `row` to `into`.
    ///
    /// # Panics
    ///
    /// When a worker may be writing there: one of the rows to which the infos belong is in flight
    /// again, a call is pending, or the pool is closed or broken. When the row does not exist.
    pub fn load_received_infos(&self, row: usize, bytes: u32, into: &mut Vec<u8>) {
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
