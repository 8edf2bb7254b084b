//! Reinforcement-learning environments in Rust, stepped by the thousand.
//!
//! # Stepping
//!
//! An environment is a type. [`VectorEnv`] steps many of it, on any number of threads:
//!
//! ```
//! use cartwheel::{AutoresetMode, Seed, VectorEnv};
//! # use std::sync::Arc;
//! # use cartwheel::{Env, Error, Failure, NoOptions, Rng, Space, Spaces, Transition};
//! # struct Corridor { position: f32 }
//! # impl Env for Corridor {
//! #     type Options = NoOptions;
//! #     type ResetOptions = NoOptions;
//! #     type Action = i64;
//! #     type Observation = [f32; 1];
//! #     type Info = ();
//! #     type Shared = ();
//! #     fn spaces(_: &NoOptions, (): &()) -> Spaces {
//! #         let observation = Space::float_box(&[-1.0], &[f64::INFINITY]);
//! #         Spaces { observation, action: Space::discrete(2) }
//! #     }
//! #     fn new(_: &NoOptions, _: &Arc<()>) -> Result<Self, Error> { Ok(Self { position: 0.0 }) }
//! #     fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
//! #         self.position = rng.random_f32();
//! #         Ok(())
//! #     }
//! #     fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
//! #         self.position += if action == 1 { 1.0 } else { -1.0 };
//! #         Ok(Transition { reward: -1.0, terminated: self.position > 9.0, truncated: false })
//! #     }
//! #     fn observe(&self, observation: &mut [f32; 1]) { observation[0] = self.position; }
//! #     fn info(&self) {}
//! # }
//!
//! # fn main() -> Result<(), cartwheel::VectorError> {
//! let builder = VectorEnv::<Corridor>::builder(1024).threads(2).max_episode_steps(50);
//! let mut envs = builder.autoreset(AutoresetMode::SameStep).build()?;
//! let first = envs.reset(Seed(7))?; // row i has the seed 7 + i
//! assert!(first.observation(3)[0] < 1.0);
//! let mut returns = vec![0.0; envs.len()];
//! for _ in 0..100 {
//!     let actions: Vec<i64> = (0..1024).map(|row| row % 2).collect();
//!     let batch = envs.step(&actions)?; // faults are errors that name their rows
//!     let positions: &[[f32; 1]] = batch.observations().columns(); // in place, not copied
//!     assert!(positions.iter().all(|position| position[0] <= 10.0));
//!     returns.iter_mut().zip(batch.rewards()).for_each(|(sum, reward)| *sum += reward);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | what | how |
//! |---|---|
//! | actions | `&[A]`, one for each row: numbers, arrays, `Vec`s, tuples, structs; [`View`] has the table |
//! | results | [`Batch`]: observations in place, rewards and flags as slices, infos, last observations |
//! | resets | [`Seed`], [`Reset`]: seeds, some rows, options |
//! | a few rows at a time | [`VectorEnv::send`], [`VectorEnv::recv`] |
//! | rollouts | [`VectorEnv::record`], then [`returns`] |
//! | states, parameters, drawings | [`VectorEnv::get_state`], [`VectorEnv::parameter`], [`VectorEnv::render`] |
//!
//! One environment alone needs nothing of this: make an [`Rng`], call [`Env::reset`] and [`Env::step`].
//!
//! # Writing one
//!
//! An author implements [`Env`]. Everything else is done around it: autoreset, time limits, seeds,
//! threads, masks and the layout in memory. Here is the corridor of above, with options:
//!
//! ```
//! use std::sync::Arc;
//!
//! use cartwheel::{Env, Error, Failure, NoOptions, Rng, Space, Spaces, Transition};
//!
//! cartwheel::options! {
//!     /// Keywords, as `make_vec(…, length=20.0)` passes them.
//!     pub struct Options {
//!         /// Metres.
//!         length: f32 = 10.0,
//!     }
//! }
//!
//! /// Walk to the end of a corridor.
//! pub struct Corridor {
//!     length: f32,
//!     position: f32,
//! }
//!
//! impl Env for Corridor {
//!     type Options = Options;
//!     type ResetOptions = NoOptions;
//!     type Action = i64;
//!     type Observation = [f32; 1];
//!     type Info = ();
//!     type Shared = (); // tables and models that all rows share
//!
//!     fn spaces(_: &Options, (): &()) -> Spaces {
//!         let observation = Space::float_box(&[-1.0], &[f64::INFINITY]);
//!         Spaces { observation, action: Space::discrete(2) }
//!     }
//!
//!     fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
//!         if options.length <= 0.0 {
//!             return Err(Error::bad_options(format!("length is {}", options.length)));
//!         }
//!         Ok(Self { length: options.length, position: 0.0 })
//!     }
//!
//!     fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
//!         self.position = rng.random_f32();
//!         Ok(())
//!     }
//!
//!     fn step(&mut self, action: i64, _: &mut Rng) -> Result<Transition, Failure> {
//!         self.position += if action == 1 { 1.0 } else { -1.0 };
//!         let terminated = self.position >= self.length;
//!         Ok(Transition { reward: -1.0, terminated, truncated: self.position < -1.0 })
//!     }
//!
//!     fn observe(&self, observation: &mut [f32; 1]) {
//!         observation[0] = self.position;
//!     }
//!
//!     fn info(&self) {}
//!
//!     cartwheel::state! { length, position } // saves and loads
//!     cartwheel::parameters! { length: length } // `get_attr`, `set_attr`
//! }
//!
//! cartwheel::plugin! { _corridor {
//!     "my_game/Corridor-v0" => Corridor { max_episode_steps: 200 },
//! } }
//! ```
//!
//! | what | how |
//! |---|---|
//! | actions and observations | a number, an array, [`Flat`], [`Floats`], [`Text`], [`Either`], a tuple; [`view!`] for a `Dict`: see [`View`] |
//! | random numbers | [`Rng`]: NumPy's, bit for bit |
//! | options | [`options!`], or a struct that derives serde's `Deserialize` and implements [`EnvOptions`]; [`NoOptions`] |
//! | infos | [`info!`], [`InfoValue`], [`List`] |
//! | what rows share | [`Shared`], [`Tuned`] |
//! | attributes | [`parameters!`], [`Parameter`] |
//! | saved states | [`state!`], [`State`] |
//! | rendering | [`Env::RENDER`], [`Frame`] |
//! | failures | [`Failure`] from `reset` and `step`: the row's error; others go on |
//! | vector instructions | [`Env::step_block`], [`Block`] |
//! | tests | [`testing::check_env`] plays it in every way and names what is wrong |
//! | a library for Python | [`plugin!`], with the feature `python` |
//!
//! # From Python
//!
//! The library above is an extension module that maturin builds; its package registers it:
//!
//! ```text
//! import cartwheel
//! from my_game import _corridor
//!
//! cartwheel.register(_corridor)
//! envs = cartwheel.make_vec("my_game/Corridor-v0", 1024, length=20.0)
//! ```
//!
//! # Features
//!
//! `engine`, on by default, has [`VectorEnv`], [`returns`] and [`testing`]. Without it the crate has what
//! authors need, and neither threads nor system calls: a library for Python wants
//! `default-features = false`, a feature of its own for `cartwheel/python`, which maturin turns on, and
//! the crate with its default features among the `[dev-dependencies]`, for [`testing`]. `python -m
//! cartwheel new` writes such a crate.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(feature = "engine"),
    expect(rustdoc::broken_intra_doc_links, reason = "what the feature has is described, too")
)]

mod env;
mod failure;
#[macro_use]
mod options;
#[macro_use]
mod plugin;
#[cfg(feature = "python")]
mod python;
mod sealed;
mod table;
#[cfg(feature = "engine")]
pub mod testing;
#[cfg(feature = "engine")]
pub mod vector;

pub use cartwheel_core::info::{Buffer, InfoWriter};
pub use cartwheel_core::rng::{self, Rng};
pub use cartwheel_core::space::{Bounds, Space, Spaces, TextSpace};
pub use cartwheel_core::{DType, Error, Leaf, Transition};
#[cfg(feature = "engine")]
pub use cartwheel_kernels::returns;
pub use env::{
    ActionOf, AgentFlags, Block, BlockOf, Cell, Either, Env, Flat, Floats, FloatsRef, Frame, Info,
    InfoValue, List, NoOptions, ObservationOf, Parameter, ParameterArray, ParameterValue,
    RenderMode, Shared, Standard, State, Text, TextMut, Texts, Tuned, View, wrong,
};
pub use failure::Failure;
pub use options::{EnvOptions, OptionDoc};
pub use table::EnvTable;
#[cfg(feature = "engine")]
pub use vector::{AutoresetMode, Batch, OnDone, Reset, Seed, VectorEnv, VectorError};

/// Names for the macros of this crate. No other code should use them.
#[doc(hidden)]
pub mod __private {
    pub use crate::Leaf;
    pub use crate::env::{Arrays, Leaves, LeavesMut, Slot, Store, Wanted, all_read, name};
    pub use crate::options::{AsJson, NotJson, as_serde_names, one_line, parse};
    pub use crate::sealed::Sealed;
    pub use crate::table::{c_text, library};
    pub use cartwheel_abi as abi;
    pub use serde;

    /// The name that [`options!`](crate::options!) imports where it is called, whatever this crate is called there.
    pub mod names_for_serde {
        pub use serde as __cartwheel_serde;
    }

    #[cfg(feature = "python")]
    pub use crate::python::{fill, module};
    #[cfg(feature = "python")]
    pub use pyo3_ffi::PyObject;
}
