//! Episodes that have ended: the last ones, and those that were not asked for.

use std::collections::VecDeque;

/// An episode that has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finished {
    /// The sum of its rewards.
    pub total: f64,
    /// Its transitions.
    pub length: i64,
    /// Whether success was reported, in any step and in the last one; then failure likewise.
    pub flags: [bool; 4],
    /// Its environment.
    pub env_index: i64,
    /// Its number among all episodes that have ended.
    pub episode_id: i64,
    /// The seed of the reset that began it, or -1.
    pub seed: i64,
    /// Flags of its last step.
    pub terminated: bool,
    /// Flags of its last step.
    pub truncated: bool,
}

impl Finished {
    /// The mean reward; 0 for an episode without a step.
    #[expect(clippy::cast_precision_loss, reason = "no episode has 2^53 steps")]
    pub fn reward(&self) -> f64 {
        self.total / (self.length as f64).max(1.0)
    }
}

/// Keeps episodes that have ended.
#[derive(Debug, Clone)]
pub struct Archive {
    /// The last ones.
    recent: VecDeque<Finished>,
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
        let (recent, waiting) = (VecDeque::new(), VecDeque::new());
        Self { recent, window, waiting, max_waiting, dropped: 0, next_id: 0 }
    }

    /// Adds an episode and numbers it.
    pub fn add(&mut self, episode: Finished) {
        let episode = Finished { episode_id: self.next_id, ..episode };
        self.next_id += 1;
        if self.recent.len() == self.window {
            self.recent.pop_front();
        }
        self.recent.push_back(episode);
        if self.waiting.len() == self.max_waiting {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(episode);
    }

    /// The last episodes, the oldest one first.
    pub fn recent(&self) -> impl ExactSizeIterator<Item = &Finished> {
        self.recent.iter()
    }

    /// The episodes that were not taken yet, the oldest one first.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &Finished> {
        self.waiting.iter()
    }

    /// Takes all episodes that wait; and how many were dropped before them.
    pub fn take(&mut self) -> (VecDeque<Finished>, usize) {
        (std::mem::take(&mut self.waiting), std::mem::take(&mut self.dropped))
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
        let too_many = recent.len().saturating_sub(self.window);
        self.recent = recent.into_iter().skip(too_many).collect();
        let too_many = waiting.len().saturating_sub(self.max_waiting);
        self.waiting = waiting.into_iter().skip(too_many).collect();
        self.dropped = dropped + too_many;
        self.next_id = next_id;
    }

    /// The means of return, length, reward and flags over the last episodes; `None` if there are
    /// none.
    #[expect(clippy::cast_precision_loss, reason = "no episode has 2^53 steps")]
    pub fn means(&self) -> Option<[f64; 7]> {
        if self.recent.is_empty() {
            return None;
        }
        let mut sums = [0.0; 7];
        for episode in &self.recent {
            let flags = episode.flags.map(|flag| f64::from(u8::from(flag)));
            let [a, b, c, d] = flags;
            let values = [episode.total, episode.length as f64, episode.reward(), a, b, c, d];
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        Some(sums.map(|sum| sum / self.recent.len() as f64))
    }
}
