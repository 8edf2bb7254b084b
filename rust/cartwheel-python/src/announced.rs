//! What workers send beside their batches: faults, infos that did not fit, answers to control calls.
//!
//! A worker announces such a message with what it acknowledges, and numbers it. Whoever receives counts
//! the announcements, here and before any Python code runs. So when an exception, such as Ctrl-C, keeps a
//! message from being received, the count is right all the same, and the message is passed over when a
//! later one is received: nothing is ever taken for something else.

use cartwheel::memory::Told;
use cartwheel::pool::{Event, Pool, Received};
use cartwheel::worker::Report;

/// A message: its worker, the row it is about (a task's is about all), and its number.
pub(crate) type Message = (usize, Option<usize>, u64);

/// How many messages each worker has announced so far.
#[derive(Debug)]
pub(crate) struct Announced {
    counts: Vec<u64>,
}

/// What the workers announced with one batch.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Why rows failed.
    pub(crate) faults: Vec<Message>,
    /// Infos that did not fit into shared memory, in the order in which they were announced.
    pub(crate) rests: Vec<Message>,
}

impl Announced {
    pub(crate) fn new(workers: usize) -> Self {
        Self { counts: vec![0; workers] }
    }

    /// The number of the next message of a worker; the first is 1.
    pub(crate) fn next(&mut self, worker: usize) -> u64 {
        self.counts[worker] += 1;
        self.counts[worker]
    }

    /// Another process is in the place of a worker, and begins to count.
    pub(crate) fn forget(&mut self, worker: usize) {
        self.counts[worker] = 0;
    }

    /// The messages of the task that finished last.
    pub(crate) fn with_task(&mut self, pool: &Pool) -> Messages {
        let mut messages = Messages::default();
        for (worker, report) in pool.reports().enumerate() {
            if report == Report::default() {
                continue;
            }
            if report.failed {
                messages.faults.push((worker, None, self.next(worker)));
            }
            if report.spilled {
                let first = pool.shards()[worker].start;
                messages.rests.push((worker, Some(first), self.next(worker)));
            }
        }
        messages
    }

    /// The messages of rows that were sent and received.
    pub(crate) fn with_rows(&mut self, pool: &Pool, received: &Received) -> Messages {
        let mut messages = Messages::default();
        for event in received.events() {
            match event {
                Event::Failed(row) => {
                    let worker = pool.shard_of(row);
                    messages.faults.push((worker, Some(row), self.next(worker)));
                }
                Event::Infos(row, Told::Spilled) => {
                    let worker = pool.shard_of(row);
                    messages.rests.push((worker, Some(row), self.next(worker)));
                }
                Event::Infos(_, Told::Bytes(_)) => {}
            }
        }
        messages
    }
}
