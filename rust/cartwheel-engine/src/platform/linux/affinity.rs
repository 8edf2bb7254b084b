//! The processors of a thread.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Pins the calling thread to one of the processors that it may use: number `cpu`, modulo their
/// number.
///
/// Pinning is optional: where the system refuses, the thread runs on any processor.
pub(crate) fn pin_to_cpu(cpu: usize) {
    let Ok(usable) = sched_getaffinity(None) else { return };
    let cpus = usable.count().max(1) as usize;
    if let Some(chosen) = numbers(&usable).nth(cpu % cpus) {
        let _ = sched_setaffinity(None, &only(chosen));
    }
}

/// Moves the calling thread to number `cpu` of the processors that it may use, if these are `cpus`,
/// and lets it go from there again.
///
/// Where the system refuses, the thread stays where it is. If another program sets the thread's
/// processors in between, as `taskset -p` does, these remain, unless it does so in the moment between
/// two of the calls.
pub(crate) fn move_to_cpu(cpu: usize, cpus: usize) {
    let Ok(usable) = sched_getaffinity(None) else { return };
    if usable.count() as usize != cpus {
        return;
    }
    let Some(home) = numbers(&usable).nth(cpu) else { return };
    let here = only(home);
    if sched_getcpu() != home
        && sched_setaffinity(None, &here).is_ok()
        && sched_getaffinity(None).is_ok_and(|now| now == here)
    {
        let _ = sched_setaffinity(None, &usable);
    }
}

/// The numbers of the processors of a set.
fn numbers(set: &CpuSet) -> impl Iterator<Item = usize> + '_ {
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu))
}

/// A set of one processor.
fn only(cpu: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(cpu);
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usable() -> Vec<usize> {
        numbers(&sched_getaffinity(None).expect("a thread may ask for its own")).collect()
    }

    #[test]
    fn a_thread_that_was_moved_may_run_where_it_could_before() {
        let before = usable();
        for (cpu, home) in before.iter().enumerate() {
            // The system may move it on at once, so it is looked at several times.
            let arrives = || {
                move_to_cpu(cpu, before.len());
                assert_eq!(usable(), before);
                sched_getcpu() == *home
            };
            assert!((0..1000).any(|_| arrives()), "never on processor {home}");
        }
    }

    #[test]
    fn a_thread_of_another_number_of_processors_is_not_moved() {
        let before = usable();
        pin_to_cpu(before.len() - 1);
        for cpus in [0, 2, before.len() + 1] {
            move_to_cpu(0, cpus);
            assert_eq!(usable(), before[before.len() - 1..]);
        }
    }
}
