//! Origin of a handle.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::platform::process_id;

/// An object of a plugin, with the process that made it.
#[derive(Debug)]
pub(super) struct Handle {
    made: NonNull<c_void>,
    process: u32,
}

impl Handle {
    /// Wraps an object that a plugin made in this process.
    pub(super) fn new(made: NonNull<c_void>) -> Self {
        Self { made, process: process_id() }
    }

    /// Whether this is the process in which it was made (invariant 4).
    pub(super) fn is_usable(&self) -> bool {
        self.process == process_id()
    }

    /// The plugin's object.
    ///
    /// # Panics
    ///
    /// In a forked child.
    pub(super) fn get(&self) -> *mut c_void {
        assert!(self.is_usable(), "environments are used in the process that made them");
        self.made.as_ptr()
    }
}
