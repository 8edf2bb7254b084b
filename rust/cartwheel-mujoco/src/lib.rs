//! MuJoCo's environments, bit for bit as in Gymnasium 1.4.0, with the physics of the MuJoCo that the
//! program has loaded.
//!
//! The crate links nothing. Whoever makes environments gives it the addresses of MuJoCo's functions
//! ([`Library`]), numbers that describe a model ([`Model`]), and a way to make the simulation of a
//! row ([`MakeRow`]); it gets a number, which is the option `_simulation` of the environments.
//!
//! | noun | what it is |
//! |---|---|
//! | [`Library`] | MuJoCo's functions |
//! | [`Model`], [`Registered`] | what the rows of a vector environment share, and its number |
//! | [`RowParts`], [`MakeRow`] | the simulation of a row, by addresses, and how one is made |
//! | [`Stepper`] | that simulation, in the order of calls of Gymnasium's `MujocoEnv` |
//! | [`Robot`] | what differs between the environments: observations, rewards, resets, infos |
//!
//! [`PLUGIN`] is the table of them all.
//!
//! Exact results need NumPy 2's rules for `float32` and the C library that NumPy calls. This is
//! tested on x86-64 Linux with glibc.

mod env;
mod field;
mod guard;
pub mod half_cheetah;
mod library;
mod model;
mod numeric;
mod observation;
mod options;
mod registry;
mod scalar;
mod stepper;
mod table;

pub use env::{MujocoEnv, Robot, Weights};
pub use library::Library;
pub use model::{MakeRow, Model, RowParts, Sizes};
pub use options::{Fixed, NoiseScale, Range, Real};
pub use registry::Registered;
pub use scalar::Scalar;
pub use stepper::Stepper;
pub use table::PLUGIN;
