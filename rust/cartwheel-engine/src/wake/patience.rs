//! How long to poll before sleeping.
//!
//! Waking a sleeper on another processor takes 12 to 70 µs on virtual machines, far longer than the
//! few cheap steps of which a task may consist. Polling the word takes 0.1 µs, as long as the other
//! side has a processor to run on. So there are two stages before sleep: *polling* (with the
//! processor's pause instruction), when there is a processor for every worker and for the pool; and
//! *yielding* (`sched_yield` between polls), which costs other threads nothing when processors are
//! scarce, because the kernel runs them first.
//!
//! The length of both stages follows experience. A wait that succeeds within its patience keeps it;
//! several failures in a row shorten it to nothing, apart from an occasional trial, at growing
//! intervals. So a pool whose caller computes for milliseconds between steps soon stops spending
//! processor time on polling.

use std::time::{Duration, Instant};

use super::trials::Trials;

/// Longest time spent polling and yielding before one sleep.
const LONGEST: Duration = Duration::from_micros(300);
/// Number of failed waits in a row after which patience is lost.
const LOST_AFTER: u32 = 3;
/// Number of polls between two readings of the clock.
const LOOKS: u32 = 64;

/// The patience of one waiter.
#[derive(Debug)]
pub struct Patience {
    /// Every thread has a processor: poll without yielding first.
    roomy: bool,
    enabled: bool,
    failures: u32,
    trials: Trials,
}

impl Patience {
    /// For a waiter among `parties` (working threads, and the pool's thread) on `cpus` processors.
    pub fn new(parties: usize, cpus: usize, enabled: bool) -> Self {
        let roomy = parties <= cpus;
        Self { roomy, enabled, failures: 0, trials: Trials::default() }
    }

    /// Polls until `ready` returns `true` or patience ends; returns whether it was ready.
    pub fn wait(&mut self, mut ready: impl FnMut() -> bool) -> bool {
        if ready() {
            return true;
        }
        if !self.enabled {
            return false;
        }
        if self.failures >= LOST_AFTER && !self.trials.is_due() {
            return false;
        }
        if self.look(ready) {
            self.failures = 0;
            self.trials.succeeded();
            return true;
        }
        self.failures += 1;
        if self.failures > LOST_AFTER {
            self.trials.failed();
        } else {
            self.trials.put_off();
        }
        false
    }

    fn look(&self, mut ready: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        loop {
            if self.roomy {
                for _ in 0..LOOKS {
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
            if start.elapsed() >= LONGEST {
                return false;
            }
        }
    }
}
