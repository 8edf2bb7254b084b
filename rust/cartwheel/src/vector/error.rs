//! Errors of calls to environments.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use cartwheel_engine::Error as EngineError;
use cartwheel_engine::native::Fault as EngineFault;

use crate::Error;

/// The failure of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The row.
    pub row: usize,
    /// The environment's message: the text of its [`Failure`](crate::Failure), or the message of its
    /// panic.
    pub text: String,
    /// Whether it panicked.
    pub panicked: bool,
}

impl From<EngineFault> for Fault {
    fn from(EngineFault { row, error }: EngineFault) -> Self {
        match error {
            EngineError::Failed { message, .. } => Self { row, text: message, panicked: false },
            EngineError::Panicked { message, .. } => Self { row, text: message, panicked: true },
            other => Self { row, text: other.to_string(), panicked: false },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.panicked { "panicked" } else { "failed" };
        write!(f, "the environment of row {} {what}: {}", self.row, self.text)
    }
}

/// Reason why a call to a [`VectorEnv`](crate::VectorEnv) did not give a batch.
#[derive(Debug)]
#[non_exhaustive]
pub enum VectorError {
    /// Environments failed or panicked. All other rows were stepped or reset;
    /// [`VectorEnv::take_rest`](crate::VectorEnv::take_rest) has their batch. A row that failed must
    /// be reset before its next step.
    Faults(Vec<Fault>),
    /// Options, actions or values of parameters that an environment does not take. Nothing was
    /// stepped or reset.
    Env(Error),
    /// Rows did not answer in time. Their answer is not lost: see
    /// [`VectorEnv::wait`](crate::VectorEnv::wait).
    Timeout {
        /// Duration of the wait.
        timeout: Duration,
        /// The rows, in ranges.
        rows: Vec<Range<usize>>,
    },
    /// A call that is impossible now, or a system without memory or threads. The errors of the engine are
    /// [`vector::EngineError`](crate::vector::EngineError), one variant for each cause.
    Engine(Box<EngineError>),
}

impl VectorError {
    /// An impossible call, in words.
    pub(super) fn refused(what: String) -> Self {
        Self::Engine(Box::new(EngineError::BadPlan(what)))
    }
}

impl From<Error> for VectorError {
    fn from(error: Error) -> Self {
        Self::Env(error)
    }
}

impl From<EngineError> for VectorError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Env(error) => Self::Env(error),
            EngineError::Timeout { timeout, rows } => Self::Timeout { timeout, rows },
            other => Self::Engine(Box::new(other)),
        }
    }
}

impl fmt::Display for VectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Faults(faults) => {
                for (at, fault) in faults.iter().enumerate() {
                    write!(f, "{}{fault}", if at == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
            Self::Env(error) => error.fmt(f),
            Self::Timeout { timeout, rows } => {
                write!(
                    f,
                    "rows {rows:?} did not answer within {timeout:?}: `wait` or `recv` goes on"
                )
            }
            Self::Engine(error) => error.fmt(f),
        }
    }
}

/// Without a source: the text has those of its causes already, and a report would say them twice. The
/// operating system's answer is in [`EngineError::Os`].
impl std::error::Error for VectorError {}
