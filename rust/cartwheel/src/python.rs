//! The module that Python imports: its attribute `__cartwheel__` is a capsule around the table.
//!
//! # Invariants
//!
//! 1. **Attached.** [`module`] is called by the interpreter while it imports the library, so every
//!    call of Python here is allowed. A null pointer from Python is an error that is set.
//! 2. **Static.** The table, its name and the module's definition live as long as the process:
//!    libraries are never unloaded.
#![expect(unsafe_code, reason = "calls of Python, see the invariants")]

use std::ffi::CStr;
use std::ptr::{from_ref, null_mut};

use cartwheel_abi as abi;
use pyo3_ffi::{
    Py_DECREF, PyCapsule_New, PyModule_AddObjectRef, PyModule_Create, PyModuleDef,
    PyModuleDef_HEAD_INIT, PyObject,
};

/// Makes the module `name` with the attribute `__cartwheel__`, or null with an error set.
///
/// # Safety
///
/// Invariant 1.
pub unsafe fn module(name: &'static CStr, plugin: &'static abi::Plugin) -> *mut PyObject {
    let definition = Box::leak(Box::new(PyModuleDef {
        m_base: PyModuleDef_HEAD_INIT,
        m_name: name.as_ptr(),
        m_doc: c"A library of environments; `cartwheel.register` takes it.".as_ptr(),
        m_size: -1, // no state: a second import returns the same module
        m_methods: null_mut(),
        m_slots: null_mut(),
        m_traverse: None,
        m_clear: None,
        m_free: None,
    }));
    // SAFETY: the definition is static (invariant 2), Python is attached (invariant 1).
    let module = unsafe { PyModule_Create(definition) };
    if module.is_null() {
        return null_mut();
    }
    let table = from_ref(plugin).cast_mut().cast();
    // SAFETY: table and name are static (invariant 2); no code writes through the pointer.
    let capsule = unsafe { PyCapsule_New(table, abi::CAPSULE.as_ptr(), None) };
    if capsule.is_null() {
        // SAFETY: the only reference to the module.
        unsafe { Py_DECREF(module) };
        return null_mut();
    }
    // SAFETY: both are objects of Python (invariant 1).
    let added = unsafe { PyModule_AddObjectRef(module, c"__cartwheel__".as_ptr(), capsule) };
    // SAFETY: the module has its own reference to the capsule, if it was added.
    unsafe { Py_DECREF(capsule) };
    if added != 0 {
        // SAFETY: the only reference to the module.
        unsafe { Py_DECREF(module) };
        return null_mut();
    }
    module
}
