//! Rules of episodes and steps, from keywords.

use std::num::NonZero;

use cartwheel_engine::autoreset::Rules;
use pyo3::prelude::*;

/// The dictionary `rules` of `Shard` and `NativeEnvs`, documented in the stub.
#[derive(Debug, Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenRules {
    max_episode_steps: Option<NonZero<u32>>,
    ignore_terminations: bool,
    action_repeat: NonZero<u32>,
    staggered_reset: bool,
}

impl From<GivenRules> for Rules {
    fn from(given: GivenRules) -> Self {
        let GivenRules { max_episode_steps, ignore_terminations, action_repeat, staggered_reset } =
            given;
        Self { max_episode_steps, ignore_terminations, action_repeat, staggered_reset }
    }
}
