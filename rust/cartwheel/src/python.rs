//! The module that Python imports: its attribute `__cartwheel__` is a capsule around the table.
//!
//! # Invariants
//!
//! 1. **Attached.** [`module`] and [`fill`] are called by the interpreter while it imports the library, so
//!    every call of Python here is allowed. A null pointer from Python is an error that is set.
//! 2. **Static.** The table, its name and the module's definition live as long as the process:
//!    libraries are never unloaded.
#![expect(unsafe_code, reason = "calls of Python, see the invariants")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{from_ref, null_mut, without_provenance_mut};

use cartwheel_abi as abi;
use pyo3_ffi::{
    Py_DECREF, Py_GetVersion, Py_mod_exec, Py_mod_gil, PyCapsule_New, PyModule_AddObjectRef,
    PyModuleDef, PyModuleDef_HEAD_INIT, PyModuleDef_Init, PyModuleDef_Slot, PyObject,
};

/// `Py_MOD_GIL_NOT_USED`, which is not among the names of the stable ABI.
const GIL_NOT_USED: *mut c_void = without_provenance_mut(1);

/// The definition of the module `name`, which Python makes and passes to `fill`, a call of [`fill`]; null
/// with an error set.
///
/// # Safety
///
/// Invariant 1.
pub unsafe fn module(
    name: &'static CStr,
    fill: extern "C" fn(*mut PyObject) -> c_int,
) -> *mut PyObject {
    let mut slots = vec![PyModuleDef_Slot { slot: Py_mod_exec, value: fill as *mut c_void }];
    // SAFETY: Python is attached (invariant 1).
    let version = unsafe { Py_GetVersion() };
    // SAFETY: a static text that ends with a zero byte.
    let version = unsafe { CStr::from_ptr(version) };
    // Without the slot, Python would enable the GIL for the whole process; before 3.13 it does not know
    // the slot, and refuses the module.
    if version.to_string_lossy().contains("free-threading") {
        slots.push(PyModuleDef_Slot { slot: Py_mod_gil, value: GIL_NOT_USED });
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
    // SAFETY: the definition is static (invariant 2), Python is attached (invariant 1).
    unsafe { PyModuleDef_Init(definition) }
}

/// Gives a module the attribute `__cartwheel__`; -1 with an error set.
///
/// # Safety
///
/// Invariant 1.
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
