//! The errors of environments, spaces and infos.

use std::fmt;

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
