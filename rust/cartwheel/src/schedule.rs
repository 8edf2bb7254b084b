//! Which rows go together: contiguous shards, dealt once.

use std::ops::Range;

/// Deals `rows` rows to `workers` workers as contiguous ranges whose lengths differ by at most one.
///
/// Results never depend on the deal; it only decides who steps what. More workers than rows leave
/// no empty range: the surplus workers are not made.
///
/// ```
/// assert_eq!(cartwheel::schedule::shards(5, 2), vec![0..3, 3..5]);
/// assert_eq!(cartwheel::schedule::shards(1, 7), vec![0..1]);
/// ```
pub fn shards(rows: usize, workers: usize) -> Vec<Range<usize>> {
    let workers = workers.clamp(1, rows.max(1));
    let (share, longer) = (rows / workers, rows % workers);
    let mut end = 0;
    (0..workers)
        .map(|worker| {
            let start = end;
            end += share + usize::from(worker < longer);
            start..end
        })
        .collect()
}

/// Processors that this process may use, honouring affinity and cgroup quota; at least 1.
pub fn usable_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// How finely the rows of native environments are dealt: shards for every thread.
///
/// More shards balance uneven rows better; each costs some 50 ns a step. Eight leave the last thread
/// at most an eighth of its share to wait for.
const SHARDS_PER_THREAD: usize = 8;

/// Deals rows of native environments for `threads` threads that take shards from each other; one
/// thread needs no more than one shard.
///
/// Rows that are stepped in blocks of `block` are dealt so finely that a block is cut only where there
/// would be fewer shards than threads: such rows cost next to nothing, and less together than alone.
///
/// ```
/// use cartwheel::schedule::fine_shards;
///
/// assert_eq!(fine_shards(100, 2, 1).len(), 16);
/// assert_eq!(fine_shards(100, 2, 32), vec![0..34, 34..67, 67..100]);
/// assert_eq!(fine_shards(20, 2, 32), vec![0..10, 10..20]);
/// assert_eq!(fine_shards(100, 1, 1), vec![0..100]);
/// ```
pub fn fine_shards(rows: usize, threads: usize, block: usize) -> Vec<Range<usize>> {
    let finest = if threads <= 1 { 1 } else { threads * SHARDS_PER_THREAD };
    shards(rows, finest.min((rows / block.max(1)).max(threads)))
}

/// Pins the calling thread to one of the processors that it may use, number `cpu` modulo how many.
///
/// Pinning is a wish: where the system refuses, the thread runs wherever it is put.
pub(crate) fn pin_to_cpu(cpu: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let Ok(usable) = sched_getaffinity(None) else { return };
    let usable: Vec<_> = (0..CpuSet::MAX_CPU).filter(|&cpu| usable.is_set(cpu)).collect();
    if usable.is_empty() {
        return;
    }
    let mut chosen = CpuSet::new();
    chosen.set(usable[cpu % usable.len()]);
    let _ = sched_setaffinity(None, &chosen);
}
