//! The loop of a worker thread or process.
#![expect(unsafe_code, reason = "steps rows in mapped memory, see the invariants of the module")]

use std::sync::atomic::Ordering;
use std::time::Duration;

use cartwheel_core::schedule::usable_cpus;

use super::{Shard, guard, perform, perform_sent};
use crate::platform::move_to_cpu;
use crate::protocol::WorkerToken;
use crate::wake::{
    Caller, Futex, Op, Parked, SpinPolicy, TaskWord, Word, acknowledge, is_closing, park, ring,
    take,
};

/// Longest sleep of an idle worker before it checks again. Only a lost wake-up would need the
/// check.
const IDLE_SLICE: Duration = Duration::from_millis(50);

/// Waits for a task word: polls as long as the spin policy allows, then sleeps. Returns also whether it slept.
pub(super) fn next_task(
    word: &impl Word,
    spin_policy: &mut SpinPolicy,
    caller: &Caller,
) -> (TaskWord, bool) {
    let (mut found, mut slept) = (None, false);
    spin_policy.wait(Some(caller), || {
        found = take(word);
        found.is_some()
    });
    loop {
        if let Some(task_word) = found.take().or_else(|| take(word)) {
            return (task_word, slept);
        }
        slept |= park(word, IDLE_SLICE) == Parked::Slept;
    }
}

/// Serves a worker until the pool closes it: the loop of a worker thread or process.
///
/// `spin` allows polling for the next task before sleeping.
pub fn serve(mut token: WorkerToken, shard: &mut dyn Shard, spin: bool) {
    let memory = token.memory().clone();
    let scope = memory.scope();
    let (slot, header) = (memory.control.slot(token.worker()), memory.control.header());
    let word = memory.sleeper(token.worker());
    let doorbell = Futex::new(&header.doorbell, scope);
    let workers = memory.control.workers();
    let cpus = usable_cpus();
    let mut spin_policy = SpinPolicy::new(workers + 1, cpus, spin);
    loop {
        let (task_word, slept) = next_task(&word, &mut spin_policy, &header.caller);
        // With more workers than processors none has a home, which would take a system call to see.
        if slept && workers <= cpus {
            // The system often wakes two workers on one processor while the caller polls on another,
            // and leaves them there for a tenth of a second.
            move_to_cpu(token.worker(), workers);
        }
        if task_word.op == Op::Close {
            guard::close(shard);
            // `Release` pairs with the `Acquire` in `Pool::waiting`: the shard is closed.
            slot.done.store(task_word.task, Ordering::Release);
            ring(&doorbell);
            return;
        }
        if task_word.op == Op::Take {
            // Rows that are pushed after the last check come with their own task word.
            while !is_closing(&word) && perform_sent(&mut token, shard) > 0 {}
            continue;
        }
        // SAFETY: the task word was just taken, and is acknowledged below (invariant 1).
        let report = unsafe { perform(&mut token, task_word, shard) };
        acknowledge(&slot.done, &header.remaining, &doorbell, task_word.task);
        guard::flush(shard, report);
    }
}
