//! The rules of episodes and steps that do not depend on the mode.

use std::num::NonZero;

/// When an episode is cut or goes on, and how often a step repeats its action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Steps after which an episode is truncated, repeated ones included.
    pub max_episode_steps: Option<NonZero<u32>>,
    /// Whether an episode is over only when it is truncated: a termination is not reported, and the
    /// environment is stepped on.
    pub ignore_terminations: bool,
    /// Times that a step steps the environment with its action; it stops at the end of the
    /// episode.
    pub action_repeat: NonZero<u32>,
    /// Whether rows begin at [different places](super::Autoreset::stagger) in their episodes after
    /// a [full reset](crate::FULL_RESET), so that they are not truncated all at once. Only
    /// with a limit.
    pub staggered_reset: bool,
}

impl Rules {
    /// Episodes are cut after `max_episode_steps` steps, if that is not 0. The rest is as in
    /// Gymnasium.
    pub const fn limited(max_episode_steps: u32) -> Self {
        Self {
            max_episode_steps: NonZero::new(max_episode_steps),
            ignore_terminations: false,
            action_repeat: NonZero::<u32>::MIN,
            staggered_reset: false,
        }
    }
}

impl Default for Rules {
    /// Gymnasium's rules.
    fn default() -> Self {
        Self::limited(0)
    }
}

/// A number from all 64 bits of the words of a seed, the lowest word first. Zeros at the end do not
/// count, so a seed gives the same number at any length.
///
/// Each word is added to the number so far, which then makes one step of `SplitMix64`. So neighboring
/// seeds give unrelated numbers, and no random number of the environment is used up.
///
/// Source: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators"
/// (2014), with the constants of D. Stafford's variant 13.
pub fn mixed(words: impl IntoIterator<Item = u64>) -> u64 {
    let (mut mixed, mut zeros) = (step(0, 0), 0);
    for word in words {
        if word == 0 {
            zeros += 1;
            continue;
        }
        for _ in 0..std::mem::take(&mut zeros) {
            mixed = step(mixed, 0);
        }
        mixed = step(mixed, word);
    }
    mixed
}

fn step(mixed: u64, word: u64) -> u64 {
    let mut next = mixed.wrapping_add(word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    next = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    next = (next ^ (next >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    next ^ (next >> 31)
}
