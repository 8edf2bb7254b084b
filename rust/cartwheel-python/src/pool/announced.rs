//! Messages that workers send besides their batches: faults, infos that did not fit, answers to
//! control calls.
//!
//! A worker announces such a message together with its acknowledgement, and numbers it. The
//! receiver counts the announcements, here and before any Python code runs. So when an exception,
//! such as Ctrl-C, prevents the receipt of a message, the count is still right. The message is
//! skipped when a later one is received, so a message is never mistaken for another.

use std::collections::HashMap;

use cartwheel_engine::memory::InfosAt;
use cartwheel_engine::pool::{Event, Pool, Received};

/// A message: its worker, its row (`None` for a task's message, which concerns all rows), and its
/// number.
pub(crate) type Message = (usize, Option<usize>, u64);

/// Number of messages that each worker has announced so far.
///
/// A process that replaces a dead worker continues to count, from a number above all that the dead
/// worker can have used. So a number identifies the sender, also for rows that the dead worker
/// stepped and that were not received yet.
#[derive(Debug)]
pub(crate) struct Announced {
    /// The number of the last message of each worker's process.
    counts: Vec<u64>,
    /// The same for processes that died and whose results were not received yet.
    dead: Vec<u64>,
    /// The rows with those results, and the index of their process in `dead`.
    left: HashMap<usize, usize>,
}

/// What the workers announced with one batch.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// The reasons why rows failed.
    pub(crate) faults: Vec<Message>,
    /// Infos that did not fit into shared memory, in the order in which they were announced.
    pub(crate) rests: Vec<Message>,
}

impl Announced {
    pub(crate) fn new(workers: usize) -> Self {
        Self { counts: vec![0; workers], dead: Vec::new(), left: HashMap::new() }
    }

    /// The number of the next message of a worker, about this row or a task that begins with it; the
    /// first number is 1.
    fn next(&mut self, worker: usize, row: usize) -> u64 {
        let dead = self.left.get(&row);
        let count = dead.map_or(&mut self.counts[worker], |&process| &mut self.dead[process]);
        *count += 1;
        *count
    }

    /// The number from which a process that replaces a worker has to continue.
    pub(crate) fn next_process(&self, pool: &Pool, worker: usize) -> u64 {
        // For each row that was not received: a fault and infos.
        self.counts[worker] + 2 * pool.shards()[worker].len() as u64
    }

    /// Another process has replaced a worker, which left the results of these rows.
    pub(crate) fn follow(&mut self, pool: &Pool, worker: usize, left: Vec<usize>) {
        let count = self.next_process(pool, worker);
        let before = std::mem::replace(&mut self.counts[worker], count);
        let process = self.dead.len();
        for row in left {
            self.left.entry(row).or_insert(process); // unless an earlier process left them
        }
        self.dead.push(before);
    }

    fn forget(&mut self, received: &[usize]) {
        if !self.left.is_empty() {
            self.left.retain(|row, _| !received.contains(row));
        }
        if self.left.is_empty() {
            self.dead.clear();
        }
    }

    /// The messages that were announced with what a call returned.
    pub(crate) fn with(&mut self, pool: &Pool, received: &Received) -> Messages {
        let mut messages = Messages::default();
        for event in received.events() {
            match event {
                Event::Failed(row) => {
                    let worker = pool.shard_of(row);
                    let of = received.rows.sent().map(|_| row);
                    messages.faults.push((worker, of, self.next(worker, row)));
                }
                Event::Infos(row, InfosAt::Channel) => {
                    let worker = pool.shard_of(row);
                    messages.rests.push((worker, Some(row), self.next(worker, row)));
                }
                Event::Infos(_, InfosAt::Memory(_)) => {}
            }
        }
        self.forget(received.rows.sent().unwrap_or_default());
        messages
    }
}
