//! Panics of a shard do not end the worker; panics during a task fail its rows.
//!
//! Shards of native environments know which row panicked, and fail that row alone. Other panics,
//! from a destructor between two rows or from a bug in this crate, are caught here. A worker that
//! died of one would never acknowledge its task, and the death of a thread cannot be detected: the
//! pool would wait forever.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cartwheel_core::{drop_payload, panic_message};

use super::{Report, Shard, Task};
use crate::wake::Op;

/// Calls `run`; returns the message of the panic if it panicked.
pub(super) fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let text = panic_message(&*payload).unwrap_or("a panic without a message").to_owned();
        drop_payload(payload);
        text
    })
}

/// Carries out a task on the rows of a shard, unless its preparation panicked.
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
    if matches!(task.op, Op::Step | Op::Settle | Op::Reset) {
        task.slab.write_failed();
    }
    // After a second panic the reason is lost, but the rows still count as failed.
    guarded(|| shard.panicked(task, message)).unwrap_or(Report { failed: true, spilled: false })
}

/// Sends the messages that a report announced, if any.
pub(crate) fn flush(shard: &mut dyn Shard, report: Report) {
    if report != Report::default() {
        let _ = guarded(|| shard.flush(report)); // the worker serves on
    }
}

/// Ends the environments of a shard.
pub(crate) fn close(shard: &mut dyn Shard) {
    let _ = guarded(|| shard.close()); // other shards are closed in any case
}
