//! Panics that come out of a shard: they end no worker, and those of a task fail its rows.
//!
//! Shards of native environments know which row a panic came from, and fail that row alone. What gets past
//! them, from a destructor between two rows or from a mistake of ours, comes here. A worker that died of it
//! would never acknowledge its task, and a thread cannot be found dead: the pool would wait for ever.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Report, Shard, Task};
use crate::wake::Op;

/// Runs `run`; the message of the panic if it panicked.
pub(super) fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| message_of(panic.as_ref()))
}

/// Carries out a task on the rows of a shard, unless what came before it panicked.
pub(super) fn run(
    shard: &mut dyn Shard,
    task: &mut Task<'_>,
    before: Result<(), String>,
) -> Report {
    let ran = before.and_then(|()| guarded(|| shard.run(task)));
    ran.unwrap_or_else(|message| fail(shard, task, &message))
}

#[cold]
fn fail(shard: &mut dyn Shard, task: &mut Task<'_>, message: &str) -> Report {
    task.info_bytes = 0;
    if matches!(task.op, Op::Step | Op::Reset) {
        task.slab.write_failed();
    }
    // A shard that panics once more has told nobody why, but that its rows failed is known.
    guarded(|| shard.panicked(task, message)).unwrap_or(Report { failed: true, spilled: false })
}

/// Sends what a report announced, if it announced anything.
pub(crate) fn flush(shard: &mut dyn Shard, report: Report) {
    if report == Report::default() {
        return;
    }
    if let Err(message) = guarded(|| shard.flush(report)) {
        let _ = guarded(|| shard.flush_panicked(&message)); // a second panic leaves nothing to try
    }
}

/// Ends the environments of a shard.
pub(crate) fn close(shard: &mut dyn Shard) {
    let _ = guarded(|| shard.close()); // the others are closed all the same
}

/// What a panic said.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
