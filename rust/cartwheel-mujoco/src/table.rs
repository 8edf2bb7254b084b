//! The table of environments: id, type, limits.

use crate::ant::Ant;
use crate::env::MujocoEnv;
use crate::half_cheetah::HalfCheetah;
use crate::hopper::Hopper;
use crate::humanoid::Humanoid;
use crate::humanoid_standup::HumanoidStandup;
use crate::inverted_double_pendulum::InvertedDoublePendulum;
use crate::inverted_pendulum::InvertedPendulum;
use crate::pusher::Pusher;
use crate::reacher::Reacher;
use crate::simulation::Simulation;
use crate::swimmer::Swimmer;
use crate::walker2d::Walker2d;

cartwheel::table! {
    /// The eleven environments, with the defaults of Gymnasium's registry; and the one of models of the
    /// caller's own, which is not listed since only `cartwheel.mujoco` makes it.
    pub static PLUGIN {
        "Ant-v5" => MujocoEnv<Ant> { max_episode_steps: 1000, reward_threshold: 6000.0 },
        "HalfCheetah-v5" => MujocoEnv<HalfCheetah> {
            max_episode_steps: 1000,
            reward_threshold: 4800.0,
        },
        "Hopper-v5" => MujocoEnv<Hopper> {
            max_episode_steps: 1000,
            reward_threshold: 3800.0,
        },
        "Humanoid-v5" => MujocoEnv<Humanoid> { max_episode_steps: 1000 },
        "HumanoidStandup-v5" => MujocoEnv<HumanoidStandup> { max_episode_steps: 1000 },
        "InvertedDoublePendulum-v5" => MujocoEnv<InvertedDoublePendulum> {
            max_episode_steps: 1000,
            reward_threshold: 9100.0,
        },
        "InvertedPendulum-v5" => MujocoEnv<InvertedPendulum> {
            max_episode_steps: 1000,
            reward_threshold: 950.0,
        },
        "Pusher-v5" => MujocoEnv<Pusher> { max_episode_steps: 100, reward_threshold: 0.0 },
        "Reacher-v5" => MujocoEnv<Reacher> {
            max_episode_steps: 50,
            reward_threshold: -3.75,
        },
        "_Simulation-v0" => MujocoEnv<Simulation> {},
        "Swimmer-v5" => MujocoEnv<Swimmer> {
            max_episode_steps: 1000,
            reward_threshold: 360.0,
        },
        "Walker2d-v5" => MujocoEnv<Walker2d> { max_episode_steps: 1000 },
    }
}
