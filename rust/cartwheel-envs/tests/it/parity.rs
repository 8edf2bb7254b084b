//! Every environment gives the same bits as Gymnasium's: observations, rewards, flags, infos.

use std::collections::BTreeSet;

use crate::support;
use crate::trajectory::{Comparison, play};

/// Written by `fixtures/trajectories.py` from Gymnasium 1.4.0.
static FIXTURE: &[u8] = include_bytes!("../fixtures/trajectories.bin");

#[test]
fn episodes_equal_gymnasiums_bit_for_bit() {
    let mut bytes = FIXTURE;
    let (mut seen, mut all_frames) = (BTreeSet::new(), Comparison::default());
    while let Some((header, comparison)) = play(&mut bytes) {
        assert_eq!(comparison.differing_bits, [0; 4], "{header}: {comparison:?}");
        assert!(comparison.episodes > 0, "{header} ends an episode");
        all_frames.add(&comparison);
        seen.insert(header.to_string().split(' ').next().unwrap().to_owned());
    }
    let all = support::ids(&cartwheel_envs::PLUGIN).into_iter().map(|(id, ..)| id);
    let all: BTreeSet<_> = all.filter(|id| id != "Null-v0").collect();
    assert_eq!(seen, all, "every environment is compared");
    assert!(all_frames.frames > 10_000, "the fixture is complete");
}
