//! The tests of the crate, in one program.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod agents;
#[cfg(feature = "engine")]
mod built_in;
#[cfg(feature = "engine")]
mod check_env;
mod either;
mod faults;
mod floats;
mod maze;
#[cfg(feature = "engine")]
mod names;
mod saved;
#[cfg(feature = "engine")]
mod silent_panics;
mod support;
mod texts;
mod values;
#[cfg(feature = "engine")]
mod vector;
#[cfg(feature = "engine")]
mod walk;
