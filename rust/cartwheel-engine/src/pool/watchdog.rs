//! Worker processes that hang.
//!
//! A worker makes progress when it takes a row out of its queue, and when it acknowledges a task. A
//! worker that holds work and has made no progress for the limit is killed. Its death is then noticed
//! like any other, and another process can replace the worker, whatever [`Policy::on_death`] says. A
//! worker with an empty queue holds no work, although its rows are in flight until they are received.
//!
//! The pool looks while it waits, and when it receives, every 50 ms. The time of a worker begins with
//! the first look after the worker got work or made progress, so a program that is busy elsewhere
//! between two calls kills no worker.
//!
//! [`Policy::on_death`]: super::Policy::on_death

use std::time::{Duration, Instant};

use super::{Pool, Workers};

/// A mark that changes whenever a worker gets work or makes progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    task: u32,
    pushed: u32,
    taken: u64,
}

/// The looks at all workers.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// The time that a worker may make no progress; `None`: forever.
    limit: Option<Duration>,
    /// For each worker, its last change and the look that found it.
    seen: Vec<Option<(Mark, Instant)>>,
    /// The workers that were killed because they hung, and have not been replaced.
    hung: Vec<bool>,
}

impl Watchdog {
    pub(super) fn new(workers: usize) -> Self {
        Self { limit: None, seen: vec![None; workers], hung: vec![false; workers] }
    }

    /// Whether a worker was killed because it hung.
    pub(super) fn is_hung(&self, worker: usize) -> bool {
        self.hung[worker]
    }

    /// Another process serves the worker.
    pub(super) fn replaced(&mut self, worker: usize) {
        (self.seen[worker], self.hung[worker]) = (None, false);
    }

    /// Whether a worker that holds work has made no progress for the limit.
    fn hangs(&mut self, worker: usize, mark: Mark, now: Instant) -> bool {
        let Some(limit) = self.limit else { return false };
        match self.seen[worker] {
            Some((seen, since)) if seen == mark => {
                self.hung[worker] = now.saturating_duration_since(since) >= limit;
            }
            _ => self.seen[worker] = Some((mark, now)),
        }
        self.hung[worker]
    }
}

impl Pool {
    /// From now on, a worker process that holds work and makes no progress for this long is killed,
    /// and [can be replaced](Pool::can_resume).
    pub fn kill_hung_after(&mut self, limit: Option<Duration>) {
        self.watchdog.limit = limit;
    }

    /// Whether this worker was killed because it hung, and has not been replaced.
    pub fn is_hung(&self, worker: usize) -> bool {
        self.watchdog.is_hung(worker)
    }

    /// Kills those of these workers that hang. They owe an acknowledgement, or have rows in flight.
    pub(super) fn kill_hung(&mut self, workers: &[usize]) {
        let Workers::Processes(handles) = &self.workers else { return };
        if self.watchdog.limit.is_none() {
            return;
        }
        let now = Instant::now();
        for &worker in workers {
            let queue = self.memory.control.queue(worker);
            if self.pending.is_none() && queue.is_empty() {
                continue;
            }
            let mark = Mark { task: self.task, pushed: queue.pushed(), taken: queue.taken() };
            if self.watchdog.hangs(worker, mark, now) {
                handles[worker].kill();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_worker_without_progress_for_the_limit_hangs() {
        let mut watchdog = Watchdog::new(1);
        watchdog.limit = Some(Duration::from_secs(5));
        let (start, mark) = (Instant::now(), Mark { task: 1, pushed: 0, taken: 0 });
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(!watchdog.hangs(0, mark, start));
        assert!(!watchdog.hangs(0, mark, after(4)));
        for changed in
            [Mark { taken: 1, ..mark }, Mark { pushed: 1, ..mark }, Mark { task: 2, ..mark }]
        {
            assert!(!watchdog.hangs(0, changed, after(100)), "{changed:?}");
            assert!(!watchdog.hangs(0, changed, after(104)));
            assert!(!watchdog.hangs(0, mark, after(200)));
        }
        assert!(watchdog.hangs(0, mark, after(205)));
        assert!(watchdog.is_hung(0));
        watchdog.replaced(0);
        assert!(!watchdog.hangs(0, mark, after(300)), "the time of the next process begins again");
    }
}
