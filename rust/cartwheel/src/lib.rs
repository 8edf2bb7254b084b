//! Write a reinforcement-learning environment in Rust.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod env;
mod failure;
mod options;
#[macro_use]
mod plugin;
#[cfg(feature = "python")]
mod python;
mod table;
#[cfg(feature = "engine")]
pub mod testing;
#[cfg(feature = "engine")]
pub mod vector;

pub use cartwheel_core::info::{Buffer, InfoWriter};
pub use cartwheel_core::rng::Rng;
pub use cartwheel_core::space::{Bounds, Space, Spaces};
pub use cartwheel_core::{DType, Error, Transition};
#[cfg(feature = "engine")]
pub use cartwheel_engine::returns;
pub use env::{
    ActionOf, Block, BlockOf, Cell, Env, Flat, Frame, Info, InfoValue, NoOptions, ObservationOf,
    Parameter, ParameterArray, ParameterValue, RenderMode, Shared, Standard, State, Tuned, View,
    wrong,
};
pub use failure::Failure;
pub use table::EnvTable;
#[cfg(feature = "engine")]
pub use vector::{AutoresetMode, Batch, OnDone, Reset, Seed, VectorEnv, VectorError};

mod sealed {
    /// Implemented in this crate and by its macros only.
    pub trait Sealed {}
}

/// What the macros of this crate name. Nobody else should.
#[doc(hidden)]
pub mod __private {
    pub use crate::env::{Arrays, Leaves, LeavesMut, Slot, Store, Wanted, all_read};
    pub use crate::options::parse;
    pub use crate::sealed::Sealed;
    pub use crate::table::{c_text, library};
    pub use cartwheel_abi as abi;

    #[cfg(feature = "python")]
    pub use crate::python::module;
    #[cfg(feature = "python")]
    pub use pyo3_ffi::PyObject;
}
