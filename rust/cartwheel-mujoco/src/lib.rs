//! MuJoCo's environments, bit for bit as in Gymnasium 1.4.0, with the physics of the MuJoCo that the
//! program has loaded.
//!
//! The crate links nothing. The maker of environments passes it the addresses of MuJoCo's functions
//! ([`Library`]), numbers that describe a model ([`Model`]), and a way to make the simulation of a
//! row ([`RowParts`]); it gets a number, which is the option `_simulation` of the environments.
//!
//! | noun | what it is |
//! |---|---|
//! | [`Library`] | MuJoCo's functions |
//! | [`Model`], [`Registered`] | what the rows of a vector environment share, and its number |
//! | [`RowParts`] | the simulation of a row, by addresses |
//! | [`Stepper`] | that simulation, in the order of calls of Gymnasium's `MujocoEnv` |
//! | [`Robot`] | what differs between the environments: observations, rewards, resets, infos |
//!
//! [`PLUGIN`] is the table of them all.
//!
//! Exact results need NumPy 2's rules for `float32` and the C library that NumPy calls. This is
//! tested on x86-64 Linux with glibc.

pub mod ant;
mod body_observation;
mod clock;
mod env;
mod field;
pub mod forks;
mod guard;
pub mod half_cheetah;
pub mod hopper;
pub mod humanoid;
pub mod humanoid_standup;
pub mod inverted_double_pendulum;
pub mod inverted_pendulum;
mod library;
mod memory;
mod model;
mod numeric;
mod observation;
mod options;
mod parameters;
mod planar;
pub mod pusher;
mod python_number;
pub mod reacher;
mod registry;
mod scalar;
pub mod simulation;
mod stepper;
pub mod swimmer;
mod table;
pub mod walker2d;

pub use ant::Ant;
pub use env::{MujocoEnv, Robot, RobotInfo, Step};
pub use half_cheetah::HalfCheetah;
pub use hopper::Hopper;
pub use humanoid::Humanoid;
pub use humanoid_standup::HumanoidStandup;
pub use inverted_double_pendulum::InvertedDoublePendulum;
pub use inverted_pendulum::InvertedPendulum;
pub use library::Library;
pub use model::{Model, RowParts, Sizes};
pub use observation::Observation;
pub use options::{Fixed, NoiseScale, Range, RobotOptions};
pub use planar::{Health, Planar, PlanarInfo, PlanarOptions};
pub use pusher::Pusher;
pub use python_number::PythonNumber;
pub use reacher::Reacher;
pub use registry::{Registered, SharedModel};
pub use scalar::Scalar;
pub use simulation::Simulation;
pub use stepper::{Stepper, VelocityNoise};
pub use swimmer::Swimmer;
pub use table::PLUGIN;
pub use walker2d::Walker2d;
