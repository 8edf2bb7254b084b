//! How a worker carries out rows that were sent.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Report, Shard, Task, guard, is_timed, note_time};
use crate::failpoint::{Failpoint, die};
use crate::memory::{ActionRows, Told};
use crate::protocol::{Delivery, Filling, Memory, Places, Tally, Work};
use crate::wake::{Futex, Op, Scope};

/// Carries out some of the work in the worker's queue; returns how many rows it was, 0 when there
/// was none.
pub(crate) fn perform_sent(memory: &Memory, worker: usize, shard: &mut dyn Shard) -> usize {
    let control = &memory.control;
    let (queue, batches) = (control.queue(worker), control.batches());
    let doorbell = Futex::new(&control.header().doorbell, memory.scope());
    let most = shard.batch_of_sent();
    let mut rows = SentRows {
        memory,
        worker,
        shard,
        first_row: memory.plan().shards[worker].start,
        tally: control.tally(worker),
        started: None,
        prepared: Ok(()),
        report: Report::default(),
    };
    Delivery { queue, batches, doorbell: &doorbell }.deliver(most, &mut rows)
}

/// Rows of one worker, passed to [`Delivery`].
struct SentRows<'a> {
    memory: &'a Memory,
    worker: usize,
    shard: &'a mut dyn Shard,
    /// The first row of the shard.
    first_row: usize,
    tally: Tally<'a>,
    /// When the timing of the rows that are filled next began.
    started: Option<Instant>,
    /// Whether the preparation of the rows panicked.
    prepared: Result<(), String>,
    /// The shard's report on the rows that were filled last.
    report: Report,
}

impl Filling for SentRows<'_> {
    fn prepare(&mut self, work: &Work) {
        self.started = is_timed(work.op, self.shard, &self.tally).then(Instant::now);
        self.tally.count_take();
        if work.rows.len() == 1 {
            let actions = ActionRows::new(&self.memory.actions, work.rows.clone(), work.op);
            self.prepared = guard::guarded(|| self.shard.prepare(work, self.first_row, &actions));
        }
    }

    fn fill(&mut self, work: &Work, rows: Range<usize>, places: Places) {
        self.report = self.write(work, rows.clone(), places);
        // Before the rows are counted as filled: a caller that receives them finds the counts.
        if let Some(started) = &mut self.started {
            let spent = std::mem::replace(started, Instant::now()).elapsed();
            note_time(&self.tally, work.op, places.count, spent);
        }
        if work.op == Op::Step {
            self.tally.count_sent(rows.start - self.first_row..rows.end - self.first_row);
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
    fn write(&mut self, work: &Work, rows: Range<usize>, places: Places) -> Report {
        let Self { memory, worker, .. } = *self;
        // Only this code claims these places: tickets are drawn once and given places are dealt
        // once; the claim ends before they are counted.
        let slab = memory.slabs.claim(places.slab, places.first..places.first + places.count);
        let mut task = Task {
            op: work.op,
            rows: rows.clone(),
            first: self.first_row,
            sent: true,
            flags: work.flags,
            slab,
            actions: ActionRows::new(&memory.actions, rows.clone(), work.op),
            tally: self.tally,
            infos: &memory.infos,
            shard: worker,
            cells: Some(rows.clone()),
            info_bytes: 0,
        };
        let before = std::mem::replace(&mut self.prepared, Ok(()));
        let report = guard::run(self.shard, &mut task, before);
        let bytes = u32::try_from(task.info_bytes).expect("an info region is below 4 GiB");
        let told = if report.spilled { Told::Spilled } else { Told::Bytes(bytes) };
        task.slab.write_receipts(rows.start, told);
        if memory.scope() == Scope::Shared {
            // The pool needs this if this process dies before the batch is received.
            for (row, place) in rows.zip(task.slab.rows()) {
                memory.control.phases()[row].store(task.slab.phase(place), Ordering::Release);
            }
        }
        report
    }
}
