//! The table of environments: id, defaults, and the functions that make them.

use std::num::NonZero;

use cartwheel_core::Error as EnvError;
use cartwheel_engine::Error;
use cartwheel_engine::env::Env;
use cartwheel_engine::native::{AnyRecipe, Recipe};
use cartwheel_engine::plain_loop::PlainLoops;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate as envs;
use crate::keywords::{names_of, wrong_option};

/// Makes the recipe of one type of environment.
type Make = fn(Map<String, Value>) -> Result<Box<dyn AnyRecipe>, Error>;

/// Runs plain loops over one type of environment.
type Run = fn(Map<String, Value>, &PlainLoops) -> Result<f64, Error>;

/// One registered environment.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Gymnasium's id, without a namespace.
    pub id: &'static str,
    /// Keywords that the id implies, as a JSON object; the caller's keywords override them.
    pub keywords: &'static str,
    /// Steps after which an episode is truncated.
    pub max_episode_steps: Option<NonZero<u32>>,
    /// The return from which the task counts as solved.
    pub reward_threshold: Option<f64>,
    /// Maximum number of rows that it steps at once: [`Env::BLOCK`].
    pub block: usize,
    /// The names of its keywords.
    pub options: fn() -> &'static [&'static str],
    make: Make,
    run: Run,
}

impl Entry {
    const fn new<E: Env>(id: &'static str) -> Self {
        Self {
            id,
            keywords: "{}",
            max_episode_steps: None,
            reward_threshold: None,
            block: E::BLOCK,
            options: names_of::<E::Options>,
            make: make::<E>,
            run: run::<E>,
        }
    }

    const fn keywords(self, keywords: &'static str) -> Self {
        Self { keywords, ..self }
    }

    const fn limit(self, steps: u32) -> Self {
        Self { max_episode_steps: NonZero::new(steps), ..self }
    }

    const fn threshold(self, reward: f64) -> Self {
        Self { reward_threshold: Some(reward), ..self }
    }

    /// The recipe with these keywords, a JSON object or empty text.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`] when the environment does not have a keyword or cannot use its value.
    pub fn recipe(&self, keywords: &str) -> Result<Box<dyn AnyRecipe>, Error> {
        let all = self.with_defaults(keywords)?;
        (self.make)(all).map_err(|error| self.name(error))
    }

    /// Runs [plain loops](PlainLoops::run) over environments with these keywords.
    ///
    /// # Errors
    ///
    /// The errors of [`Entry::recipe`] and of [`PlainLoops::run`].
    pub fn run_plain_loops(&self, keywords: &str, loops: &PlainLoops) -> Result<f64, Error> {
        (self.run)(self.with_defaults(keywords)?, loops).map_err(|error| self.name(error))
    }

    /// Adds to the error which environment refused its keywords.
    fn name(&self, error: Error) -> Error {
        match error {
            Error::Env(EnvError::BadOptions(what)) => {
                Error::bad_options(format!("{}: {what}", self.id))
            }
            other => other,
        }
    }

    /// The keywords of the id, overridden by these.
    fn with_defaults(&self, keywords: &str) -> Result<Map<String, Value>, Error> {
        let mut all: Map<String, Value> =
            serde_json::from_str(self.keywords).map_err(Error::bad_options)?;
        if !keywords.trim().is_empty() {
            let given: Map<String, Value> =
                serde_json::from_str(keywords).map_err(Error::bad_options)?;
            all.extend(given);
        }
        Ok(all)
    }
}

fn recipe<E: Env>(keywords: Map<String, Value>) -> Result<Recipe<E>, Error> {
    let options = E::Options::deserialize(Value::Object(keywords.clone()))
        .map_err(|error| Error::bad_options(wrong_option::<E::Options>(&keywords, &error)))?;
    Recipe::with_options(options)
}

fn make<E: Env>(keywords: Map<String, Value>) -> Result<Box<dyn AnyRecipe>, Error> {
    Ok(Box::new(recipe::<E>(keywords)?))
}

fn run<E: Env>(keywords: Map<String, Value>, loops: &PlainLoops) -> Result<f64, Error> {
    loops.run(&recipe::<E>(keywords)?)
}

/// Every environment, with the defaults of Gymnasium's registry.
pub static ENTRIES: &[Entry] = &[
    Entry::new::<envs::CartPole>("CartPole-v0").limit(200).threshold(195.0),
    Entry::new::<envs::CartPole>("CartPole-v1").limit(500).threshold(475.0),
    Entry::new::<envs::MountainCar>("MountainCar-v0").limit(200).threshold(-110.0),
    Entry::new::<envs::ContinuousMountainCar>("MountainCarContinuous-v0")
        .limit(999)
        .threshold(90.0),
    Entry::new::<envs::Pendulum>("Pendulum-v1").limit(200),
    Entry::new::<envs::Acrobot>("Acrobot-v1").limit(500).threshold(-100.0),
    Entry::new::<envs::Blackjack>("Blackjack-v1").keywords(r#"{"sab": true, "natural": false}"#),
    Entry::new::<envs::FrozenLake>("FrozenLake-v1")
        .keywords(r#"{"map_name": "4x4"}"#)
        .limit(100)
        .threshold(0.7),
    Entry::new::<envs::FrozenLake>("FrozenLake8x8-v1")
        .keywords(r#"{"map_name": "8x8"}"#)
        .limit(200)
        .threshold(0.85),
    Entry::new::<envs::CliffWalking>("CliffWalking-v1"),
    Entry::new::<envs::CliffWalking>("CliffWalkingSlippery-v1")
        .keywords(r#"{"is_slippery": true}"#),
    Entry::new::<envs::Taxi>("Taxi-v4").limit(200).threshold(8.0),
    Entry::new::<envs::Null>("Null-v0"),
];

/// The entry of an id, with or without the namespace `cartwheel/`.
///
/// # Errors
///
/// [`Error::UnknownEnv`].
pub fn find(id: &str) -> Result<&'static Entry, Error> {
    let name = id.strip_prefix("cartwheel/").unwrap_or(id);
    let entry = ENTRIES.iter().find(|entry| entry.id == name);
    entry.ok_or_else(|| Error::UnknownEnv(id.to_owned()))
}
