//! Text in tables.
#![expect(unsafe_code, reason = "reads text of plugins, see the invariants of the module")]

use std::ffi::{CStr, c_char};

/// A static text of a table.
///
/// # Safety
///
/// `text` is null, or points at bytes that end with a zero and are valid for `'a` (invariant 1).
pub(super) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, String> {
    if text.is_null() {
        return Err(format!("has no {what}"));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| format!("has {what} {text:?}, which is not UTF-8"))
}
