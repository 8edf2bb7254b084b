//! Episodes that have ended: the last ones, and those that were not asked for.

use std::collections::VecDeque;

/// An episode that has ended. Its number among all that have ended is not stored: it follows from its
/// place in an [`Archive`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finished {
    /// The sum of its rewards.
    pub total: f64,
    /// Its transitions.
    pub length: i64,
    /// The seed of the reset that began it, or -1.
    pub seed: i64,
    /// Its environment.
    pub env_index: u32,
    /// Reports about it, and how it ended.
    pub flags: Flags,
}

/// Whether success was reported, in any step and in the last one; then failure likewise; then whether
/// its last step terminated, and truncated it. A bit each: an archive has many episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// The number of reports, which come first.
    pub const REPORTS: usize = 4;

    /// Takes the flags in their order.
    pub fn new(flags: [bool; 6]) -> Self {
        Self(flags.iter().rev().fold(0, |bits, &flag| bits << 1 | u8::from(flag)))
    }

    /// One of the flags, as 0 and 1.
    pub fn get(self, number: usize) -> u8 {
        self.0 >> number & 1
    }
}

impl Finished {
    /// The mean reward; 0 for an episode without a step.
    #[expect(clippy::cast_precision_loss, reason = "no episode has 2^53 steps")]
    pub fn reward(&self) -> f64 {
        self.total / (self.length as f64).max(1.0)
    }
}

/// Keeps episodes that have ended: the last ones, and those that were not taken yet.
#[derive(Debug, Clone)]
pub struct Archive {
    /// Those of the window that wait no longer. They ended before all that wait.
    earlier: VecDeque<Finished>,
    window: usize,
    /// Those that were not taken yet.
    waiting: VecDeque<Finished>,
    max_waiting: usize,
    /// Number of episodes that were dropped because too many waited.
    dropped: usize,
    next_id: i64,
}

impl Archive {
    /// Keeps the last `window` episodes, and at most `max_waiting` that were not taken.
    pub fn new(window: usize, max_waiting: usize) -> Self {
        let (earlier, waiting) = (VecDeque::new(), VecDeque::new());
        Self { earlier, window, waiting, max_waiting, dropped: 0, next_id: 0 }
    }

    /// Adds an episode and numbers it.
    #[inline]
    pub fn add(&mut self, episode: Finished) {
        self.next_id += 1;
        if self.waiting.len() == self.max_waiting {
            self.drop_oldest();
        } else if self.waiting.len() == self.waiting.capacity() {
            self.reserve();
        }
        self.waiting.push_back(episode);
    }

    /// Reserves memory for all episodes that may wait: a list that grows is copied to new pages each time,
    /// and pages that are never written cost nothing. Without that much memory, it grows as it would have.
    #[cold]
    fn reserve(&mut self) {
        _ = self.waiting.try_reserve_exact(self.max_waiting - self.waiting.len());
    }

    /// Drops the episode that has waited longest; the window may have it still.
    fn drop_oldest(&mut self) {
        self.dropped += 1;
        let Some(oldest) = self.waiting.pop_front() else { return };
        if self.max_waiting < self.window {
            self.earlier.push_back(oldest);
            self.forget();
        }
    }

    /// Forgets what is not in the window, of those that wait no longer.
    fn forget(&mut self) {
        let too_many = self.earlier.len().saturating_sub(self.window);
        self.earlier.drain(..too_many);
    }

    /// The last episodes, the oldest one first.
    pub fn recent(&self) -> impl Iterator<Item = &Finished> {
        let all = self.earlier.iter().chain(&self.waiting);
        all.skip((self.earlier.len() + self.waiting.len()).saturating_sub(self.window))
    }

    /// The episodes that were not taken yet, the oldest one first.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &Finished> {
        self.waiting.iter()
    }

    /// Takes all episodes that wait; and how many were dropped before them. The last of them has the
    /// number before the next one, see [`counts`](Self::counts).
    pub fn take(&mut self) -> (Vec<Finished>, usize) {
        let waiting: Vec<_> = self.waiting.iter().copied().collect();
        self.waiting.clear(); // its memory is used again
        self.earlier.extend(waiting.iter().skip(waiting.len().saturating_sub(self.window)));
        self.forget();
        (waiting, std::mem::take(&mut self.dropped))
    }

    /// The number of the next episode, and how many were dropped since the last [`take`](Self::take).
    pub fn counts(&self) -> (i64, usize) {
        (self.next_id, self.dropped)
    }

    /// Continues with what another archive had; the sizes stay.
    pub fn resume(
        &mut self,
        recent: Vec<Finished>,
        waiting: Vec<Finished>,
        next_id: i64,
        dropped: usize,
    ) {
        let wait_no_longer = recent.len().saturating_sub(waiting.len());
        let too_many = waiting.len().saturating_sub(self.max_waiting);
        self.earlier = recent.into_iter().take(wait_no_longer).collect();
        self.earlier.extend(&waiting[..too_many]);
        self.forget();
        self.waiting = waiting.into_iter().skip(too_many).collect();
        self.dropped = dropped + too_many;
        self.next_id = next_id;
    }

    /// The means of return, length, reward and flags over the last episodes; `None` if there are
    /// none.
    #[expect(clippy::cast_precision_loss, reason = "no episode has 2^53 steps")]
    pub fn means(&self) -> Option<[f64; 7]> {
        let (mut sums, mut count) = ([0.0; 7], 0_usize);
        for episode in self.recent() {
            let [a, b, c, d] = std::array::from_fn(|report| f64::from(episode.flags.get(report)));
            let values = [episode.total, episode.length as f64, episode.reward(), a, b, c, d];
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            count += 1;
        }
        (count > 0).then(|| sums.map(|sum| sum / count as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(number: usize) -> Finished {
        let number = u32::try_from(number).expect("few");
        let flags = Flags::new(std::array::from_fn(|flag| number >> flag & 1 == 1));
        let total = f64::from(number);
        Finished { total, length: 2, seed: -1, env_index: number, flags }
    }

    #[test]
    fn flags_are_those_that_were_given() {
        for number in 0..64 {
            let bits = (0..6).map(|flag| usize::from(episode(number).flags.get(flag)) << flag);
            assert_eq!(bits.sum::<usize>(), number);
        }
    }

    #[test]
    fn episodes_that_do_not_fit_when_they_are_resumed_are_dropped_and_counted() {
        let mut archive = Archive::new(1, 2);
        archive.resume(vec![episode(5)], (1..6).map(episode).collect(), 6, 1);
        assert!(archive.waiting().copied().eq([4, 5].map(episode)));
        assert_eq!(archive.counts(), (6, 1 + 3));
    }

    #[test]
    fn the_window_is_the_same_whatever_was_taken_or_dropped_or_resumed() {
        for (window, max_waiting) in [(1, 1), (3, 5), (5, 3), (4, 4), (2, 100), (100, 2)] {
            let mut archive = Archive::new(window, max_waiting);
            let (mut begin, mut dropped) = (0, 0);
            for count in 0..60 {
                let recent = count.min(window);
                assert!(archive.recent().copied().eq((count - recent..count).map(episode)));
                assert!(archive.waiting().copied().eq((begin..count).map(episode)));
                assert_eq!(archive.counts(), (i64::try_from(count).expect("few"), dropped));
                if count % 17 == 9 {
                    let (taken, lost) = archive.take();
                    assert!(taken.into_iter().eq((begin..count).map(episode)));
                    assert_eq!(lost, dropped);
                    (begin, dropped) = (count, 0);
                }
                if count % 7 == 3 {
                    let [recent, waiting] =
                        [archive.recent().copied().collect(), archive.waiting().copied().collect()];
                    let (next_id, dropped) = archive.counts();
                    archive = Archive::new(window, max_waiting);
                    archive.resume(recent, waiting, next_id, dropped);
                }
                archive.add(episode(count));
                if count + 1 - begin > max_waiting {
                    (begin, dropped) = (begin + 1, dropped + 1);
                }
            }
        }
    }
}
