//! The errors of environments, spaces and infos, and the texts of panics.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Errors in the declarations, arguments or reports of an environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An action is outside its space.
    #[error("action {value} of row {row} is not in {space}")]
    ActionOutOfRange {
        /// The first such row.
        row: usize,
        /// Its action, or the wrong element of it.
        value: String,
        /// The space, as text.
        space: String,
    },
    /// Options of an environment, or of its reset, that do not exist or have an invalid value.
    #[error("{0}")]
    BadOptions(String),
    /// A parameter that does not exist, or that cannot have this value.
    #[error("{0}")]
    BadParameter(String),
    /// A stream of infos ends too early or holds an unknown tag.
    #[error("malformed info stream at byte {at}")]
    MalformedInfo {
        /// Offset in the stream.
        at: usize,
    },
    /// The operating system has no random bits.
    #[error("reading random bytes: {0}")]
    NoEntropy(String),
}

impl Error {
    /// An [`Error::BadOptions`] that says `what` is wrong.
    pub fn bad_options(what: impl fmt::Display) -> Self {
        Self::BadOptions(what.to_string())
    }
}

/// The text of a caught panic; `None` if its payload is not text, as of `std::panic::panic_any(7)`.
pub fn panic_message(payload: &(dyn Any + Send)) -> Option<&str> {
    let literal = payload.downcast_ref::<&str>().copied();
    literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// Drops the payload of a caught panic, whose destructor may panic too. Then the second payload is dropped if
/// it is text; otherwise it leaks, since its destructor may do the same.
pub fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
        && panic_message(&*second).is_none()
    {
        std::mem::forget(second);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, resume_unwind};

    use super::{drop_payload, panic_message};

    #[test]
    fn the_text_of_a_panic_is_its_literal_or_its_string_and_nothing_else() {
        let literal = catch_unwind(|| resume_unwind(Box::new("a literal"))).unwrap_err();
        let string = catch_unwind(|| resume_unwind(Box::new(format!("row {}", 3)))).unwrap_err();
        let number = catch_unwind(|| resume_unwind(Box::new(7))).unwrap_err();
        assert_eq!(panic_message(&*literal), Some("a literal"));
        assert_eq!(panic_message(&*string), Some("row 3"));
        assert_eq!(panic_message(&*number), None);
    }

    /// Its destructor panics with another one.
    struct Endless;

    impl Drop for Endless {
        fn drop(&mut self) {
            resume_unwind(Box::new(Self));
        }
    }

    #[test]
    fn a_payload_whose_destructor_panics_is_dropped_without_a_panic() {
        drop_payload(Box::new(Endless));
    }
}
