//! The environments that come with this package, registered as those of any other plugin.
//!
//! # Invariants
//!
//! 1. The table of `cartwheel-envs` is static, and made by the crate `cartwheel`, whose functions
//!    keep the contract of `cartwheel_abi`.
#![expect(unsafe_code, reason = "promises that the table keeps the contract, see the invariants")]

use cartwheel_engine::plugin::{BUILT_IN, register};
use pyo3::prelude::*;

use crate::error::to_py_err;

/// Registers the environments that come with this package.
pub(crate) fn register_built_in() -> PyResult<()> {
    // SAFETY: such a table (invariant 1).
    let registered = unsafe { register(&raw const cartwheel_envs::PLUGIN, BUILT_IN) };
    registered.map(drop).map_err(to_py_err)
}
