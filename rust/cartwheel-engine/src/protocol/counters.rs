//! The workers' counters, which the pool can read at any time.
//!
//! Each shard has its own counters with one writer: the worker that steps the shard, or in a thread pool
//! the thread that holds its lock. So counting is a load and a store, never a read-modify-write,
//! and `Relaxed` is enough. A reader may see one counter a step ahead of another; counts of tasks
//! that were acknowledged, or of rows that were counted as filled, are complete, because the
//! acknowledgement or the count orders them. Counters outlive the process that wrote them: a worker
//! that replaces a dead one continues from their values.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets of a histogram of step times: bucket `k` counts steps of `2^k` to `2^(k + 1)`
/// nanoseconds. The first one also counts shorter steps, the last one (nine minutes) longer steps.
pub const BUCKETS: usize = 40;

/// One in this many tasks of a shard is timed, where rows are not timed one by one.
///
/// Reading the clock costs as much as some native steps. The number is prime, so that the timed
/// tasks do not always, or never, contain the ends of episodes of a fixed length.
const SAMPLED: u64 = 17;
/// The first task that is timed. The tasks before it are slow, since the caches are cold, and must
/// not represent the others.
const FIRST_SAMPLED: u64 = 8;

/// A number with one writer.
#[derive(Debug, Default)]
#[repr(transparent)]
struct Count(AtomicU64);

impl Count {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed) // see the header: acknowledgements order the counts
    }

    fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    fn raise(&self, to: u64) {
        if to > self.get() {
            self.0.store(to, Ordering::Relaxed);
        }
    }
}

/// The counters of a shard as a whole.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct ShardCounts {
    /// Tasks and takes of rows that were sent.
    tasks: Count,
    /// Steps of all rows at once.
    batches: Count,
    /// Nanoseconds of the steps in the histogram.
    stepping: Count,
    /// Nanoseconds of resets and control calls.
    other: Count,
    /// Nanoseconds of the slowest step; where rows are timed together, the slowest mean.
    slowest: Count,
    step_times: [Count; BUCKETS],
}

/// The counters of one row.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct RowCounts {
    resets: Count,
    replacements: Count,
    /// Nanoseconds of its steps, and of the slowest one, where rows are timed one by one.
    stepping: Count,
    slowest: Count,
}

/// Steps of one row that were sent; steps of all rows at once are counted for the shard.
///
/// Separate from the row's other counters, so that a step of many rows touches few cache lines.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(super) struct SentCount(Count);

/// The counters of one shard and its rows, which are indexed from the shard's first row.
#[derive(Debug, Clone, Copy)]
pub struct Counters<'a> {
    pub(super) shard: &'a ShardCounts,
    pub(super) rows: &'a [RowCounts],
    pub(super) sent: &'a [SentCount],
}

impl Counters<'_> {
    /// Whether the next task should be timed.
    pub(crate) fn is_due(&self) -> bool {
        self.shard.tasks.get() % SAMPLED == FIRST_SAMPLED
    }

    /// All rows were stepped.
    pub(crate) fn count_batch(&self) {
        self.shard.tasks.add(1);
        self.shard.batches.add(1);
    }

    /// Some rows that were sent were taken from the queue.
    pub(crate) fn count_take(&self) {
        self.shard.tasks.add(1);
    }

    /// Rows that were sent were stepped.
    pub(crate) fn count_sent(&self, rows: Range<usize>) {
        self.sent[rows].iter().for_each(|sent| sent.0.add(1));
    }

    /// The environment of a row was reset `resets` times.
    pub fn count_resets(&self, row: usize, resets: u64) {
        self.rows[row].resets.add(resets);
    }

    /// The environment of a row failed and was replaced `times` times.
    pub fn count_replacements(&self, row: usize, times: u64) {
        self.rows[row].replacements.add(times);
    }

    /// One row was stepped, which took `spent`.
    pub fn time_step(&self, row: usize, spent: Duration) {
        let spent = nanoseconds(spent);
        self.rows[row].stepping.add(spent);
        self.rows[row].slowest.raise(spent);
        self.time(1, spent, spent);
    }

    /// `rows` rows were stepped, which took `spent` together; the time of each row is unknown.
    pub(crate) fn time_steps(&self, rows: usize, spent: Duration) {
        let (rows, spent) = (rows as u64, nanoseconds(spent));
        self.time(rows, spent, spent / rows.max(1));
    }

    fn time(&self, steps: u64, spent: u64, each: u64) {
        self.shard.stepping.add(spent);
        self.shard.slowest.raise(each);
        self.shard.step_times[bucket(each)].add(steps);
    }

    /// An operation other than a step took `spent`.
    pub fn time_other(&self, spent: Duration) {
        self.shard.other.add(nanoseconds(spent));
    }

    /// The counters of a row; the times are zero where rows are not timed one by one.
    pub(crate) fn row(&self, row: usize) -> RowStats {
        let counts = &self.rows[row];
        RowStats {
            // A corrupt worker may have written any number.
            steps: self.shard.batches.get().saturating_add(self.sent[row].0.get()),
            resets: counts.resets.get(),
            replacements: counts.replacements.get(),
            stepping: Duration::from_nanos(counts.stepping.get()),
            slowest: Duration::from_nanos(counts.slowest.get()),
        }
    }

    pub(crate) fn totals(&self) -> ShardTotals {
        ShardTotals {
            stepping: Duration::from_nanos(self.shard.stepping.get()),
            other: Duration::from_nanos(self.shard.other.get()),
            slowest: Duration::from_nanos(self.shard.slowest.get()),
            step_times: std::array::from_fn(|at| self.shard.step_times[at].get()),
        }
    }
}

/// The counters of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowStats {
    /// Steps, including those that reset the environment or repeated its last frame.
    pub steps: u64,
    /// Resets of its environment, both explicit resets and autoresets.
    pub resets: u64,
    /// Replacements of its environment after a failure.
    pub replacements: u64,
    /// Time of its steps. Where rows are not timed one by one, its share of the shard's time.
    pub stepping: Duration,
    /// Time of the slowest step; where rows are not timed one by one, of the shard's slowest.
    pub slowest: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ShardTotals {
    /// Time of the steps in the histogram.
    pub(crate) stepping: Duration,
    /// Time of resets and control calls.
    pub(crate) other: Duration,
    pub(crate) slowest: Duration,
    pub(crate) step_times: [u64; BUCKETS],
}

/// The whole nanoseconds of a time, as many as a counter holds.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The bucket of a step that took `nanoseconds`.
fn bucket(nanoseconds: u64) -> usize {
    (nanoseconds.max(1).ilog2() as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> (ShardCounts, [RowCounts; 2], [SentCount; 2]) {
        let count = Count::default;
        let shard = ShardCounts {
            tasks: count(),
            batches: count(),
            stepping: count(),
            other: count(),
            slowest: count(),
            step_times: std::array::from_fn(|_| count()),
        };
        (shard, Default::default(), Default::default())
    }

    #[test]
    fn a_bucket_ends_where_the_next_power_of_two_begins() {
        assert_eq!([0, 1, 2, 3, 4].map(bucket), [0, 0, 1, 1, 2]);
        for exponent in 1..BUCKETS {
            assert_eq!(
                [bucket((1 << exponent) - 1), bucket(1 << exponent)],
                [exponent - 1, exponent]
            );
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn rows_that_are_timed_together_count_one_by_one() {
        let (shard, rows, sent) = nothing();
        let counters = Counters { shard: &shard, rows: &rows, sent: &sent };
        counters.time_steps(2, Duration::from_nanos(2048));
        counters.time_step(1, Duration::from_nanos(4096));
        counters.time_step(1, Duration::from_nanos(512));
        let totals = counters.totals();
        assert_eq!([9, 10, 12].map(|bucket| totals.step_times[bucket]), [1, 2, 1]);
        assert_eq!(totals.step_times.iter().sum::<u64>(), 4);
        assert_eq!(totals.stepping, Duration::from_nanos(2048 + 4096 + 512));
        assert_eq!(totals.slowest, Duration::from_nanos(4096));
        assert_eq!(counters.row(0).stepping, Duration::ZERO);
        assert_eq!(counters.row(1).stepping, Duration::from_nanos(4096 + 512));
        assert_eq!(counters.row(1).slowest, Duration::from_nanos(4096));
    }

    #[test]
    fn counts_that_no_worker_can_reach_are_capped() {
        let (shard, rows, sent) = nothing();
        let counters = Counters { shard: &shard, rows: &rows, sent: &sent };
        shard.batches.add(u64::MAX);
        counters.count_sent(1..2);
        assert_eq!([0, 1].map(|row| counters.row(row).steps), [u64::MAX; 2]);
    }

    #[test]
    fn steps_of_all_rows_and_steps_that_were_sent_add_up() {
        let (shard, rows, sent) = nothing();
        let counters = Counters { shard: &shard, rows: &rows, sent: &sent };
        (0..3).for_each(|_| counters.count_batch());
        counters.count_sent(1..2);
        counters.count_resets(0, 2);
        counters.count_replacements(1, 1);
        assert_eq!([0, 1].map(|row| counters.row(row).steps), [3, 4]);
        assert_eq!([0, 1].map(|row| counters.row(row).resets), [2, 0]);
        assert_eq!([0, 1].map(|row| counters.row(row).replacements), [0, 1]);
    }
}
