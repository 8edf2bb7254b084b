//! The rows in flight: what each of them was sent for, and the slabs of the open batches.

use std::collections::VecDeque;
use std::ops::{BitAnd, BitOr, Range};

use cartwheel_core::schedule::runs;

use super::check::highest;
use crate::call::Call;
use crate::error::Error;
use crate::memory::{Lease, Plan};
use crate::protocol::RowIds;

/// The order in which rows are received that were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecvOrder {
    /// The order of the sends: the pool deals places to rows.
    Sent,
    /// The order in which they are done: workers draw places.
    Done,
}

/// The rows in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    /// For each row, what it was sent for.
    pub(super) rows: Vec<Option<Call>>,
    /// For each row, the flags with which it was last sent for a reset.
    pub(super) reset_flags: Vec<u32>,
    pub(super) count: usize,
    /// Number of rows in flight that step.
    pub(super) steps: usize,
    /// The order for rows that are sent while none is in flight.
    pub(super) order: RecvOrder,
    /// Whether places were dealt to the rows in flight, in the order of their sends.
    pub(super) is_dealt: bool,
    /// Number of the batch that is received next.
    pub(super) batch: u64,
    /// Number of its places that were handed out.
    pub(super) taken: usize,
    /// The slabs of the open batches, starting with that batch.
    pub(super) leases: VecDeque<Lease>,
    /// Number of places that were dealt, from the first place of that batch on.
    pub(super) given: usize,
    /// For each row, the number of the last request that named it.
    named: Vec<u64>,
    requests: u64,
    /// Whether the last request concerns each worker.
    pub(super) woken: Vec<bool>,
    pub(super) row_ids: RowIds,
}

impl InFlight {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            rows: vec![None; plan.rows()],
            reset_flags: vec![0; plan.rows()],
            count: 0,
            steps: 0,
            order: if plan.batch_size < plan.rows() { RecvOrder::Done } else { RecvOrder::Sent },
            is_dealt: false,
            batch: 0,
            taken: 0,
            leases: VecDeque::with_capacity(plan.ring()),
            given: 0,
            named: vec![0; plan.rows()],
            requests: 0,
            woken: vec![false; plan.shards.len()],
            row_ids: RowIds::default(),
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

    /// The slab of each open batch, with the number of the batch and its first place that was not
    /// handed out.
    pub(super) fn leases(&self) -> impl Iterator<Item = (u64, usize, &Lease)> {
        let batches = (self.batch..).zip(&self.leases);
        batches
            .map(|(batch, lease)| (batch, if batch == self.batch { self.taken } else { 0 }, lease))
    }

    pub(super) fn open_batches(&self) -> u64 {
        self.leases.len() as u64
    }

    pub(super) fn any_of(&self, rows: Range<usize>) -> bool {
        self.rows[rows].iter().any(Option::is_some)
    }

    pub(super) fn call_of(&self, row: usize) -> Option<Call> {
        self.rows.get(row).copied().flatten()
    }

    /// The rows in flight.
    pub(super) fn rows(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&row| self.rows[row].is_some()).collect()
    }

    /// Checks that rows can be sent: they exist, are named once and are not in flight. Returns the highest of
    /// their phases; `phases` are those of all rows.
    pub(super) fn check(&mut self, rows: &[usize], phases: &[u8]) -> Result<u8, Error> {
        self.requests += 1;
        let request = self.requests;
        let mut highest_phase = 0;
        for run in runs(rows) {
            let (Some(calls), Some(named)) =
                (self.rows.get(run.clone()), self.named.get_mut(run.clone()))
            else {
                return Err(self.refusal(rows));
            };
            // Without an exit: such loops are compiled for vectors, here and in `arrived`.
            let flies = calls.iter().map(Option::is_some).fold(false, BitOr::bitor);
            let repeats = named.iter().map(|named| *named == request).fold(false, BitOr::bitor);
            if flies || repeats {
                return Err(self.refusal(rows));
            }
            named.fill(request);
            highest_phase = highest_phase.max(highest(&phases[run]));
        }
        Ok(highest_phase)
    }

    /// Why these rows cannot be sent.
    #[cold]
    fn refusal(&self, rows: &[usize]) -> Error {
        let all = self.rows.len();
        if let Some(&row) = rows.iter().find(|&&row| row >= all) {
            return Error::NoSuchRow { row, rows: all };
        }
        let flies = |row: &usize| self.rows[*row].is_some();
        let flying: Vec<usize> = rows.iter().copied().filter(flies).collect();
        if !flying.is_empty() {
            return Error::InFlight { rows: flying };
        }
        let mut named = vec![false; all];
        let twice = rows.iter().find(|&&row| std::mem::replace(&mut named[row], true));
        let row =
            twice.expect("rows that exist and are not in flight are refused if one is repeated");
        Error::NamedTwice(*row)
    }

    /// Neighboring rows arrived, in the places from `place` on, and are not in flight any longer. The places
    /// of those that were sent for a reset are added to `resets`. Returns the first place whose row does not
    /// exist or was not in flight.
    pub(super) fn arrived(
        &mut self,
        run: Range<usize>,
        place: usize,
        resets: &mut Vec<usize>,
    ) -> Option<usize> {
        if let Some(calls) = self.rows.get_mut(run.clone())
            && calls.iter().map(|call| *call == Some(Call::Step)).fold(true, BitAnd::bitand)
        {
            calls.fill(None);
            return None;
        }
        let mut wrong = None;
        for (place, row) in (place..).zip(run) {
            match self.rows.get_mut(row).and_then(Option::take) {
                Some(Call::Step) => {}
                Some(_) => resets.push(place),
                None => wrong = wrong.or(Some(place)),
            }
        }
        wrong
    }
}
