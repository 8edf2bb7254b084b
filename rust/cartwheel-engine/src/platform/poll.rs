//! Waiting without help from the kernel: looking, in growing intervals.
//!
//! Each interval is an eighth of the time that was waited so far. So a wait takes an eighth longer
//! than it must, and a long wait costs no processor. No wake-up can be lost, and a process that dies
//! holds nothing on which others wait: a lock in shared memory would need *robust* mutexes, which
//! macOS does not have.
//!
//! The bounds: no sleep is shorter than the 20 µs below which systems do not sleep anyway, and none
//! is longer than a millisecond. An idle worker looks at its word about a thousand times a second,
//! which is 1 to 2 % of a processor. macOS has had a futex of its own since version 14.4
//! (`os_sync_wait_on_address`), to which this could give way.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The part of the time waited that one more sleep takes.
const PART: u32 = 8;
const MIN_SLICE: Duration = Duration::from_micros(20);
const MAX_SLICE: Duration = Duration::from_millis(1);

/// Sleeps while `word` is `expected`, for at most `timeout`.
///
/// The word is only compared: code that acts upon it loads it again, with an order.
pub(super) fn word(word: &AtomicU32, expected: u32, timeout: Duration) {
    until(timeout, || word.load(Ordering::Relaxed) != expected);
}

/// Looks until `ready` returns `true`, for at most `timeout`; returns whether it did.
pub(super) fn until(timeout: Duration, mut ready: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if ready() {
            return true;
        }
        let waited = began.elapsed();
        let left = timeout.saturating_sub(waited);
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(next(waited).min(left));
    }
}

/// The sleep after a wait of this length.
fn next(waited: Duration) -> Duration {
    (waited / PART).clamp(MIN_SLICE, MAX_SLICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wait_is_an_eighth_longer_than_it_must_be_and_few_looks_are_enough() {
        let (mut waited, mut looks) = (Duration::ZERO, 0);
        while waited < Duration::from_millis(50) {
            let slept = next(waited);
            assert!(slept <= (waited / PART).max(MIN_SLICE), "{slept:?} after {waited:?}");
            assert!((MIN_SLICE..=MAX_SLICE).contains(&slept));
            (waited, looks) = (waited + slept, looks + 1);
        }
        assert!(looks < 100, "{looks} looks in {waited:?}");
    }

    #[test]
    fn a_changed_word_ends_the_wait_and_so_does_the_timeout() {
        let (changed, began) = (AtomicU32::new(1), Instant::now());
        word(&changed, 0, Duration::from_secs(3600));
        std::thread::scope(|scope| {
            scope.spawn(|| changed.store(2, Ordering::Relaxed));
            word(&changed, 1, Duration::from_secs(3600));
        });
        assert!(began.elapsed() < Duration::from_secs(3600));
        word(&changed, 2, Duration::from_millis(1));
        assert!(began.elapsed() >= Duration::from_millis(1));
        assert!(!until(Duration::ZERO, || false), "without time, it does not sleep");
    }
}
