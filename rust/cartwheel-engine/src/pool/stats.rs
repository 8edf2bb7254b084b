//! Counts of a pool and its workers: steps, resets, and the time they took.
//!
//! Reading disturbs no worker: the counters are words that their writers store and this file loads,
//! see [`crate::protocol::Counters`]. So a second thread may read while the pool waits, and sees a
//! worker that hangs or died like any other.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::memory::SlabPool;
pub use crate::protocol::RowStats;
use crate::protocol::{BUCKETS, Control, Memory, nanoseconds};

/// The counters of one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardStats {
    /// Its rows.
    pub rows: Range<usize>,
    /// Numbers of its steps that took `2^k` to `2^(k + 1)` nanoseconds. All steps count; where rows
    /// are not timed one by one, a sample of tasks counts, in which every row has the mean time.
    pub step_times: [u64; BUCKETS],
    /// Time of these steps together.
    pub timed: Duration,
    /// Time spent on its rows; where rows are not timed one by one, an estimate from that sample.
    pub working: Duration,
    /// Dead worker processes that were replaced by others.
    pub restarts: u64,
}

/// All counters of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Time since the pool was made.
    pub elapsed: Duration,
    /// Row by row.
    pub rows: Vec<RowStats>,
    /// Shard by shard; for Python environments each shard is one worker.
    pub shards: Vec<ShardStats>,
    /// Time that calls waited for workers, without the steps that the calling thread makes itself.
    pub waited: Duration,
    /// Batches that were handed out.
    pub batches: u64,
    /// Bytes of the observations in them.
    pub observation_bytes: u64,
    /// Batches that have to be copied because no slab was left.
    pub copies: u64,
    /// Slabs that are backed by memory.
    pub slabs_reserved: usize,
    /// Slabs that are being filled or that the caller holds.
    pub slabs_leased: usize,
}

/// Reads the counters of the workers, and keeps those of the pool.
///
/// Only the pool's calls count, one at a time, so a load and a store suffice here too.
#[derive(Debug)]
pub struct Meter {
    opened: Instant,
    control: Control,
    slabs: Arc<SlabPool>,
    shards: Vec<Range<usize>>,
    /// Whether workers time rows one by one.
    rows_are_timed: bool,
    /// Bytes of one row's observation.
    row_bytes: u64,
    /// Nanoseconds.
    waited: AtomicU64,
    begun: AtomicU64,
    batches: AtomicU64,
    rows: AtomicU64,
    copies: AtomicU64,
    restarts: Vec<AtomicU64>,
}

impl Meter {
    pub(super) fn new(memory: &Memory, slabs: Arc<SlabPool>, rows_are_timed: bool) -> Self {
        let plan = memory.plan();
        let row_bytes = plan.observations.iter().map(|leaf| leaf.row_bytes() as u64).sum();
        Self {
            opened: Instant::now(),
            control: memory.control.clone(),
            slabs,
            shards: plan.shards.clone(),
            rows_are_timed,
            row_bytes,
            waited: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            copies: AtomicU64::new(0),
            restarts: plan.shards.iter().map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(super) fn count_begun(&self) {
        add(&self.begun, 1);
    }

    pub(super) fn count_batch(&self, rows: usize, copied: bool) {
        add(&self.batches, 1);
        add(&self.rows, rows as u64);
        if copied {
            add(&self.copies, 1);
        }
    }

    pub(super) fn count_wait(&self, waited: Duration) {
        add(&self.waited, nanoseconds(waited));
    }

    pub(super) fn count_restart(&self, worker: usize) {
        add(&self.restarts[worker], 1);
    }

    /// Steps and resets that have begun so far, of all rows or of some. Equal numbers say that nothing
    /// was stepped or reset in between, by any caller.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed) // it orders nothing: one thread at a time makes calls
    }

    /// The counters so far. While calls are pending or rows are in flight, the counters of a row
    /// that is being stepped may differ by one.
    pub fn read(&self) -> Stats {
        let mut rows = Vec::with_capacity(self.shards.last().map_or(0, |shard| shard.end));
        let mut shards: Vec<_> =
            (0..self.shards.len()).map(|shard| self.read_shard(shard, &mut rows)).collect();
        // Read last, so that no worker has worked longer.
        let elapsed = self.opened.elapsed();
        for shard in &mut shards {
            cap(shard, &mut rows, elapsed);
        }
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Stats {
            elapsed,
            rows,
            shards,
            waited: Duration::from_nanos(count(&self.waited)),
            batches: count(&self.batches),
            observation_bytes: count(&self.rows) * self.row_bytes,
            copies: count(&self.copies),
            slabs_reserved: self.slabs.reserved(),
            slabs_leased: self.slabs.leased(),
        }
    }

    fn read_shard(&self, shard: usize, rows: &mut Vec<RowStats>) -> ShardStats {
        let (counters, span) = (self.control.counters(shard), self.shards[shard].clone());
        let totals = counters.totals();
        let (first, mut stepping) = (rows.len(), totals.stepping);
        rows.extend((0..span.len()).map(|row| counters.row(row)));
        if !self.rows_are_timed {
            // A corrupt worker may have written any number.
            let timed = totals.step_times.iter().copied().fold(0, u64::saturating_add);
            stepping = Duration::ZERO;
            for row in &mut rows[first..] {
                row.stepping = share(totals.stepping, row.steps, timed);
                row.slowest = totals.slowest;
                stepping += row.stepping;
            }
        }
        ShardStats {
            rows: span,
            step_times: totals.step_times,
            timed: totals.stepping,
            working: stepping + totals.other,
            restarts: self.restarts[shard].load(Ordering::Relaxed),
        }
    }
}

/// Limits an estimate to the time that has passed: a sampled step during which the machine was busy
/// elsewhere counts for many steps.
fn cap(shard: &mut ShardStats, rows: &mut [RowStats], elapsed: Duration) {
    if shard.working <= elapsed {
        return;
    }
    let rows = &mut rows[shard.rows.clone()];
    let stepping: Duration = rows.iter().map(|row| row.stepping).sum();
    let left = elapsed.saturating_sub(shard.working.saturating_sub(stepping));
    for row in rows {
        row.stepping = share(row.stepping, nanoseconds(left), nanoseconds(stepping));
    }
    shard.working = elapsed;
}

/// The estimated time of `steps` steps when `timed` of them took `time`.
fn share(time: Duration, steps: u64, timed: u64) -> Duration {
    let nanoseconds = time.as_nanos() * u128::from(steps) / u128::from(timed.max(1));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))] // real slabs: loom's atomics work only inside a model
mod tests {
    use super::*;
    use crate::memory::Plan;
    use crate::wake::Scope;

    fn metered(shards: Vec<Range<usize>>, batch_size: usize) -> (Memory, Meter) {
        let plan = Plan { batch_size, ..Plan::new(shards) };
        let (memory, _) = Memory::new(plan, Scope::Private).expect("a little memory");
        let open = memory.plan().open_batches();
        let slabs = Arc::new(SlabPool::new(Arc::clone(&memory.slabs), open));
        let meter = Meter::new(&memory, slabs, false);
        (memory, meter)
    }

    #[test]
    fn times_that_no_worker_takes_are_cut_to_what_there_was() {
        let (memory, meter) = metered(std::iter::once(0..2).collect(), 2);
        let counters = memory.control.counters(0);
        // A corrupt worker leaves such numbers.
        for spent in [Duration::from_nanos(30), Duration::from_secs(1 << 40)] {
            counters.time_steps(usize::MAX, spent);
        }
        counters.time_other(Duration::MAX);
        let Stats { elapsed, shards, .. } = meter.read();
        assert_eq!(shards[0].working, elapsed);
    }

    #[test]
    fn rows_whose_times_are_estimated_take_no_longer_than_there_was_time() {
        let (memory, meter) = metered(vec![0..2, 2..5], 5);
        let (hour, millisecond) = (Duration::from_secs(3600), Duration::from_millis(1));
        for (shard, rows, spent) in [(0, 2, hour), (1, 3, Duration::from_nanos(30))] {
            let counters = memory.control.counters(shard);
            counters.time_steps(rows, spent);
            counters.time_other(Duration::from_nanos(10));
            (0..20).for_each(|_| counters.count_batch());
        }
        std::thread::sleep(millisecond); // more than the second shard says that it took
        let Stats { elapsed, rows, shards, .. } = meter.read();
        assert_eq!(shards[0].working, elapsed);
        let stepping: Duration = rows[..2].iter().map(|row| row.stepping).sum();
        let other = Duration::from_nanos(10);
        assert!(stepping + other <= elapsed && stepping + millisecond > elapsed);
        assert_eq!(shards[1].working, Duration::from_nanos(20 * 30 + 10));
        assert_eq!(rows[4].stepping, Duration::from_nanos(20 * 10));
    }
}
