//! Null: an environment that does nothing, to measure the engine alone.
//!
//! | | |
//! |---|---|
//! | action | 0, without effect |
//! | observation | `uint8` of any shape; every element is the step count modulo 256 |
//! | reward | 0 |
//! | terminates | after `episode_steps` steps, if that is not 0 |

use cartwheel::Error;
use cartwheel::autoreset::Transition;
use cartwheel::env::Env;
use cartwheel::native::{Bounds, Flat, Space, Spaces};
use cartwheel::rng::Rng;
use cartwheel::space::DType;
use serde::Deserialize;

use crate::Ignored;

/// Keywords.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Shape of an observation.
    pub shape: Vec<usize>,
    /// Length of an episode; 0 for episodes without end.
    pub episode_steps: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { shape: vec![1], episode_steps: 0 }
    }
}

/// Nothing at all.
#[derive(Debug, Clone)]
pub struct Null {
    steps: u64,
    episode_steps: u64,
}

impl Env for Null {
    type Options = Options;
    type ResetOptions = Ignored;
    type Action = i64;
    type Observation = Flat<u8>;
    type Info = ();

    fn spaces(options: &Options) -> Spaces {
        let (shape, low, high) = (options.shape.clone(), Bounds::All(0.0), Bounds::All(255.0));
        let observation = Space::Box { dtype: DType::U8, shape, low, high };
        Spaces { observation, action: Space::discrete(1) }
    }

    fn new(options: &Options) -> Result<Self, Error> {
        let elements = options.shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        if elements.is_none_or(|elements| elements > 1 << 32) {
            return Err(Error::bad_options(format!("shape {:?} is too large", options.shape)));
        }
        Ok(Self { steps: 0, episode_steps: options.episode_steps })
    }

    #[inline]
    fn reset(&mut self, _: &mut Rng, _: &Ignored) {
        self.steps = 0;
    }

    #[inline]
    fn step(&mut self, _: i64, _: &mut Rng) -> Transition {
        self.steps += 1;
        let terminated = self.steps == self.episode_steps;
        Transition { reward: 0.0, terminated, truncated: false }
    }

    #[inline]
    fn observe(&self, observation: &mut [u8]) {
        observation.fill(self.steps.to_le_bytes()[0]);
    }

    #[inline]
    fn info(&self) {}

    fn snapshot(&self) -> Option<Self> {
        Some(self.clone())
    }
}
