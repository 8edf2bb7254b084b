//! Recipes: a kind of environment with its options, which makes shards.

use std::fmt;
use std::sync::Arc;

use super::mailbox::{Mailbox, ResetOptions};
use super::settings::ShardSettings;
use super::shard::NativeShard;
use crate::env::{Env, Spaces, check};
use crate::error::Error;
use crate::worker::OwnShard;

/// A recipe for a kind of environment that is not known at compile time.
pub trait AnyRecipe: fmt::Debug + Send + Sync {
    /// The spaces of one row.
    fn spaces(&self) -> &Spaces;

    /// The names of the parameters.
    fn parameters(&self) -> &'static [&'static str];

    /// Parses the options of a reset from a JSON object.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`].
    fn reset_options(&self, json: &str) -> Result<ResetOptions, Error>;

    /// Makes the environments of one worker, `rows` of them, and the mailbox that they share with
    /// the owner of the pool.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`], or [`Error::Os`] when the system has no entropy.
    fn shard(
        &self,
        rows: usize,
        settings: ShardSettings,
    ) -> Result<(Box<dyn OwnShard>, Arc<Mailbox>), Error>;
}

/// The recipe of an `E`.
pub struct Recipe<E: Env> {
    pub(crate) options: Arc<E::Options>,
    pub(crate) spaces: Arc<Spaces>,
}

impl<E: Env> fmt::Debug for Recipe<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recipe").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<E: Env> Recipe<E> {
    /// The recipe with the options in a JSON object, checked by making one environment.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`].
    pub fn new(json: &str) -> Result<Self, Error> {
        Self::with_options(parse(json)?)
    }

    /// The recipe with these options, checked by making one environment.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`].
    pub fn with_options(options: E::Options) -> Result<Self, Error> {
        drop(E::new(&options)?);
        let spaces = Arc::new(E::spaces(&options));
        spaces.observation.check_keys("observation")?;
        spaces.action.check_keys("action")?;
        check::<E::Observation>("observation", &spaces.observation.leaves())?;
        check::<E::Action>("action", &spaces.action.leaves())?;
        Ok(Self { options: Arc::new(options), spaces })
    }

    /// The options.
    pub fn options(&self) -> &E::Options {
        &self.options
    }
}

/// Parses options from a JSON object; an empty text means the defaults.
fn parse<T: serde::de::DeserializeOwned + Default>(json: &str) -> Result<T, Error> {
    if json.trim().is_empty() {
        return Ok(T::default());
    }
    // Values have no lines and columns, which would be those of JSON that the caller never wrote.
    let value: serde_json::Value = serde_json::from_str(json).map_err(Error::bad_options)?;
    T::deserialize(value).map_err(Error::bad_options)
}

impl<E: Env> AnyRecipe for Recipe<E> {
    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn parameters(&self) -> &'static [&'static str] {
        E::parameters()
    }

    fn reset_options(&self, json: &str) -> Result<ResetOptions, Error> {
        parse::<E::ResetOptions>(json).map(|options| ResetOptions(Arc::new(options)))
    }

    fn shard(
        &self,
        rows: usize,
        settings: ShardSettings,
    ) -> Result<(Box<dyn OwnShard>, Arc<Mailbox>), Error> {
        let envs = (0..rows).map(|_| E::new(&self.options)).collect::<Result<Vec<_>, _>>()?;
        let mailbox = Arc::new(Mailbox::default());
        let spaces = Arc::clone(&self.spaces);
        let options = Arc::clone(&self.options);
        let shard = NativeShard::new(envs, options, spaces, settings, Arc::clone(&mailbox))?;
        Ok((Box::new(shard), mailbox))
    }
}
