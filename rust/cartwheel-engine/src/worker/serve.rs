//! The loop of a worker thread or process.
#![expect(unsafe_code, reason = "steps rows in mapped memory, see the invariants of the module")]

use std::time::Duration;

use cartwheel_core::schedule::usable_cpus;

use super::{Shard, guard, perform, perform_sent};
use crate::platform::move_to_cpu;
use crate::protocol::WorkerToken;
use crate::wake::{
    Caller, Op, Parked, SpinPolicy, TaskWord, Word, acknowledge, acknowledge_uncounted, is_closing,
    park, ring, take,
};

/// Longest sleep of an idle worker before it checks again. Only a lost wake-up would need the
/// check.
const IDLE_SLICE: Duration = Duration::from_millis(50);
/// Tasks after which a worker that never sleeps looks whether it is on its own processor.
const TASKS_BETWEEN_LOOKS: u32 = 64;

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

/// Whether a worker looks now whether it is on its own processor.
///
/// The system often wakes two workers on one processor while the caller polls on another, and leaves
/// them there for a tenth of a second. It also moves workers that never sleep, when another program
/// needs a processor for a moment. A caller that polls counts as work, so two workers on one
/// processor look as balanced as one on each, and they stay together after that moment.
fn looks_for_home(slept: bool, tasks_since_look: &mut u32) -> bool {
    *tasks_since_look += 1;
    let looks = slept || *tasks_since_look >= TASKS_BETWEEN_LOOKS;
    if looks {
        *tasks_since_look = 0;
    }
    looks
}

/// Serves a worker until the pool closes it: the loop of a worker thread or process.
///
/// `spin` allows polling for the next task before sleeping.
pub fn serve(mut token: WorkerToken, shard: &mut dyn Shard, spin: bool) {
    let memory = token.memory().clone();
    let (slot, header) = (memory.control.slot(token.worker()), memory.control.header());
    let word = memory.sleeper(token.worker());
    let doorbell = memory.doorbell();
    let workers = memory.control.workers();
    let cpus = usable_cpus();
    let mut spin_policy = SpinPolicy::new(workers + 1, cpus, spin);
    let mut tasks_since_look = 0;
    loop {
        let (task_word, slept) = next_task(&word, &mut spin_policy, &header.caller);
        // With more workers than processors none has a home, which would take a system call to see.
        if workers <= cpus && looks_for_home(slept, &mut tasks_since_look) {
            move_to_cpu(token.worker(), workers);
        }
        if task_word.op == Op::Close {
            guard::close(shard);
            acknowledge_uncounted(&slot.done, task_word.task); // the shard is closed
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_worker_looks_for_its_processor_after_each_sleep_and_now_and_then_without_one() {
        let mut since = 0;
        let looks: Vec<u32> = (1..=3 * TASKS_BETWEEN_LOOKS)
            .filter(|&task| looks_for_home(task == 10, &mut since))
            .collect();
        assert_eq!(looks, [10, 10 + TASKS_BETWEEN_LOOKS, 10 + 2 * TASKS_BETWEEN_LOOKS]);
    }
}
