//! The division of rows into contiguous shards, computed once.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Deals `rows` rows to `workers` workers as contiguous ranges whose lengths differ by at most one.
///
/// Results never depend on the division; it only decides which worker steps which row. If there are
/// more workers than rows, no range is empty: fewer ranges are returned.
///
/// ```
/// assert_eq!(cartwheel_core::schedule::shards(5, 2), vec![0..3, 3..5]);
/// assert_eq!(cartwheel_core::schedule::shards(1, 7), vec![0..1]);
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

/// Runs of neighboring rows among rows that are named in sequence.
///
/// ```
/// let runs = cartwheel_core::schedule::runs(&[4, 5, 6, 0, 1, 9]);
/// assert_eq!(runs.collect::<Vec<_>>(), vec![4..7, 0..2, 9..10]);
/// ```
pub fn runs(rows: &[usize]) -> impl Iterator<Item = Range<usize>> + '_ {
    // Mostly there is one run. A loop without an exit finds out, which is compiled for vectors.
    let first = rows.first().copied().unwrap_or_default();
    let from = |(at, row): (usize, &usize)| row.wrapping_sub(at);
    let others = rows.iter().enumerate().fold(0, |any, row| any | (from(row) ^ first));
    let end = first.checked_add(rows.len()).filter(|_| others == 0);
    let several = if end.is_some() { &[] } else { rows };
    let several = several.chunk_by(|before, row| before.checked_add(1) == Some(*row));
    let one = end.map(|end| first..end).filter(|run| !run.is_empty());
    one.into_iter().chain(several.map(|run| run[0]..run[run.len() - 1].saturating_add(1)))
}

/// The result of [`read_most_cpus`]; 0 before it was called.
static MAX_CPUS: AtomicUsize = AtomicUsize::new(0);

/// Number of processors that the calling thread may use, respecting affinity and cgroup quota; at
/// least 1. A thread that is pinned may use one.
///
/// `CARTWHEEL_CPUS` in the environment makes it fewer, for schedulers that deal out processors by
/// agreement alone, as Ray does; 0 counts as 1. It is read by the first call, which ignores a text that
/// is not such a number, and by [`read_most_cpus`], which refuses it.
pub fn usable_cpus() -> usize {
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // `Relaxed`: a number that every thread computes alike.
    let max = match MAX_CPUS.load(Ordering::Relaxed) {
        0 => read_most_cpus().unwrap_or(usize::MAX),
        max => max,
    };
    max.min(all)
}

/// Reads `CARTWHEEL_CPUS` for the next calls of [`usable_cpus`]. No thread may change the environment
/// meanwhile, which C libraries do without a lock; so threads of workers and estimators do not read
/// it.
///
/// # Errors
///
/// The text, if it is not an integer from 0 on; then it limits nothing.
pub fn read_most_cpus() -> Result<usize, String> {
    let max = match std::env::var_os("CARTWHEEL_CPUS") {
        None => Ok(usize::MAX),
        Some(text) => {
            let max = text.to_str().and_then(|text| text.trim().parse::<usize>().ok());
            max.map(|max| max.max(1)).ok_or_else(|| text.to_string_lossy().into_owned())
        }
    };
    MAX_CPUS.store(*max.as_ref().unwrap_or(&usize::MAX), Ordering::Relaxed);
    max
}

/// Where the shards of one thread end, in parts of its share of the rows of native environments: each
/// takes half of the rest. They are few, since each one costs something, and the last ones are
/// small, since a batch ends with its last shard. The first one may be large: a thread that is three
/// times slower has finished it when the others have taken everything else.
const ENDS: [usize; 6] = [16, 24, 28, 30, 31, 32];

/// The parts of a share.
const PARTS: usize = 32;

/// The most rows of a thread that are shards of their own, if they are stepped one by one.
const MAX_ALONE: usize = 10;

/// The most rows of a shard, and of one whose rows are stepped one by one: these take longer to make.
/// Rows are made shard by shard, and a signal is noticed between two of them.
const MAX_SEGMENT: usize = 65_536;
const MAX_SEGMENT_ONE_BY_ONE: usize = 1024;

/// Divides rows of native environments for `threads` threads that take shards from each other; one
/// thread gets a single shard, unless it is too long.
///
/// Rows that are stepped in blocks of `block` are divided at block boundaries, because rows outside
/// a block are stepped one by one: every shard begins at a multiple of `block`, and the last shard
/// gets the remaining rows. The rows of two threads differ by at most a block. Blocks are cut only
/// where there are fewer blocks than threads.
///
/// ```
/// use cartwheel_core::schedule::fine_shards;
///
/// assert_eq!(fine_shards(100, 2, 1).len(), 12);
/// assert_eq!(fine_shards(100, 2, 32), vec![0..32, 32..64, 64..100]);
/// assert_eq!(fine_shards(20, 2, 32), vec![0..10, 10..20]);
/// assert_eq!(fine_shards(100, 1, 1), vec![0..100]);
/// ```
pub fn fine_shards(rows: usize, threads: usize, block: usize) -> Vec<Range<usize>> {
    let block = block.max(1);
    let dealt = dealt(rows, threads, block);
    let max_segment = if block > 1 { MAX_SEGMENT } else { MAX_SEGMENT_ONE_BY_ONE };
    if dealt.iter().all(|shard| shard.len() <= max_segment) {
        return dealt;
    }
    // A thread pool gives each thread the same number of shards, so the shards of all threads at the same
    // place are cut into as many parts.
    let of_thread = (dealt.len() / threads.max(1)).max(1);
    let in_parts = |(at, shard): (usize, &Range<usize>)| {
        let alike = dealt.iter().skip(at % of_thread).step_by(of_thread);
        let parts = alike.map(|shard| shard.len().div_ceil(max_segment)).max().unwrap_or(1);
        let blocks = shards(shard.len() / block, parts).into_iter();
        let mut rows: Vec<_> = blocks
            .map(|part| shard.start + block * part.start..shard.start + block * part.end)
            .collect();
        if let Some(last) = rows.last_mut() {
            last.end = shard.end;
        }
        rows
    };
    dealt.iter().enumerate().flat_map(in_parts).collect()
}

/// [`fine_shards`] of any length.
fn dealt(rows: usize, threads: usize, block: usize) -> Vec<Range<usize>> {
    let blocks = rows / block;
    if threads <= 1 || blocks < threads {
        return shards(rows, threads);
    }
    if block == 1 && rows <= threads * MAX_ALONE {
        return shards(rows, rows); // no row waits for another one, however uneven they are
    }
    // Divided by thread first, as a thread pool divides the shards, so that each thread gets its part of
    // the blocks.
    let mut dealt = Vec::new();
    for share in shards(blocks, threads) {
        let mut first = share.start;
        // Rounded up: what does not divide evenly makes a first shard longer, not the last one.
        for end in ENDS {
            let end = share.start + (share.len() * end).div_ceil(PARTS);
            if end > first {
                dealt.push(block * first..block * end);
                first = end;
            }
        }
    }
    if let Some(last) = dealt.last_mut() {
        last.end = rows;
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows, threads and blocks.
    fn cases() -> impl Iterator<Item = (usize, usize, usize)> {
        let rows = (1..300).chain([1000, 1024, 4095, 4096, 4097, 65_536]);
        rows.flat_map(|rows| {
            let threads = [1, 2, 3, 7, 16].into_iter();
            threads.flat_map(move |threads| [1, 7, 32, 64].map(|block| (rows, threads, block)))
        })
    }

    #[test]
    fn runs_are_the_rows_that_follow_each_other() {
        let last = usize::MAX; // no row, but a caller may name it
        let cases: [(&[usize], &str); 6] = [
            (&[], "[]"),
            (&[7], "[7..8]"),
            (&[3, 4, 4, 5], "[3..5, 4..6]"),
            (&[2, 1, 0], "[2..3, 1..2, 0..1]"),
            (&[0, 1, 2, 3, 4, 5, 6, 7, 8], "[0..9]"),
            (&[last, 0, 1], &format!("[{last}..{last}, 0..2]")),
        ];
        for (rows, expected) in cases {
            assert_eq!(format!("{:?}", runs(rows).collect::<Vec<_>>()), expected, "{rows:?}");
        }
    }

    #[test]
    fn workers_get_neighboring_rows_as_many_as_others_or_one_more() {
        for (rows, workers) in (1..300).flat_map(|rows| (1..40).map(move |workers| (rows, workers)))
        {
            let dealt = shards(rows, workers);
            assert_eq!(dealt.len(), rows.min(workers));
            let mut end = 0;
            for shard in &dealt {
                assert_eq!(shard.start, end);
                end = shard.end;
                assert!([0, 1].contains(&(shard.len() - rows / dealt.len())), "{dealt:?}");
            }
            assert_eq!(end, rows);
        }
    }

    #[test]
    fn every_row_is_dealt_once_and_no_shard_is_empty() {
        for (rows, threads, block) in cases() {
            let shards = fine_shards(rows, threads, block);
            let mut end = 0;
            for shard in &shards {
                assert!(shard.start == end && shard.end > end, "{shards:?}");
                end = shard.end;
            }
            assert_eq!(end, rows);
            assert!(shards.len() >= threads.min(rows), "{shards:?} for {threads} threads");
            let max_segment = if block > 1 { MAX_SEGMENT } else { MAX_SEGMENT_ONE_BY_ONE };
            assert!(shards.iter().all(|shard| shard.len() <= max_segment + block), "{shards:?}");
            let max = (threads * ENDS.len().max(MAX_ALONE)).max(2 * rows.div_ceil(max_segment));
            assert!(shards.len() <= max, "{} shards for {threads} threads", shards.len());
        }
    }

    #[test]
    fn blocks_are_whole_wherever_there_are_enough_of_them() {
        assert_eq!(fine_shards(1000, 2, 64).len(), 7);
        for (rows, threads, block) in cases() {
            let shards = fine_shards(rows, threads, block);
            let whole = shards.iter().all(|shard| shard.start % block == 0);
            assert!(whole || rows / block < threads, "{shards:?}, blocks of {block}");
        }
    }

    #[test]
    fn no_thread_of_a_thread_pool_has_a_block_more_than_another() {
        for (rows, threads, block) in cases() {
            let dealt = fine_shards(rows, threads, block);
            // As a thread pool divides them.
            let shares = shards(dealt.len(), threads).into_iter();
            let rows: Vec<usize> =
                shares.map(|share| dealt[share.end - 1].end - dealt[share.start].start).collect();
            let (min, max) = (rows.iter().min(), rows.iter().max());
            let within = max.zip(min).is_some_and(|(max, min)| max - min <= block);
            assert!(within, "{rows:?}, blocks of {block}");
        }
    }
}
