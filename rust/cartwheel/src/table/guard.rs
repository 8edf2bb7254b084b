//! Panics of authors' code, caught.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cartwheel_abi as abi;
use cartwheel_core::{Error, drop_payload, panic_message};

use crate::Failure;

/// Refusal of a call: a code of the ABI, and the reason.
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
        Self { code: abi::PANICKED, text: panic_text(payload) }
    }
}

/// The message of a panic, with its file and line if this library's hook saw it.
pub(crate) fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = panic_message(&*payload).unwrap_or("a panic whose payload is not text").to_owned();
    let seen = LAST_PANIC.try_with(Cell::take).ok().flatten();
    drop_payload(payload);
    match seen {
        // Another text is that of an earlier panic, which the author's code caught.
        Some((seen, place)) if seen == text => format!("{text} ({place})"),
        _ => text,
    }
}

thread_local! {
    /// Whether this thread runs code of an environment whose panics are not printed.
    static IS_SILENT: Cell<bool> = const { Cell::new(false) };
    /// The message of the last panic of this thread, and its file and line.
    static LAST_PANIC: Cell<Option<(String, String)>> = const { Cell::new(None) };
}

/// Panics on this thread are printed, or not, until the value is dropped. Only where
/// [`watch_panics`] was called, they can be silent.
pub(crate) struct Printing {
    was_silent: bool,
}

/// See [`Printing`].
pub(crate) fn printing(prints_panics: bool) -> Printing {
    Printing { was_silent: IS_SILENT.replace(!prints_panics) }
}

impl Drop for Printing {
    fn drop(&mut self) {
        IS_SILENT.set(self.was_silent);
    }
}

/// Sees the panics of this library from now on: Rust's hook notes where they happen, and asks
/// [`Printing`] before they are printed. The hook that was there before gets all that are printed.
pub(crate) fn watch_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if let (Some(text), Some(at)) = (panic_message(panic.payload()), panic.location()) {
                let seen = (text.to_owned(), format!("{}:{}", at.file(), at.line()));
                let _ = LAST_PANIC.try_with(|last| last.set(Some(seen)));
            }
            if !IS_SILENT.get() {
                before(panic);
            }
        }));
    });
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
        drop_payload(payload);
    }
}
