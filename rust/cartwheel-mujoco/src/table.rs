//! The table of environments: id, type, limits.

use crate::env::MujocoEnv;
use crate::half_cheetah::HalfCheetah;

cartwheel::table! {
    /// The eleven environments, with the defaults of Gymnasium's registry.
    pub static PLUGIN {
        "HalfCheetah-v5" => MujocoEnv<HalfCheetah> { max_episode_steps: 1000, reward_threshold: 4800.0 },
    }
}
