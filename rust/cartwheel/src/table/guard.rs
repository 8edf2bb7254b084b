//! Panics of authors' code, caught.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cartwheel_abi as abi;
use cartwheel_core::Error;

use crate::Failure;

/// Why a call was refused: a code of the border, and the reason.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: u32,
    pub(super) text: String,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { code: abi::FAILED, text: failure.to_string() }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { code: abi::FAILED, text: error.to_string() }
    }
}

impl Refusal {
    /// The refusal of a call that panicked.
    pub(super) fn panicked(payload: Box<dyn Any + Send>) -> Self {
        let text = if let Some(text) = payload.downcast_ref::<&str>() {
            (*text).to_owned()
        } else if let Some(text) = payload.downcast_ref::<String>() {
            text.clone()
        } else {
            "a panic whose payload is no text".to_owned()
        };
        forget(payload);
        Self { code: abi::PANICKED, text }
    }
}

/// Drops the payload of a panic. Its destructor may panic too; then the second payload leaks, since
/// its destructor may do the same.
pub(super) fn forget(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

/// Calls `call`, and catches its panic.
pub(super) fn guarded<T, R: Into<Refusal>>(
    call: impl FnOnce() -> Result<T, R>,
) -> Result<T, Refusal> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(Into::into),
        Err(payload) => Err(Refusal::panicked(payload)),
    }
}

/// Drops a value whose destructor may panic.
pub(super) fn guarded_drop<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        forget(payload);
    }
}
