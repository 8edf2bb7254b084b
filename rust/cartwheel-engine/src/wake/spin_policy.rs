//! Policy of polling before sleeping.
//!
//! Waking a sleeper on another processor takes 12 to 70 µs on virtual machines, far longer than the
//! few cheap steps of which a task may consist. Polling the word takes 0.1 µs, as long as the other
//! side has a processor to run on. So there are two stages before sleep: *polling* (with the
//! processor's pause instruction), when there is a processor for every worker and for the pool; and
//! *yielding* (`sched_yield` between polls), which costs other threads nothing when processors are
//! scarce, because the kernel runs them first.
//!
//! The length of both stages depends on what is waited for (`caller.rs`). Workers that are busy
//! with a batch are waited for [`MAX_SPIN`]: no other thread needs this processor, and a waiter
//! that sleeps begins the next batch late and with cold caches. Between its calls the caller needs
//! processors itself: it is waited for [`MAX_SPIN_BETWEEN_CALLS`], and not at all if the last time
//! between calls was longer. Where workers outnumber the processors, other threads do need this
//! one, and no wait polls longer than [`OVERSUBSCRIBED_SPIN_LIMIT`]: 8 workers on 2 processors,
//! each with 4 environments of 50 µs, took 8 % longer with [`MAX_SPIN`], and an eighth more
//! processor time.
//!
//! The policy also follows experience. A wait that succeeds while it polls keeps polling on; several
//! failures in a row end it, apart from an occasional trial, at growing intervals ([`Backoff`]). So
//! environments that compute for many milliseconds soon cost no polling.

use std::time::{Duration, Instant};

use super::backoff::Backoff;
use super::caller::Caller;

/// Longest time spent polling and yielding before one sleep.
const MAX_SPIN: Duration = Duration::from_millis(3);
/// Longest time of it for a caller that is between two calls.
const MAX_SPIN_BETWEEN_CALLS: Duration = Duration::from_micros(300);
/// Longest time of it where workers outnumber the processors.
const OVERSUBSCRIBED_SPIN_LIMIT: Duration = Duration::from_micros(50);
/// Number of failed waits in a row after which polling ends.
const MAX_FAILURES: u32 = 3;
/// Number of polls between two readings of the clock.
const POLLS_PER_CLOCK_READ: u32 = 64;

/// The polling of one waiter.
#[derive(Debug)]
pub(crate) struct SpinPolicy {
    /// Every thread has a processor: poll without yielding first.
    has_processors: bool,
    /// The longest polling for busy workers.
    max_spin: Duration,
    enabled: bool,
    failures: u32,
    backoff: Backoff,
}

impl SpinPolicy {
    /// For a waiter among `parties` (working threads, and the pool's thread) on `cpus` processors.
    pub(crate) fn new(parties: usize, cpus: usize, enabled: bool) -> Self {
        let has_processors = parties <= cpus;
        // The pool's thread waits while workers work, so it needs no processor of its own.
        let max_spin = if parties <= cpus + 1 { MAX_SPIN } else { OVERSUBSCRIBED_SPIN_LIMIT };
        Self { has_processors, max_spin, enabled, failures: 0, backoff: Backoff::default() }
    }

    /// Polls until `ready` returns `true` or the policy ends it; returns whether it was ready.
    ///
    /// A worker passes the `caller`, which may be between two calls; the caller itself waits for workers.
    pub(crate) fn wait(
        &mut self,
        caller: Option<&Caller>,
        mut ready: impl FnMut() -> bool,
    ) -> bool {
        if ready() {
            return true;
        }
        if !self.enabled
            || caller.is_some_and(|caller| caller.time_between_calls() > MAX_SPIN_BETWEEN_CALLS)
        {
            return false;
        }
        if self.failures >= MAX_FAILURES && !self.backoff.is_due() {
            return false;
        }
        if self.look(caller, ready) {
            self.failures = 0;
            self.backoff.succeeded();
            return true;
        }
        self.failures += 1;
        if self.failures > MAX_FAILURES {
            self.backoff.failed();
        } else {
            self.backoff.put_off();
        }
        false
    }

    fn look(&self, caller: Option<&Caller>, mut ready: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        // Since when, counted from the start, the caller has been between two calls.
        let mut idle_since = None;
        loop {
            if self.has_processors {
                for _ in 0..POLLS_PER_CLOCK_READ {
                    if ready() {
                        return true;
                    }
                    std::hint::spin_loop();
                }
            } else {
                std::thread::yield_now();
                if ready() {
                    return true;
                }
            }
            let looked = start.elapsed();
            let limit = match caller {
                Some(caller) if !caller.waits() => {
                    *idle_since.get_or_insert(looked) + MAX_SPIN_BETWEEN_CALLS
                }
                _ => {
                    idle_since = None;
                    self.max_spin
                }
            };
            if looked >= limit.min(self.max_spin) {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the vain polls of a waiter while the caller waits, or is between two calls that are
    /// this far apart.
    fn looks(time_between_calls: Duration, waits: bool) -> u32 {
        let caller = Caller::default();
        caller.set_time_between_calls(time_between_calls);
        caller.set_waits(waits);
        let mut looks = 0;
        let found = SpinPolicy::new(1, 1, true).wait(Some(&caller), || {
            looks += 1;
            false
        });
        assert!(!found);
        looks
    }

    #[test]
    fn no_worker_polls_while_the_caller_is_between_distant_calls() {
        for waits in [false, true] {
            assert_eq!(looks(MAX_SPIN_BETWEEN_CALLS * 2, waits), 1);
        }
    }

    #[test]
    fn a_caller_that_waits_or_calls_soon_is_polled_for() {
        for waits in [false, true] {
            assert!(looks(MAX_SPIN_BETWEEN_CALLS, waits) > 1);
        }
    }
}
