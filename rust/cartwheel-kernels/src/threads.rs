//! Threads that share a computation.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cartwheel_core::schedule::{shards, usable_cpus};

/// Minimum number of bytes for each thread. To compute or to copy these takes some 100 µs, to start the
/// thread a fifth of that.
const FEWEST_BYTES: usize = 1 << 20;

/// Number of threads for a computation with so many bytes.
pub(crate) fn threads_for(bytes: usize) -> usize {
    match bytes / FEWEST_BYTES {
        0 | 1 => 1,
        most => usable_cpus().min(most),
    }
}

/// Calls `compute` for shares of the rows `0..rows` with their part of `out`, which has equally much
/// for each row.
pub(crate) fn compute_rows<O: Send>(
    threads: usize,
    rows: usize,
    mut out: &mut [O],
    compute: impl Fn(Range<usize>, &mut [O]) + Sync,
) {
    let (shares, row) = (shards(rows, threads), out.len() / rows.max(1));
    let outputs: Vec<_> = shares
        .iter()
        .map(|share| out.split_off_mut(..share.len() * row).expect("room for each row"))
        .collect();
    compute_each(shares, outputs, compute);
}

/// Calls `compute` for every share with its outputs, on a thread for each share. One of them is the
/// calling thread; where the system starts fewer threads, those that there are do everything.
pub(crate) fn compute_each<O: Send>(
    shares: Vec<Range<usize>>,
    outputs: impl IntoIterator<Item = O>,
    compute: impl Fn(Range<usize>, O) + Sync,
) {
    let others = shares.len().saturating_sub(1);
    let work: Vec<_> = shares.into_iter().zip(outputs).collect();
    if others == 0 {
        return work.into_iter().for_each(|(share, output)| compute(share, output));
    }
    let left = Mutex::new(work);
    let take = || left.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let work = || {
        while let Some((share, output)) = take() {
            compute(share, output);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..others {
            let thread = std::thread::Builder::new().name("cartwheel-array".to_owned());
            if thread.spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}
