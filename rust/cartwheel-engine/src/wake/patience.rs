//! How long to poll before sleeping.
//!
//! Waking a sleeper on another processor takes 12 to 70 µs on virtual machines, far longer than the
//! few cheap steps of which a task may consist. Polling the word takes 0.1 µs, as long as the other
//! side has a processor to run on. So there are two stages before sleep: *polling* (with the
//! processor's pause instruction), when there is a processor for every worker and for the pool; and
//! *yielding* (`sched_yield` between polls), which costs other threads nothing when processors are
//! scarce, because the kernel runs them first.
//!
//! How long both stages last depends on what is waited for (`caller.rs`). Workers that are busy with
//! a batch are waited for [`LONGEST`]: nobody else needs this processor, and whoever sleeps begins the
//! next batch late and with cold caches. A caller that thinks needs processors itself: it is waited
//! for [`BRIEFLY`], and not at all if its last thought took longer. Where workers outnumber the
//! processors, others do need this one, and nobody is waited for longer than [`CROWDED`]: 8 workers on
//! 2 processors, each with 4 environments of 50 µs, took 8 % longer with [`LONGEST`], and an eighth
//! more processor time.
//!
//! Besides, patience follows experience. A wait that succeeds within it keeps it; several failures in
//! a row shorten it to nothing, apart from an occasional trial, at growing intervals. So environments
//! that compute for many milliseconds soon cost no polling.

use std::time::{Duration, Instant};

use super::caller::Caller;
use super::trials::Trials;

/// Longest time spent polling and yielding before one sleep.
const LONGEST: Duration = Duration::from_millis(3);
/// The part of it that is spent on a caller that thinks.
const BRIEFLY: Duration = Duration::from_micros(300);
/// Longest time of it where workers outnumber the processors.
const CROWDED: Duration = Duration::from_micros(50);
/// Number of failed waits in a row after which patience is lost.
const LOST_AFTER: u32 = 3;
/// Number of polls between two readings of the clock.
const LOOKS: u32 = 64;

/// The patience of one waiter.
#[derive(Debug)]
pub struct Patience {
    /// Every thread has a processor: poll without yielding first.
    roomy: bool,
    /// How long it polls for busy workers at most.
    longest: Duration,
    enabled: bool,
    failures: u32,
    trials: Trials,
}

impl Patience {
    /// For a waiter among `parties` (working threads, and the pool's thread) on `cpus` processors.
    pub fn new(parties: usize, cpus: usize, enabled: bool) -> Self {
        let roomy = parties <= cpus;
        // The pool's thread waits while workers work, so it needs no processor of its own.
        let longest = if parties <= cpus + 1 { LONGEST } else { CROWDED };
        Self { roomy, longest, enabled, failures: 0, trials: Trials::default() }
    }

    /// Polls until `ready` returns `true` or patience ends; returns whether it was ready.
    ///
    /// A worker names the `caller`, who may be thinking; the caller itself waits for workers.
    pub fn wait(&mut self, caller: Option<&Caller>, mut ready: impl FnMut() -> bool) -> bool {
        if ready() {
            return true;
        }
        if !self.enabled || caller.is_some_and(|caller| caller.thought() > BRIEFLY) {
            return false;
        }
        if self.failures >= LOST_AFTER && !self.trials.is_due() {
            return false;
        }
        if self.look(caller, ready) {
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

    fn look(&self, caller: Option<&Caller>, mut ready: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        // Since when, counted from the start, the caller thinks.
        let mut thinks = None;
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
            let looked = start.elapsed();
            let limit = match caller {
                Some(caller) if !caller.waits() => *thinks.get_or_insert(looked) + BRIEFLY,
                _ => {
                    thinks = None;
                    self.longest
                }
            };
            if looked >= limit.min(self.longest) {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a waiter looks in vain, beside a caller that waits, or thinks, and whose last
    /// thought took so long.
    fn looks(thought: Duration, waits: bool) -> u32 {
        let caller = Caller::default();
        caller.set_thought(thought);
        caller.set_waits(waits);
        let mut looks = 0;
        let found = Patience::new(1, 1, true).wait(Some(&caller), || {
            looks += 1;
            false
        });
        assert!(!found);
        looks
    }

    #[test]
    fn nobody_polls_beside_a_caller_that_thinks_for_long() {
        for waits in [false, true] {
            assert_eq!(looks(BRIEFLY * 2, waits), 1);
        }
    }

    #[test]
    fn a_caller_that_waits_or_thinks_briefly_is_polled_for() {
        for waits in [false, true] {
            assert!(looks(BRIEFLY, waits) > 1);
        }
    }
}
