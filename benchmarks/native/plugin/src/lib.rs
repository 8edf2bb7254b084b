//! The built-in environments once more, in a library of their own.

cartwheel::plugin! { _benchmark {
    "benchmark/CartPole-v1" => cartwheel_envs::CartPole { max_episode_steps: 500 },
    "benchmark/Taxi-v4" => cartwheel_envs::Taxi { max_episode_steps: 200 },
} }
