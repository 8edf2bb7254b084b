//! The module that Python imports: its attribute `__cartwheel__` is a capsule around the table.
//!
//! The module has no code that Python calls later, so it needs no GIL. It says so in a way that Python
//! knows from 3.13 on; otherwise a Python without a GIL would switch it on for the whole process.
//!
//! # Invariants
//!
//! 1. **Attached.** [`define`] and [`fill`] are called by the interpreter while it imports the library, so
//!    every call of Python here is allowed. A null pointer from Python is an error that is set.
//! 2. **Static.** The table, its name and the module's definition live as long as the process:
//!    libraries are never unloaded.
//! 3. **Slots.** The list of slots has an end, the value of `Py_mod_exec` is a function of that type, and
//!    that of `Py_mod_gil` is one of the two that Python defines.
#![expect(unsafe_code, reason = "calls of Python, see the invariants")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{from_ref, null_mut, without_provenance_mut};

use cartwheel_abi as abi;
use pyo3_ffi::{
    Py_DECREF, Py_GetVersion, Py_mod_exec, Py_mod_gil, PyCapsule_New, PyModule_AddObjectRef,
    PyModuleDef, PyModuleDef_HEAD_INIT, PyModuleDef_Init, PyModuleDef_Slot, PyObject,
};

/// A function that [`fill`]s the new module.
type Fill = unsafe extern "C" fn(*mut PyObject) -> c_int;

/// `Py_MOD_GIL_NOT_USED`, which a module for older versions, too, cannot name.
const NOT_USED: usize = 1;

/// Makes the definition of the module `name`, which Python makes and `run` fills.
///
/// # Safety
///
/// Invariant 1.
pub unsafe fn define(name: &'static CStr, run: Fill) -> *mut PyObject {
    let mut slots = vec![PyModuleDef_Slot { slot: Py_mod_exec, value: run as *mut c_void }];
    if knows_the_gil() {
        slots.push(PyModuleDef_Slot { slot: Py_mod_gil, value: without_provenance_mut(NOT_USED) });
    }
    slots.push(PyModuleDef_Slot::default()); // the end
    let definition = Box::leak(Box::new(PyModuleDef {
        m_base: PyModuleDef_HEAD_INIT,
        m_name: name.as_ptr(),
        m_doc: c"A library of environments; `cartwheel.register` takes it.".as_ptr(),
        m_size: 0, // no state
        m_methods: null_mut(),
        m_slots: slots.leak().as_mut_ptr(),
        m_traverse: None,
        m_clear: None,
        m_free: None,
    }));
    // SAFETY: definition and slots are static (invariants 2 and 3), Python is attached (invariant 1).
    unsafe { PyModuleDef_Init(definition) }
}

/// Whether this Python knows `Py_mod_gil`: older ones refuse modules with unknown slots.
fn knows_the_gil() -> bool {
    // SAFETY: Python is attached (invariant 1).
    let version = unsafe { Py_GetVersion() };
    // SAFETY: a static text, "3.14.5 (main, …) …".
    let version = unsafe { CStr::from_ptr(version) }.to_string_lossy();
    let mut numbers = version.split(|at: char| !at.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok);
    (next(), next()) >= (Some(3), Some(13))
}

/// Gives a module the attribute `__cartwheel__`; returns -1 with an error set if that fails.
///
/// # Safety
///
/// Invariant 1; `module` is the new module.
pub unsafe fn fill(module: *mut PyObject, plugin: &'static abi::Plugin) -> c_int {
    let table = from_ref(plugin).cast_mut().cast();
    // SAFETY: table and name are static (invariant 2); no code writes through the pointer.
    let capsule = unsafe { PyCapsule_New(table, abi::CAPSULE.as_ptr(), None) };
    if capsule.is_null() {
        return -1;
    }
    // SAFETY: both are objects of Python (invariant 1).
    let added = unsafe { PyModule_AddObjectRef(module, c"__cartwheel__".as_ptr(), capsule) };
    // SAFETY: the module has its own reference to the capsule, if it was added.
    unsafe { Py_DECREF(capsule) };
    added
}
