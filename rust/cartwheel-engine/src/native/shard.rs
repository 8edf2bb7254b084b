//! The native environments of one worker.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::chunk_size::ChunkSize;
use super::mailbox::{Mailbox, RowReset};
use super::native_rows::{NativeRows, Place};
use super::prepared::Prepared;
use super::settings::ShardSettings;
use crate::call::FULL_RESET;
use crate::error::Error;
use crate::memory::{ActionRows, Addresses};
use crate::platform::with_standard_floats;
use crate::plugin::EnvKind;
use crate::protocol::{Counters, QueuedRows};
use crate::wake::Op;
use crate::worker::{Report, Shard, Task};

/// Native environments of one kind. A task is one call of the plugin, and allocates nothing.
#[derive(Debug)]
pub struct NativeShard {
    /// `None` once closed.
    rows: Option<NativeRows>,
    mailbox: Arc<Mailbox>,
    prepared: Prepared,
    chunk_size: ChunkSize,
    room: Addresses,
}

impl NativeShard {
    /// Makes the environments of one worker, `rows` of them, and the mailbox that they share with
    /// the owner of the pool.
    ///
    /// # Errors
    ///
    /// [`cartwheel_core::Error::BadOptions`] with the plugin's text, or [`cartwheel_core::Error::NoEntropy`].
    pub fn new(
        kind: &Arc<EnvKind>,
        rows: usize,
        settings: ShardSettings,
    ) -> Result<(Self, Arc<Mailbox>), Error> {
        let mailbox = Arc::new(Mailbox::default());
        let shard = Self {
            rows: Some(NativeRows::new(kind, rows, settings, Arc::clone(&mailbox))?),
            mailbox: Arc::clone(&mailbox),
            prepared: Prepared::default(),
            chunk_size: ChunkSize::default(),
            room: Addresses::default(),
        };
        Ok((shard, mailbox))
    }

    /// Carries out a step or a reset on all rows of the shard.
    fn carry_out(&mut self, task: &mut Task<'_>) {
        let Some(rows) = &mut self.rows else { return };
        let (leaves, outcomes) = task.slab.columns(&mut self.room);
        let (first, counters, own) =
            (task.first, task.counters, task.rows.start - task.first..task.rows.end - task.first);
        let mut place =
            Place { first, rows: own.clone(), actions: &task.actions, leaves, outcomes, counters };
        let done = match task.op {
            Op::Step => rows.step(&mut place),
            Op::Settle => rows.settle(&mut place, self.mailbox.take_rewards().as_ref()),
            _ => {
                let (how, options) = self.mailbox.take_reset();
                let how = |row: usize| how.get(row).cloned().unwrap_or(RowReset::Continue);
                let is_full = task.flags & FULL_RESET != 0;
                rows.reset(&mut place, how, &|row| options.of(row), is_full)
            }
        };
        if let Err(error) = done {
            rows.fail_all(own, first, |_| error.again());
            task.slab.write_failed();
        }
    }

    /// Whether a step is half done.
    fn awaits_rewards(&self) -> bool {
        self.rows.as_ref().is_some_and(NativeRows::awaits_rewards)
    }

    /// Passes on the infos and faults of rows that were carried out.
    fn report(&mut self, task: &mut Task<'_>, rows: &Range<usize>) -> Report {
        let Some(own) = &mut self.rows else { return Report::default() };
        own.report_begun(rows, task.first);
        let infos = if task.is_sent() { own.infos.of(rows) } else { own.infos.stream() };
        let spilled = !task.store_infos(infos);
        if spilled {
            self.mailbox.post_spilled(rows.start, infos);
        }
        let failed = !own.faults.is_empty() && {
            let faults: Vec<_> =
                own.faults.extract_if(.., |fault| rows.contains(&fault.row)).collect();
            let failed = !faults.is_empty();
            self.mailbox.post_faults(faults);
            failed
        };
        Report { failed, spilled }
    }
}

impl Shard for NativeShard {
    fn run(&mut self, task: &mut Task<'_>) -> Report {
        with_standard_floats(|| self.run_task(task))
    }

    fn batch_of_sent(&self) -> usize {
        self.chunk_size.rows()
    }

    fn together(&mut self, rows: &Range<usize>) -> usize {
        let Some(own) = &mut self.rows else { return rows.len() };
        let failed = own.faults.iter().map(|fault| fault.row).filter(|row| rows.contains(row));
        let alone = failed.chain(own.infos.first_of(rows)).min();
        alone.map_or(rows.len(), |row| (row - rows.start).max(1))
    }

    fn prepare(
        &mut self,
        queued: &QueuedRows,
        first: usize,
        actions: &ActionRows<'_>,
        counters: Counters<'_>,
    ) {
        with_standard_floats(|| self.prepare_rows(queued, first, actions, counters));
    }

    fn panicked(&mut self, task: &Task<'_>, message: &str) -> Report {
        if task.op == Op::Call {
            let error = cartwheel_core::Error::BadParameter(message.to_owned());
            self.mailbox.post_answer(Err(error.into()));
            return Report::default();
        }
        let Some(rows) = &mut self.rows else { return Report::default() };
        let message = |row| Error::Panicked { row, message: message.to_owned() };
        rows.fail_all(task.own_rows(), task.first, message);
        self.mailbox.post_faults(std::mem::take(&mut rows.faults));
        Report { failed: true, spilled: false }
    }

    fn close(&mut self) {
        self.rows = None;
    }
}

impl NativeShard {
    fn run_task(&mut self, task: &mut Task<'_>) -> Report {
        if !matches!(task.op, Op::Step | Op::Settle | Op::Reset) {
            if let (Some(request), Some(rows)) = (self.mailbox.take_request(), &mut self.rows) {
                self.mailbox.post_answer(rows.answer(request));
            }
            return Report::default();
        }
        if task.is_sent() {
            let is_there = self.prepared.write(&task.rows, &mut task.slab);
            assert!(is_there, "rows that were sent are prepared");
        } else {
            let start = (task.op == Op::Reset).then(Instant::now);
            self.carry_out(task);
            if let Some(start) = start {
                self.chunk_size.note(Op::Reset, start.elapsed(), task.rows.len());
            }
        }
        if task.op == Op::Step && self.awaits_rewards() {
            return Report::default(); // the second half reports both
        }
        let rows = task.rows.clone();
        self.report(task, &rows)
    }

    fn prepare_rows(
        &mut self,
        queued: &QueuedRows,
        first: usize,
        actions: &ActionRows<'_>,
        counters: Counters<'_>,
    ) {
        let Some(rows) = &mut self.rows else { return };
        let start = self.chunk_size.is_due().then(Instant::now);
        let own = queued.rows.start - first..queued.rows.end - first;
        rows.faults.clear();
        let Ok(mut memory) = self.prepared.take(&rows.observations, own.len(), rows.dense_finals)
        else {
            return;
        };
        let (leaves, outcomes) = memory.columns(0..own.len());
        let mut place = Place { first, rows: own.clone(), actions, leaves, outcomes, counters };
        let done = if queued.op == Op::Step {
            rows.step(&mut place)
        } else {
            let posted: Vec<_> =
                queued.rows.clone().map(|row| self.mailbox.take_row_reset(row)).collect();
            let of = |row: usize| posted[row - own.start].as_ref();
            let how = |row| of(row).map_or(RowReset::Continue, |(how, _)| how.clone());
            let options = |row| of(row).and_then(|(_, options)| options.as_ref());
            rows.reset(&mut place, how, &options, queued.flags & FULL_RESET != 0)
        };
        if let Err(error) = done {
            rows.fail_all(own.clone(), first, |_| error.again());
            for at in 0..own.len() {
                place.leaves.zero(at);
                let (transition, phase) =
                    (cartwheel_core::Transition::RESET, crate::PhaseTag::Failed);
                place.outcomes.write(at, &transition, phase);
            }
            place.leaves.keep_finals();
        }
        self.prepared.keep(memory, queued.rows.clone());
        if let Some(start) = start {
            self.chunk_size.note(queued.op, start.elapsed(), queued.rows.len());
        }
    }
}
