//! Retries of something that did not pay the last time.

/// Number of occasions between two trials: the first gap, and the largest gap.
const FIRST_GAP: u32 = 8;
const LAST_GAP: u32 = 1024;

/// Counts occasions up to the next trial. Each failed trial doubles the gap; a success resets it.
#[derive(Debug)]
pub(crate) struct Backoff {
    gap: u32,
    left: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { gap: FIRST_GAP, left: FIRST_GAP }
    }
}

impl Backoff {
    /// Counts an occasion; returns whether to try on this one.
    pub(crate) fn is_due(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// Restarts the gap before the next trial.
    pub(crate) fn put_off(&mut self) {
        self.left = self.gap;
    }

    /// The trial failed: the next gap is longer.
    pub(crate) fn failed(&mut self) {
        self.gap = (self.gap * 2).min(LAST_GAP);
        self.put_off();
    }

    /// The trial paid.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of occasions up to and including the next trial.
    fn occasions(backoff: &mut Backoff) -> u32 {
        let mut occasions = 1;
        while !backoff.is_due() {
            occasions += 1;
        }
        occasions
    }

    #[test]
    fn failed_attempts_become_rarer_until_one_succeeds() {
        let mut backoff = Backoff::default();
        for gap in [8, 16, 32, 64, 128, 256, 512, 1024, 1024] {
            assert_eq!(occasions(&mut backoff), gap);
            backoff.failed();
        }
        backoff.succeeded();
        assert_eq!(occasions(&mut backoff), 8);
        backoff.put_off();
        assert_eq!(occasions(&mut backoff), 8);
    }
}
