//! The processors of a thread.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Pins the calling thread to one of the processors that it may use: number `cpu`, modulo their
/// number.
///
/// Pinning is optional: where the system refuses, the thread runs on any processor.
pub(crate) fn pin_to_cpu(cpu: usize) {
    let Ok(usable) = sched_getaffinity(None) else { return };
    let usable: Vec<_> = (0..CpuSet::MAX_CPU).filter(|&cpu| usable.is_set(cpu)).collect();
    if usable.is_empty() {
        return;
    }
    let mut chosen = CpuSet::new();
    chosen.set(usable[cpu % usable.len()]);
    let _ = sched_setaffinity(None, &chosen);
}
