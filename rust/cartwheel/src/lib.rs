//! Write a reinforcement-learning environment in Rust.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod env;
mod failure;
#[macro_use]
mod options;
#[macro_use]
mod plugin;
#[cfg(feature = "python")]
mod python;
mod table;

pub use cartwheel_core::info::{Buffer, InfoWriter};
pub use cartwheel_core::rng::Rng;
pub use cartwheel_core::space::{Bounds, Space, Spaces};
pub use cartwheel_core::{DType, Error, Transition};
pub use env::{
    ActionOf, Block, BlockOf, Cell, Env, Flat, Frame, Info, InfoValue, NoOptions, ObservationOf,
    Parameter, ParameterArray, ParameterValue, RenderMode, Shared, Standard, State, Tuned, View,
    wrong,
};
pub use failure::Failure;
pub use table::EnvTable;

mod sealed {
    /// Implemented in this crate and by its macros only.
    pub trait Sealed {}
}

/// What the macros of this crate name. Nobody else should.
#[doc(hidden)]
pub mod __private {
    pub use crate::env::{Arrays, Leaves, LeavesMut, Slot, Wanted, all_read};
    pub use crate::options::parse;
    pub use crate::sealed::Sealed;
    pub use crate::table::{c_text, library};
    pub use cartwheel_abi as abi;
    pub use serde;

    #[cfg(feature = "python")]
    pub use crate::python::module;
    #[cfg(feature = "python")]
    pub use pyo3_ffi::PyObject;
}
