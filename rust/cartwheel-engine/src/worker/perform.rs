//! Execution of a task on all rows of a worker.
#![expect(unsafe_code, reason = "claims rows of mapped memory, see the invariants of the module")]

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Report, Shard, Task, guard};
use crate::failpoint::{Failpoint, die};
use crate::memory::ActionRows;
use crate::protocol::{Counters, WorkerToken};
use crate::wake::{Op, TaskWord};

/// Carries out the task that `task_word` announces; the caller has to acknowledge it.
///
/// # Safety
///
/// The pool has published `task_word` to this worker, which has not acknowledged it (invariant 1).
pub(crate) unsafe fn perform(
    token: &mut WorkerToken,
    task_word: TaskWord,
    shard: &mut dyn Shard,
) -> Report {
    let (memory, worker) = (token.memory(), token.worker());
    let slot = memory.control.slot(worker);
    let rows: Range<usize> = memory.plan().shards[worker].clone();
    let slab = slot.slab.load(Ordering::Relaxed); // ordered by the task word
    // A control call has no slab, and a batch may have fewer places than there are rows.
    let places = if task_word.op == Op::Call { 0..0 } else { rows.clone() };
    // Each field is made in its place: a move of one waits for the stores before it.
    let mut task = Task {
        op: task_word.op,
        first: rows.start,
        flags: slot.flags.load(Ordering::Relaxed), // likewise
        // SAFETY: the task word says that the slab is filling, the plan says that the rows belong to
        // this worker, and the claim ends with `task`, before the acknowledgement (invariant 1).
        slab: unsafe { memory.slabs.claim(slab, places) },
        // SAFETY: the actions are at rest for the same time (invariant 1).
        actions: unsafe { ActionRows::new(&memory.actions, rows.clone(), task_word.op) },
        rows,
        counters: memory.control.counters(worker),
        infos: &memory.infos,
        shard: worker,
        cells: None,
        info_bytes: 0,
    };
    let started = is_timed(task_word.op, shard, &task.counters).then(Instant::now);
    let report = guard::run(shard, &mut task, Ok(()));
    if let Some(started) = started {
        note_time(&task.counters, task_word.op, task.rows.len(), started.elapsed());
    }
    if task_word.op == Op::Step {
        task.counters.count_batch();
    }
    let info_bytes = u32::try_from(task.info_bytes).expect("an info region is below 4 GiB");
    slot.info_bytes.store(info_bytes, Ordering::Relaxed); // published by `done`
    slot.status.store(report.to_word(), Ordering::Relaxed); // likewise
    if Failpoint::DieBeforeAck.hit() {
        die();
    }
    report
}

/// Whether a task is timed as a whole.
pub(super) fn is_timed(op: Op, shard: &dyn Shard, counters: &Counters<'_>) -> bool {
    match op {
        Op::Step => !shard.times_rows() && counters.is_due(),
        Op::Reset => !shard.times_rows(),
        Op::Call | Op::Take | Op::Close | Op::Settle => true,
    }
}

/// Records how long a task on `rows` rows took.
pub(super) fn note_time(counters: &Counters<'_>, op: Op, rows: usize, spent: Duration) {
    if op == Op::Step { counters.time_steps(rows, spent) } else { counters.time_other(spent) }
}
