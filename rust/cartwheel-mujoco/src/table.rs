//! The table of environments: id, type, limits.

use crate::{self as robots, MujocoEnv};

cartwheel::table! {
    /// The eleven environments, with the defaults of Gymnasium's registry; and the one of models of the
    /// caller's own, which is not listed since only `cartwheel.mujoco` makes it.
    pub static PLUGIN {
        "Ant-v5" => MujocoEnv<robots::Ant> { max_episode_steps: 1000, reward_threshold: 6000.0 },
        "HalfCheetah-v5" => MujocoEnv<robots::HalfCheetah> {
            max_episode_steps: 1000,
            reward_threshold: 4800.0,
        },
        "Hopper-v5" => MujocoEnv<robots::Hopper> {
            max_episode_steps: 1000,
            reward_threshold: 3800.0,
        },
        "Humanoid-v5" => MujocoEnv<robots::Humanoid> { max_episode_steps: 1000 },
        "HumanoidStandup-v5" => MujocoEnv<robots::HumanoidStandup> { max_episode_steps: 1000 },
        "InvertedDoublePendulum-v5" => MujocoEnv<robots::InvertedDoublePendulum> {
            max_episode_steps: 1000,
            reward_threshold: 9100.0,
        },
        "InvertedPendulum-v5" => MujocoEnv<robots::InvertedPendulum> {
            max_episode_steps: 1000,
            reward_threshold: 950.0,
        },
        "Pusher-v5" => MujocoEnv<robots::Pusher> { max_episode_steps: 100, reward_threshold: 0.0 },
        "Reacher-v5" => MujocoEnv<robots::Reacher> {
            max_episode_steps: 50,
            reward_threshold: -3.75,
        },
        "_Simulation-v0" => MujocoEnv<robots::Simulation> {},
        "Swimmer-v5" => MujocoEnv<robots::Swimmer> {
            max_episode_steps: 1000,
            reward_threshold: 360.0,
        },
        "Walker2d-v5" => MujocoEnv<robots::Walker2d> { max_episode_steps: 1000 },
    }
}
