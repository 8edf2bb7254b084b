//! Many environments, stepped together.
//!
//! | noun | what it is |
//! |---|---|
//! | [`VectorEnv`] | the environments |
//! | [`Builder`] | their settings |
//! | [`Reset`], [`Seed`] | which rows are reset, and how |
//! | [`Batch`] | what a step or a reset gives |
//! | [`Observations`] | observations of many rows, in place |
//! | [`Infos`], [`InfoRow`] | what environments reported |
//! | [`Finals`] | last observations, where the same step begins the next episode |
//! | [`Recording`], [`Rollout`] | consecutive steps in one memory, for [`returns`](crate::returns) |
//! | [`VectorError`], [`Fault`], [`EngineError`] | why there is no batch |
//!
//! The engine behind it is the crate `cartwheel-engine`, which also steps environments of Python.

mod actions;
mod batch;
mod builder;
mod error;
mod ffi;
mod finals;
mod infos;
mod observations;
mod requests;
mod reset;
mod rollout;
mod sending;
mod vector_env;

pub use batch::Batch;
pub use builder::Builder;
pub use cartwheel_engine::Error as EngineError;
pub use cartwheel_engine::autoreset::{AutoresetMode, OnDone};
pub use error::{Fault, VectorError};
pub(crate) use ffi::kind;
pub use finals::Finals;
pub(crate) use infos::{FINAL_INFO, FINAL_OBS};
pub use infos::{InfoRow, Infos};
pub use observations::Observations;
pub use requests::Drawing;
pub use reset::{Reset, Seed};
pub use rollout::{Recording, Rollout};
pub use vector_env::VectorEnv;
