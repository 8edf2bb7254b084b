//! The built-in environments pass the test kit, with defaults and with other options.
//!
//! Each of them is compiled once more for the kit, which takes a tenth of the time in this package as in their own:
//! tests of this one are not optimized.

use cartwheel::Env;
use cartwheel::testing::check_env;
use cartwheel_envs as envs;

/// Checks an environment with each of these options.
fn check<E: Env>(all: &[&str]) {
    for options in all {
        let parsed = serde_json::from_str(options).expect("options of this environment");
        if let Err(error) = check_env::<E>(parsed) {
            panic!("{options}: {error}");
        }
    }
}

#[test]
fn classic_control_passes_the_test_kit() {
    check::<envs::CartPole>(&["{}", r#"{"sutton_barto_reward": true}"#]);
    check::<envs::MountainCar>(&["{}", r#"{"goal_velocity": 0.1}"#]);
    check::<envs::ContinuousMountainCar>(&["{}"]);
    check::<envs::Pendulum>(&["{}", r#"{"g": 9.81}"#]);
    check::<envs::Acrobot>(&["{}"]);
}

#[test]
fn toy_text_passes_the_test_kit() {
    check::<envs::Blackjack>(&["{}", r#"{"natural": true, "sab": true}"#]);
    check::<envs::FrozenLake>(&[r#"{"map_name": "4x4"}"#, r#"{"map_name": "8x8"}"#, "{}"]);
    check::<envs::CliffWalking>(&["{}", r#"{"is_slippery": true}"#]);
    check::<envs::Taxi>(&["{}", r#"{"is_rainy": true, "fickle_passenger": true}"#]);
    check::<envs::Null>(&["{}", r#"{"shape": [2, 3], "episode_steps": 5}"#]);
}
