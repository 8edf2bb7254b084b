//! Tables of plugins from Python: capsules of extension modules, and symbols of libraries.
//!
//! # Invariants
//!
//! 1. A capsule named `cartwheel.plugin`, and a symbol `cartwheel_plugin`, are the table of a
//!    plugin. Nothing can prove it: to import a module or load a library is to trust its author.
//! 2. Modules and libraries are never unloaded, so their tables are static.
#![expect(unsafe_code, reason = "reads what plugins offer, see the invariants")]

use std::path::PathBuf;

use cartwheel_abi::{CAPSULE, Plugin};
use cartwheel_engine::plugin::{BUILT_IN, register};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::to_py_err;

#[pyfunction]
pub(crate) fn register_plugin(
    capsule: &Bound<'_, PyAny>,
    module: Option<&str>,
) -> PyResult<Vec<String>> {
    let wanted = "expected an extension module with the attribute `__cartwheel__`, a capsule named \
                  'cartwheel.plugin', as in `cartwheel.register(my_game._my_game)`";
    let wrong = |what: String| PyTypeError::new_err(format!("{wanted}, {what}"));
    let owner = module.map_or_else(String::new, |name| format!(" as `__cartwheel__` of {name}"));
    let Ok(table) = capsule.cast::<PyCapsule>() else {
        let got = capsule.repr()?;
        return Err(wrong(match module {
            // The module itself was passed on, since it has no such attribute.
            Some(name) if capsule.hasattr("__name__")? => format!("and {name} has none"),
            _ => format!("got {got}{owner}"),
        }));
    };
    let Ok(pointer) = table.pointer_checked(Some(CAPSULE)) else {
        let got = capsule.repr()?;
        return Err(wrong(format!("got {got}{owner}")));
    };
    // SAFETY: the capsule has the name that only tables have (invariant 1), and its module stays loaded
    // (invariant 2).
    unsafe { register(pointer.as_ptr().cast::<Plugin>(), module.unwrap_or("a capsule")) }
        .map_err(to_py_err)
}

#[pyfunction]
pub(crate) fn load_plugin(path: PathBuf) -> PyResult<Vec<String>> {
    let shown = path.display();
    // SAFETY: the caller trusts the library and what it runs when it is loaded (invariant 1).
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| {
        PyImportError::new_err(format!(
            "{shown} cannot be loaded: {}. It must be a shared library for this machine, as from \
             `cc -shared -fPIC`",
            reason(&error)
        ))
    })?;
    // SAFETY: a symbol of this name is a table (invariant 1).
    let table = unsafe { library.get::<*const Plugin>(c"cartwheel_plugin") }.map_err(|_| {
        PyImportError::new_err(format!(
            "{shown} has no symbol `cartwheel_plugin`: it must export its table under this name, \
             see cartwheel.h"
        ))
    })?;
    let table = *table;
    std::mem::forget(library); // invariant 2
    // SAFETY: the symbol has the name that only tables have (invariant 1), and the library was just
    // leaked (invariant 2).
    unsafe { register(table, &shown.to_string()) }.map_err(to_py_err)
}

/// Registers the environments that come with cartwheel.
pub(crate) fn register_built_in() -> PyResult<()> {
    for plugin in [&raw const cartwheel_envs::PLUGIN, &raw const cartwheel_mujoco::PLUGIN] {
        // SAFETY: the tables are static items that the crate for authors made (invariants 1 and 2).
        unsafe { register(plugin, BUILT_IN) }.map_err(to_py_err)?;
    }
    Ok(())
}

/// The reason that the system gives for an error.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
