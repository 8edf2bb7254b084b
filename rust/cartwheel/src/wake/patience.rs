//! How long to look before sleeping.
//!
//! Waking a sleeper on another processor takes 12 to 70 µs on virtual machines, far longer than
//! the handful of cheap steps that a task may consist of; looking at the word instead takes
//! 0.1 µs, as long as the one who is waited for has a processor to run on. Hence two stages before
//! sleep: *looking* (with the processor's pause instruction), when there is a processor for every
//! worker and for the pool; and *yielding* (`sched_yield` between looks), which costs the others
//! nothing when processors are scarce, because the kernel runs them first.
//!
//! Both stages end after a time that follows what was seen: a wait that succeeded within its
//! patience keeps it; several in a row that did not shorten it to nothing, apart from a trial now
//! and then, more and more rarely. A pool whose caller thinks for milliseconds between steps
//! therefore soon stops spending processor time on looking.

use std::time::{Duration, Instant};

use super::trials::Trials;

/// Most time spent looking and yielding before one sleep.
const LONGEST: Duration = Duration::from_micros(300);
/// Failed waits in a row after which patience is lost.
const LOST_AFTER: u32 = 3;
/// Looks between two glances at the clock.
const LOOKS: u32 = 64;

/// The memory of one waiter.
#[derive(Debug)]
pub struct Patience {
    /// A processor for everyone: look without yielding first.
    roomy: bool,
    enabled: bool,
    failures: u32,
    trials: Trials,
}

impl Patience {
    /// For a waiter among `parties` (threads that work, and the pool's) on `cpus` processors.
    pub fn new(parties: usize, cpus: usize, enabled: bool) -> Self {
        let roomy = parties <= cpus;
        Self { roomy, enabled, failures: 0, trials: Trials::default() }
    }

    /// Looks until `ready`, or until patience ends; whether it was ready.
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
                rustix::thread::sched_yield();
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
