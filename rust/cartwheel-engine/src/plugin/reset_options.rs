//! Options of a reset.
#![expect(unsafe_code, reason = "calls plugins, see the invariants of the module")]

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use super::env_kind::EnvKind;
use super::handle::Handle;
use super::sink::with_message;
use crate::error::Error;
use crate::platform::with_standard_floats;

/// Options of a reset, parsed and checked by the plugin. Cheap to clone.
#[derive(Clone)]
pub struct ResetOptions(Arc<Parsed>);

struct Parsed {
    made: Handle,
    kind: Arc<EnvKind>,
}

// SAFETY: options of a reset are read by any number of threads, as a kind is (invariant 3).
unsafe impl Send for Parsed {}
// SAFETY: options of a reset are read by any number of threads, as a kind is (invariant 3).
unsafe impl Sync for Parsed {}

impl fmt::Debug for ResetOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResetOptions")
            .field("id", &self.0.kind.table().id())
            .finish_non_exhaustive()
    }
}

impl EnvKind {
    /// Parses options of a reset from a JSON object.
    ///
    /// # Errors
    ///
    /// [`cartwheel_core::Error::BadOptions`].
    pub fn reset_options(self: &Arc<Self>, json: &str) -> Result<ResetOptions, Error> {
        let Some(parse) = self.table().functions.reset_options_new else {
            return Err(Error::bad_options("resets have no options"));
        };
        let parsed = |sink| {
            // SAFETY: a function of the table, with its own kind, valid text and a sink
            // (invariants 2 and 5).
            unsafe { parse(self.handle(), json.as_ptr(), json.len(), sink) }
        };
        let (made, message) = with_standard_floats(|| with_message(parsed));
        let made = NonNull::new(made).ok_or_else(|| Error::bad_options(message.text()))?;
        // SAFETY: the table has just made them.
        Ok(unsafe { ResetOptions::from_made(self, made) })
    }
}

impl ResetOptions {
    /// The options that the table of this kind made.
    ///
    /// # Safety
    ///
    /// `made` are options of a reset of this kind's table, made in this process. They are freed here,
    /// and not used elsewhere.
    pub unsafe fn from_made(kind: &Arc<EnvKind>, made: NonNull<c_void>) -> Self {
        Self(Arc::new(Parsed { made: Handle::new(made), kind: Arc::clone(kind) }))
    }

    /// Whether these are the same options, not only equal ones.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn handle(&self) -> *const c_void {
        self.0.made.get()
    }
}

impl Drop for Parsed {
    fn drop(&mut self) {
        let free = self.kind.table().functions.reset_options_free;
        if let Some(free) = free.filter(|_| self.made.is_usable()) {
            // SAFETY: made by the same table, and not used any more (invariants 2 and 4).
            unsafe { free(self.made.get()) }
        }
    }
}
