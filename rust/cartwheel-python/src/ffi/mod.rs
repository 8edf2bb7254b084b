//! Calls of pools from compiled functions of JAX: handlers of XLA, and the pools that they find.

mod handler;
mod registry;

pub(crate) use handler::xla_handlers;
pub(crate) use registry::{after_fork, before_fork, register_pool};
