//! The event count: a word on which up to 32 workers sleep, each with a bit of its own, so that one system
//! call wakes all that are needed.
//!
//! A task word stays in the word of its worker. The event count only says how often a sleeper was woken, so a
//! worker can tell a wake-up that happened just before it fell asleep: it loads the event count, looks at its
//! own word once more, and sleeps while the event count is what it loaded.

use std::time::Duration;

use super::parker::hand;
use super::task_word::TaskWord;
use super::word::{EventCount, Word};
use crate::sync::Ordering;

/// Most workers that share an event count: a futex knows 32 bits.
pub(crate) const SLEEPERS: usize = u32::BITS as usize;

/// A worker's word, with its place at the event count that it shares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sleeper<W, A> {
    word: W,
    event_count: A,
    worker: usize,
}

impl<W: Word, A: EventCount> Sleeper<W, A> {
    /// Worker `worker`, whose task words come to `word`. The first [`SLEEPERS`] workers have one
    /// `event_count`, the next ones have the next.
    pub(crate) fn new(worker: usize, word: W, event_count: A) -> Self {
        Self { word, event_count, worker }
    }

    fn group(&self) -> usize {
        self.worker / SLEEPERS
    }

    fn bit(&self) -> u32 {
        1 << (self.worker % SLEEPERS)
    }
}

impl<W: Word, A: EventCount> Word for Sleeper<W, A> {
    fn load(&self) -> u32 {
        self.word.load()
    }

    fn swap(&self, value: u32) -> u32 {
        self.word.swap(value)
    }

    fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
        self.word.compare_exchange(current, new)
    }

    fn wait(&self, expected: u32, slice: Duration) {
        // `Acquire` pairs with the `Release` in `ring_for`: a worker that loads the number of a
        // wake-up finds what its word was set to before. If the number is older, the kernel finds
        // another one, or the wake-up finds the sleeper.
        let seen = self.event_count.load(Ordering::Acquire);
        if self.word.load() == expected {
            self.event_count.sleep(seen, self.bit(), slice, || self.word.load() != expected);
        }
    }

    fn wake(&self) {
        ring_for(self.event_count, self.bit());
    }
}

/// Hands `task_word` to all these workers, in the order of their numbers, and wakes those that sleep: all
/// that share an event count by one system call, after the last of them has got the task word.
pub(crate) fn publish_all<W: Word, A: EventCount>(
    workers: impl IntoIterator<Item = Sleeper<W, A>>,
    task_word: TaskWord,
) {
    let mut workers = workers.into_iter().peekable();
    while let Some(first) = workers.next() {
        let mut asleep = if hand(&first, task_word) { first.bit() } else { 0 };
        let shares_event_count = |worker: &Sleeper<W, A>| worker.group() == first.group();
        while let Some(worker) = workers.next_if(shares_event_count) {
            asleep |= if hand(&worker, task_word) { worker.bit() } else { 0 };
        }
        if asleep != 0 {
            ring_for(first.event_count, asleep);
        }
    }
}

/// Wakes the sleepers with these bits. Their words were set before.
fn ring_for(event_count: impl EventCount, bits: u32) {
    event_count.add_one(Ordering::Release); // pairs with the `Acquire` in `Sleeper::wait`
    event_count.wake_up(bits);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::wake::{IDLE, Op, PARKED, publish};

    impl Word for &Cell<u32> {
        fn load(&self) -> u32 {
            self.get()
        }

        fn swap(&self, value: u32) -> u32 {
            self.replace(value)
        }

        fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
            if self.get() == current { Ok(self.replace(new)) } else { Err(self.get()) }
        }

        fn wait(&self, _expected: u32, _slice: Duration) {
            unreachable!("sleepers wait for their event count");
        }

        fn wake(&self) {
            unreachable!("sleepers are woken by their event count");
        }
    }

    /// An event count that keeps the bits of each call to the kernel.
    #[derive(Default)]
    struct Calls {
        rung: Cell<u32>,
        woken: RefCell<Vec<u32>>,
    }

    impl EventCount for &Calls {
        fn load(self, _order: Ordering) -> u32 {
            self.rung.get()
        }

        fn add_one(self, _order: Ordering) {
            self.rung.set(self.rung.get() + 1);
        }

        fn sleep(self, _seen: u32, _bit: u32, _slice: Duration, _is_over: impl FnMut() -> bool) {
            unreachable!("no thread sleeps where there is one");
        }

        fn wake_up(self, bits: u32) {
            assert_ne!(self.rung.get(), 0, "the number changes before the call");
            self.woken.borrow_mut().push(bits);
        }
    }

    /// Publishes to workers of which some sleep; returns the bits of the calls for each event count.
    fn calls(workers: &[usize], sleep: impl Fn(usize) -> bool) -> [Vec<u32>; 3] {
        let words: [Cell<u32>; 70] =
            std::array::from_fn(|worker| Cell::new(if sleep(worker) { PARKED } else { IDLE }));
        let event_counts: [Calls; 3] = std::array::from_fn(|_| Calls::default());
        let task_word = TaskWord { op: Op::Step, task: 9 };
        let sleepers = workers
            .iter()
            .map(|&worker| Sleeper::new(worker, &words[worker], &event_counts[worker / SLEEPERS]));
        publish_all(sleepers, task_word);
        for (worker, word) in words.iter().enumerate() {
            assert_eq!(word.get() == task_word.to_word(), workers.contains(&worker), "{worker}");
        }
        event_counts.map(|event_count| event_count.woken.into_inner())
    }

    #[test]
    fn one_call_wakes_all_that_sleep_at_an_event_count_and_none_that_poll() {
        let all: Vec<_> = (0..70).collect();
        let of = |event_counts: [&[u32]; 3]| event_counts.map(<[u32]>::to_vec);
        assert_eq!(calls(&all, |_| true), of([&[u32::MAX], &[u32::MAX], &[0b11_1111]]));
        assert_eq!(calls(&all, |_| false), of([&[], &[], &[]]));
        assert_eq!(calls(&all, |worker| worker % 32 == 31), of([&[1 << 31], &[1 << 31], &[]]));
        assert_eq!(calls(&[1, 5, 40, 64], |_| true), of([&[0b10_0010], &[1 << 8], &[1]]));
        assert_eq!(calls(&[5, 40], |worker| worker == 40), of([&[], &[1 << 8], &[]]));
        assert_eq!(calls(&[], |_| true), of([&[], &[], &[]]));
    }

    #[test]
    fn a_worker_that_is_published_to_alone_is_woken_alone() {
        let (word, event_count) = (Cell::new(PARKED), Calls::default());
        let sleeper = Sleeper::new(33, &word, &event_count);
        publish(&sleeper, TaskWord::TAKE);
        publish(&sleeper, TaskWord::TAKE); // it has not slept again
        assert_eq!(event_count.woken.into_inner(), [0b10]);
    }

    #[test]
    fn a_worker_whose_word_has_changed_does_not_sleep() {
        let (word, event_count) = (Cell::new(IDLE), Calls::default());
        Sleeper::new(0, &word, &event_count).wait(PARKED, Duration::from_secs(3600));
    }
}
