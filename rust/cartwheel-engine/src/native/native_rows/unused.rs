//! Memory for rewards and flags of a second round, which are not read: those of the first round
//! stand.

use crate::autoreset::Outcomes;

/// Outcomes that are not read.
#[derive(Debug)]
pub(super) struct Unused {
    rewards: Vec<f64>,
    flags: [Vec<u8>; 3],
}

impl Unused {
    pub(super) fn new(rows: usize) -> Self {
        Self { rewards: vec![0.0; rows], flags: [(); 3].map(|()| vec![0; rows]) }
    }

    pub(super) fn outcomes(&mut self, rows: usize) -> Outcomes<'_> {
        let [terminations, truncations, phases] = &mut self.flags;
        Outcomes {
            rewards: &mut self.rewards[..rows],
            terminations: &mut terminations[..rows],
            truncations: &mut truncations[..rows],
            phases: &mut phases[..rows],
        }
    }
}
