//! Tables: what the host calls, made for a type of environment.
//!
//! ```text
//! EnvTable ─▶ functions.rs: pointers to Rust's types, results to codes
//!              ├ typed_kind.rs: options, what rows share, spaces as nodes (nodes.rs)
//!              ├ typed_rows.rs: environments, the loop that steps them
//!              ├ batch_call.rs: a batch of the host, with Rust's types
//!              ├ sink.rs: bytes that the host owns
//!              └ guard.rs: panics of authors' code, caught
//! ```

mod batch_call;
mod functions;
mod guard;
mod nodes;
mod sink;
mod typed_kind;
mod typed_rows;

use std::ffi::CStr;

use cartwheel_abi as abi;

use crate::env::Env;
#[cfg(feature = "engine")]
pub(crate) use functions::{kind_of, reset_options_of};
#[cfg(feature = "engine")]
pub(crate) use guard::{panic_text, printing, watch_panics};

/// The table of an environment, under an id; [`plugin!`](crate::plugin!) and [`table!`](crate::table!)
/// make them.
///
/// ```
/// # use cartwheel::{Env, EnvTable};
/// const fn table<E: Env>() -> EnvTable {
///     EnvTable::new::<E>(c"my_game/Maze-v0").max_episode_steps(200).reward_threshold(0.9)
/// }
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct EnvTable(abi::Env);

impl EnvTable {
    /// The table of an `E` with this id, as in Gymnasium's registry.
    ///
    /// # Panics
    ///
    /// At compile time, when [`Env::BLOCK`] is 0.
    pub const fn new<E: Env>(id: &'static CStr) -> Self {
        assert!(E::BLOCK >= 1 && E::BLOCK <= u32::MAX as usize, "Env::BLOCK is at least 1");
        Self(abi::Env {
            struct_size: size_of::<abi::Env>(),
            id: id.as_ptr(),
            default_options: c"{}".as_ptr(),
            max_episode_steps: 0,
            #[expect(clippy::cast_possible_truncation, reason = "checked above")]
            block: E::BLOCK as u32,
            reward_threshold: f64::NAN,
            option_names: Some(functions::option_names::<E>),
            kind_new: Some(functions::kind_new::<E>),
            kind_free: Some(functions::kind_free::<E>),
            kind_describe: Some(functions::kind_describe::<E>),
            rows_new: Some(functions::rows_new::<E>),
            rows_free: Some(functions::rows_free::<E>),
            run: Some(functions::run::<E>),
            reset_options_new: Some(functions::reset_options_new::<E>),
            reset_options_free: Some(functions::reset_options_free::<E>),
            row_replace: Some(functions::row_replace::<E>),
            parameter_get: Some(functions::parameter_get::<E>),
            parameter_set: Some(functions::parameter_set::<E>),
            row_save: if E::SAVES { Some(functions::row_save::<E>) } else { None },
            row_load: if E::SAVES { Some(functions::row_load::<E>) } else { None },
            row_render: if E::RENDER.is_empty() { None } else { Some(functions::row_render::<E>) },
            reset_option_names: Some(functions::reset_option_names::<E>),
        })
    }

    /// The table, for the engine of this program.
    #[cfg(feature = "engine")]
    pub(crate) const fn into_abi(self) -> abi::Env {
        self.0
    }

    /// Steps after which an episode is truncated; 0, the default, for no limit.
    #[must_use]
    pub const fn max_episode_steps(mut self, steps: u32) -> Self {
        self.0.max_episode_steps = steps;
        self
    }

    /// The return from which the task counts as solved.
    #[must_use]
    pub const fn reward_threshold(mut self, reward: f64) -> Self {
        self.0.reward_threshold = reward;
        self
    }

    /// Options that the id implies, as a JSON object; the caller's options override them.
    #[must_use]
    pub const fn default_options(mut self, json: &'static CStr) -> Self {
        self.0.default_options = json.as_ptr();
        self
    }
}

/// The table of a library whose environments are `envs`.
#[doc(hidden)]
pub const fn library(
    name: &'static CStr,
    version: &'static CStr,
    envs: &'static [EnvTable],
) -> abi::Plugin {
    abi::Plugin {
        struct_size: size_of::<abi::Plugin>(),
        major: abi::MAJOR,
        minor: abi::MINOR,
        name: name.as_ptr(),
        version: version.as_ptr(),
        needs_minor: 0,
        #[expect(clippy::cast_possible_truncation, reason = "the size of a small struct")]
        env_size: size_of::<abi::Env>() as u32,
        envs: envs.as_ptr().cast(), // an `EnvTable` is an `abi::Env`
        num_envs: envs.len(),
    }
}

/// Text of a macro as the C text that it is a part of.
#[doc(hidden)]
pub const fn c_text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("an id, or options in JSON, contain a zero byte"),
    }
}
