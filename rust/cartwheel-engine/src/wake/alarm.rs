//! The alarm: a word on which up to 32 workers sleep, each with a bit of its own, so that one system
//! call wakes all that are needed.
//!
//! Task words stay in the workers' own words. The alarm only counts how often somebody was woken, so a
//! worker can tell a wake-up that happened just before it fell asleep: it loads the alarm, looks at its
//! own word once more, and sleeps while the alarm is what it loaded.

use std::time::Duration;

use super::parker::hand;
use super::task_word::TaskWord;
use super::word::{Alarm, Word};
use crate::sync::Ordering;

/// Most workers that share an alarm: a futex knows 32 bits.
pub const SLEEPERS: usize = u32::BITS as usize;

/// A worker's word, with its place at the alarm that it shares.
#[derive(Debug, Clone, Copy)]
pub struct Sleeper<W, A> {
    word: W,
    alarm: A,
    worker: usize,
}

impl<W: Word, A: Alarm> Sleeper<W, A> {
    /// Worker `worker`, whose task words come to `word`. The first [`SLEEPERS`] workers have one
    /// `alarm`, the next ones have the next.
    pub fn new(worker: usize, word: W, alarm: A) -> Self {
        Self { word, alarm, worker }
    }

    fn group(&self) -> usize {
        self.worker / SLEEPERS
    }

    fn bit(&self) -> u32 {
        1 << (self.worker % SLEEPERS)
    }
}

impl<W: Word, A: Alarm> Word for Sleeper<W, A> {
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
        let seen = self.alarm.load(Ordering::Acquire);
        if self.word.load() == expected {
            self.alarm.sleep(seen, self.bit(), slice, || self.word.load() != expected);
        }
    }

    fn wake(&self) {
        ring_for(self.alarm, self.bit());
    }
}

/// Hands `task_word` to all these workers, in the order of their numbers, and wakes those that sleep: all
/// that share an alarm by one system call, after the last of them has got the task word.
pub fn publish_all<W: Word, A: Alarm>(
    workers: impl IntoIterator<Item = Sleeper<W, A>>,
    task_word: TaskWord,
) {
    let mut workers = workers.into_iter().peekable();
    while let Some(first) = workers.next() {
        let mut asleep = if hand(&first, task_word) { first.bit() } else { 0 };
        let shares_alarm = |worker: &Sleeper<W, A>| worker.group() == first.group();
        while let Some(worker) = workers.next_if(shares_alarm) {
            asleep |= if hand(&worker, task_word) { worker.bit() } else { 0 };
        }
        if asleep != 0 {
            ring_for(first.alarm, asleep);
        }
    }
}

/// Wakes the sleepers with these bits. Their words were set before.
fn ring_for(alarm: impl Alarm, bits: u32) {
    alarm.add_one(Ordering::Release); // pairs with the `Acquire` in `Sleeper::wait`
    alarm.wake_up(bits);
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
            unreachable!("sleepers wait for their alarm");
        }

        fn wake(&self) {
            unreachable!("sleepers are woken by their alarm");
        }
    }

    /// An alarm that keeps the bits of each call to the kernel.
    #[derive(Default)]
    struct Calls {
        rung: Cell<u32>,
        woken: RefCell<Vec<u32>>,
    }

    impl Alarm for &Calls {
        fn load(self, _order: Ordering) -> u32 {
            self.rung.get()
        }

        fn add_one(self, _order: Ordering) {
            self.rung.set(self.rung.get() + 1);
        }

        fn sleep(self, _seen: u32, _bit: u32, _slice: Duration, _is_over: impl FnMut() -> bool) {
            unreachable!("nobody sleeps on one thread");
        }

        fn wake_up(self, bits: u32) {
            assert_ne!(self.rung.get(), 0, "the number changes before the call");
            self.woken.borrow_mut().push(bits);
        }
    }

    /// Publishes to workers of which some sleep; returns the bits of the calls for each alarm.
    fn calls(workers: &[usize], sleep: impl Fn(usize) -> bool) -> [Vec<u32>; 3] {
        let words: [Cell<u32>; 70] =
            std::array::from_fn(|worker| Cell::new(if sleep(worker) { PARKED } else { IDLE }));
        let alarms: [Calls; 3] = std::array::from_fn(|_| Calls::default());
        let task_word = TaskWord { op: Op::Step, task: 9 };
        let sleepers = workers
            .iter()
            .map(|&worker| Sleeper::new(worker, &words[worker], &alarms[worker / SLEEPERS]));
        publish_all(sleepers, task_word);
        for (worker, word) in words.iter().enumerate() {
            assert_eq!(word.get() == task_word.to_word(), workers.contains(&worker), "{worker}");
        }
        alarms.map(|alarm| alarm.woken.into_inner())
    }

    #[test]
    fn one_call_wakes_all_that_sleep_at_an_alarm_and_none_that_poll() {
        let all: Vec<_> = (0..70).collect();
        let of = |alarms: [&[u32]; 3]| alarms.map(<[u32]>::to_vec);
        assert_eq!(calls(&all, |_| true), of([&[u32::MAX], &[u32::MAX], &[0b11_1111]]));
        assert_eq!(calls(&all, |_| false), of([&[], &[], &[]]));
        assert_eq!(calls(&all, |worker| worker % 32 == 31), of([&[1 << 31], &[1 << 31], &[]]));
        assert_eq!(calls(&[1, 5, 40, 64], |_| true), of([&[0b10_0010], &[1 << 8], &[1]]));
        assert_eq!(calls(&[5, 40], |worker| worker == 40), of([&[], &[1 << 8], &[]]));
        assert_eq!(calls(&[], |_| true), of([&[], &[], &[]]));
    }

    #[test]
    fn a_worker_that_is_published_to_alone_is_woken_alone() {
        let (word, alarm) = (Cell::new(PARKED), Calls::default());
        let sleeper = Sleeper::new(33, &word, &alarm);
        publish(&sleeper, TaskWord::TAKE);
        publish(&sleeper, TaskWord::TAKE); // it has not slept again
        assert_eq!(alarm.woken.into_inner(), [0b10]);
    }

    #[test]
    fn a_worker_whose_word_has_changed_does_not_sleep() {
        let (word, alarm) = (Cell::new(IDLE), Calls::default());
        Sleeper::new(0, &word, &alarm).wait(PARKED, Duration::from_secs(3600));
    }
}
