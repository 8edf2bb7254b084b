//! Environments for tests of plugins: a sound one, and faulty ones.

mod chase;
mod corridor;
mod effort;
mod faulty;
mod misfit;
mod relay;
mod team;
mod teller;
mod unwritten;

cartwheel::plugin! { _test_plugin {
    "test_plugin/Corridor-v0" => corridor::Corridor {
        max_episode_steps: 20,
        reward_threshold: 4.0,
    },
    "test_plugin/LongCorridor-v0" => corridor::Corridor {
        default_options: r#"{"length": 100}"#,
    },
    "test_plugin/Chase-v0" => chase::Chase { max_episode_steps: 9 },
    "test_plugin/Effort-v0" => effort::Effort { max_episode_steps: 3 },
    "test_plugin/Faulty-v0" => faulty::Faulty,
    "test_plugin/Misfit-v0" => misfit::Misfit,
    "test_plugin/Relay-v0" => relay::Relay { max_episode_steps: 9 },
    "test_plugin/Team-v0" => team::Team,
    "test_plugin/Teller-v0" => teller::Teller,
    "test_plugin/Unwritten-v0" => unwritten::Unwritten,
} }
