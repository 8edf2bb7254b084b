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
