//! Outputs divided by environment, and the threads that fill them.

use std::num::NonZero;
use std::ops::Range;

use cartwheel_core::schedule::{shards, usable_cpus};

/// Minimum number of cells for each thread. Computing these takes some 300 µs, and a thread that
/// starts costs the other one up to 150 µs: a second thread begins to pay at twice as many cells.
const FEWEST_CELLS: usize = 400_000;

/// Minimum number of environments for each thread: a cache line of `f32`, which two threads should
/// not share.
const FEWEST_ENVS: usize = 16;

/// The environments that each thread computes. There is one thread, unless the rollout is long
/// enough for more or `num_threads` is set.
pub(super) fn shares(
    [steps, num_envs]: [usize; 2],
    num_threads: Option<NonZero<usize>>,
) -> Vec<Range<usize>> {
    let threads = match num_threads {
        Some(threads) => threads.get(),
        None => usable_cpus().min(steps * num_envs / FEWEST_CELLS).min(num_envs / FEWEST_ENVS),
    };
    shards(num_envs, threads)
}

/// Neighboring environments of an output `[steps, num_envs]`.
pub(super) struct EnvSlice<'a, T>(Part<'a, T>);

enum Part<'a, T> {
    Whole { cells: &'a mut [T], num_envs: usize },
    Steps(Vec<&'a mut [T]>),
}

impl<T> EnvSlice<'_, T> {
    /// The cells of these environments at step `t`.
    #[inline]
    pub(super) fn step(&mut self, t: usize) -> &mut [T] {
        match &mut self.0 {
            Part::Whole { cells, num_envs } => &mut cells[t * *num_envs..][..*num_envs],
            Part::Steps(steps) => steps[t],
        }
    }
}

/// Splits an output by environment: one part for each of the consecutive `shares`.
pub(super) fn split<'a, T>(cells: &'a mut [T], shares: &[Range<usize>]) -> Vec<EnvSlice<'a, T>> {
    let num_envs = shares.last().map_or(1, |share| share.end);
    if shares.len() == 1 {
        return vec![EnvSlice(Part::Whole { cells, num_envs })];
    }
    let steps = cells.len() / num_envs;
    let mut parts: Vec<_> = shares.iter().map(|_| Vec::with_capacity(steps)).collect();
    for mut rest in cells.chunks_exact_mut(num_envs) {
        for (part, share) in parts.iter_mut().zip(shares) {
            let (mine, others) = rest.split_at_mut(share.len());
            part.push(mine);
            rest = others;
        }
    }
    parts.into_iter().map(|part| EnvSlice(Part::Steps(part))).collect()
}
