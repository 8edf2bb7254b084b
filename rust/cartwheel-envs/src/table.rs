//! The table of environments: id, type, limits.

use cartwheel::Error;

use crate::acrobot::Acrobot;
use crate::blackjack::Blackjack;
use crate::cart_pole::CartPole;
use crate::cliff_walking::CliffWalking;
use crate::continuous_mountain_car::ContinuousMountainCar;
use crate::frozen_lake::FrozenLake;
use crate::mountain_car::MountainCar;
use crate::null::Null;
use crate::pendulum::Pendulum;
use crate::plain_loop::{PlainLoops, run};
use crate::taxi::Taxi;

macro_rules! environments {
    ($($id:literal => $env:ty { $($setting:tt)* },)+) => {
        cartwheel::table! {
            /// Every environment, with the defaults of Gymnasium's registry.
            pub static PLUGIN { $($id => $env { $($setting)* }),+ }
        }

        /// Runs plain loops over environments with these options, a JSON object that holds the
        /// options of the id too. Returns environment steps per second, of all loops together.
        ///
        /// # Errors
        ///
        /// [`Error::BadOptions`] when there is no such environment, when it refuses its options, or
        /// when there are no rows or no threads.
        ///
        /// # Panics
        ///
        /// When an environment fails or panics, or when a thread cannot be started.
        pub fn plain_loop(id: &str, options: &str, loops: &PlainLoops) -> Result<f64, Error> {
            match id {
                $($id => run::<$env>(options, loops),)+
                _ => Err(Error::bad_options(format!("there is no native environment {id:?}"))),
            }
        }
    };
}

environments! {
    "CartPole-v0" => CartPole { max_episode_steps: 200, reward_threshold: 195.0 },
    "CartPole-v1" => CartPole { max_episode_steps: 500, reward_threshold: 475.0 },
    "MountainCar-v0" => MountainCar { max_episode_steps: 200, reward_threshold: -110.0 },
    "MountainCarContinuous-v0" => ContinuousMountainCar {
        max_episode_steps: 999,
        reward_threshold: 90.0,
    },
    "Pendulum-v1" => Pendulum { max_episode_steps: 200 },
    "Acrobot-v1" => Acrobot { max_episode_steps: 500, reward_threshold: -100.0 },
    "Blackjack-v1" => Blackjack { default_options: r#"{"sab": true, "natural": false}"# },
    "FrozenLake-v1" => FrozenLake {
        default_options: r#"{"map_name": "4x4"}"#,
        max_episode_steps: 100,
        reward_threshold: 0.7,
    },
    "FrozenLake8x8-v1" => FrozenLake {
        default_options: r#"{"map_name": "8x8"}"#,
        max_episode_steps: 200,
        reward_threshold: 0.85,
    },
    "CliffWalking-v1" => CliffWalking {},
    "CliffWalkingSlippery-v1" => CliffWalking { default_options: r#"{"is_slippery": true}"# },
    "Taxi-v4" => Taxi { max_episode_steps: 200, reward_threshold: 8.0 },
    "Null-v0" => Null {},
}
