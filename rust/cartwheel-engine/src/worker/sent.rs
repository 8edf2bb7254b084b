//! Execution of sent rows by a worker.
#![expect(unsafe_code, reason = "claims places of mapped memory, see the invariants of the module")]

use std::ops::Range;
use std::time::Instant;

use super::perform::{is_timed, note_time};
use super::{Report, Shard, Task, guard};
use crate::failpoint::{Failpoint, die};
use crate::memory::{ActionRows, InfosAt};
use crate::protocol::{Counters, Delivery, Filling, Memory, Places, QueuedRows, WorkerToken};
use crate::wake::Op;

/// Carries out some of the work in the worker's queue; returns how many rows it was, 0 when there
/// was none.
pub(crate) fn perform_sent(token: &mut WorkerToken, shard: &mut dyn Shard) -> usize {
    let (memory, worker) = (token.memory(), token.worker());
    let control = &memory.control;
    let (queue, batches) = (control.queue(worker), control.batches());
    let doorbell = memory.doorbell();
    let max = shard.batch_of_sent();
    let mut rows = SentRows {
        memory,
        worker,
        shard,
        first_row: memory.plan().shards[worker].start,
        counters: control.counters(worker),
        started: None,
        prepared: Ok(()),
        report: Report::default(),
    };
    Delivery { queue, batches, doorbell: &doorbell }.deliver(max, &mut rows)
}

/// Rows of one worker, passed to [`Delivery`].
struct SentRows<'a> {
    memory: &'a Memory,
    worker: usize,
    shard: &'a mut dyn Shard,
    first_row: usize,
    counters: Counters<'a>,
    /// Start time of the rows that are filled next.
    started: Option<Instant>,
    /// Whether the preparation of the rows panicked.
    prepared: Result<(), String>,
    /// The shard's report on the rows that were filled last.
    report: Report,
}

impl Filling for SentRows<'_> {
    fn prepare(&mut self, queued: &QueuedRows) {
        self.started = is_timed(queued.op, self.shard, &self.counters).then(Instant::now);
        self.counters.count_take();
        // SAFETY: the rows were taken from the queue, and are not counted yet (invariant 2).
        let actions =
            unsafe { ActionRows::new(&self.memory.actions, queued.rows.clone(), queued.op) };
        let Self { first_row, counters, .. } = *self;
        self.prepared =
            guard::guarded(|| self.shard.prepare(queued, first_row, &actions, counters));
    }

    fn together(&mut self, rows: Range<usize>) -> usize {
        self.shard.together(&rows)
    }

    fn fill(&mut self, queued: &QueuedRows, rows: Range<usize>, places: Places) {
        self.report = self.write(queued, rows.clone(), places);
        // Before the rows are counted as filled: a caller that receives them finds the counts.
        if let Some(started) = &mut self.started {
            let spent = std::mem::replace(started, Instant::now()).elapsed();
            note_time(&self.counters, queued.op, places.count, spent);
        }
        if queued.op == Op::Step {
            self.counters.count_sent(rows.start - self.first_row..rows.end - self.first_row);
        }
        if Failpoint::DieBeforeAck.hit() {
            die();
        }
    }

    fn counted(&mut self) {
        guard::flush(self.shard, self.report);
    }
}

impl SentRows<'_> {
    /// Carries out work on `rows`, for which `places` were claimed.
    fn write(&mut self, queued: &QueuedRows, rows: Range<usize>, places: Places) -> Report {
        let Self { memory, worker, .. } = *self;
        let claimed = places.first..places.first + places.count;
        // SAFETY: tickets are drawn once and given places are dealt once; the claim ends before the
        // places are counted (invariant 2).
        let slab = unsafe { memory.slabs.claim(places.slab, claimed) };
        // SAFETY: the rows were taken from the queue, and are not counted yet (invariant 2).
        let actions = unsafe { ActionRows::new(&memory.actions, rows.clone(), queued.op) };
        let mut task = Task {
            op: queued.op,
            rows: rows.clone(),
            first: self.first_row,
            flags: queued.flags,
            slab,
            actions,
            counters: self.counters,
            infos: &memory.infos,
            shard: worker,
            cells: Some(rows.clone()),
            info_bytes: 0,
        };
        let report = guard::run(self.shard, &mut task, self.prepared.clone());
        let bytes = u32::try_from(task.info_bytes).expect("an info region is below 4 GiB");
        let infos_at = if report.spilled { InfosAt::Channel } else { InfosAt::Memory(bytes) };
        task.slab.write_row_ids(rows.start, infos_at);
        report
    }
}
