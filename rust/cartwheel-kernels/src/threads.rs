//! Threads that share a computation.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

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
