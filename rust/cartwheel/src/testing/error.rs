//! The error of a check that fails.

use std::fmt;

/// An environment breaks a promise.
///
/// The text has two lines: what was seen, with the type, the check, and field, row and step; and how
/// to fix the environment.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckError {
    /// The type of the environment.
    pub env: &'static str,
    /// The check that failed, one of [`CHECKS`](super::CHECKS).
    pub check: &'static str,
    /// The observed fault.
    pub finding: String,
    /// The remedy: how to change the environment.
    pub remedy: &'static str,
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { env, check, finding, remedy } = self;
        write!(f, "{env} fails the check {check:?}: {finding}.\n{remedy}")
    }
}

impl fmt::Debug for CheckError {
    /// The text: a test that returns the error, or unwraps it, shows it as it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for CheckError {}

/// A fault and its remedy.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) seen: String,
    pub(super) remedy: &'static str,
}

/// A check that fails.
pub(super) fn fail<T>(seen: impl fmt::Display, remedy: &'static str) -> Result<T, Finding> {
    Err(Finding { seen: seen.to_string(), remedy })
}
