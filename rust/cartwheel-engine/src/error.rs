//! The errors of a pool.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use crate::call::Call;
use crate::space::{ActionTag, DType, TooLarge};

/// The reason for a shortage of memory.
#[derive(Debug)]
#[non_exhaustive]
pub enum Shortage {
    /// The request would exceed a limit.
    Limit {
        /// Bytes that are left below the limit.
        left: u64,
        /// The file that states the limit.
        file: PathBuf,
    },
    /// The operating system refused.
    Refused(io::Error),
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit { left, file } => {
                write!(f, "{left} are left below the limit of {}", file.display())
            }
            Self::Refused(error) if error.kind() == io::ErrorKind::StorageFull => write!(
                f,
                "which the system refuses: {error}: enlarge /dev/shm (--shm-size of a container)"
            ),
            Self::Refused(error) if error.kind() == io::ErrorKind::FileTooLarge => write!(
                f,
                "which the system refuses: {error}: the limit of files (`ulimit -f`) holds for \
                 shared memory, too"
            ),
            Self::Refused(error) => write!(f, "which the system refuses: {error}"),
        }
    }
}

/// Everything that can go wrong while building or stepping a pool. There is one variant for each
/// cause that a caller may want to distinguish, with the values that are needed to correct the
/// call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused memory, a descriptor or a signal.
    #[error("{doing}: {cause}")]
    Os {
        /// The operation that failed, in words.
        doing: String,
        /// The operating system's answer. The text of this error has it, so it is not a source.
        cause: io::Error,
    },
    /// There is not enough memory; nothing was taken.
    #[error(
        "{what} needs {bytes} bytes of memory, {why}; use fewer environments, smaller \
         observations, fewer batches at once or shorter rollouts, or allow more memory"
    )]
    OutOfMemory {
        /// The purpose of the memory.
        what: &'static str,
        /// Number of bytes that were requested.
        bytes: usize,
        /// The limit, or the answer of the system.
        why: Shortage,
    },
    /// A plan for which no memory can be laid out.
    #[error("{0}")]
    BadPlan(String),
    /// A worker got memory that another version, or another plan, laid out.
    #[error("the worker's memory does not fit its plan: {what} is {got}, expected {expected}")]
    Mismatch {
        /// The quantity that differs.
        what: &'static str,
        /// The value that this side computed.
        expected: usize,
        /// The value in the memory.
        got: usize,
    },
    /// A call was begun while another one is pending.
    #[error("a call to `{pending}` is pending: wait for its result first")]
    AlreadyPending {
        /// The call that has not been waited for.
        pending: Call,
        /// The rows that have not answered it.
        rows: Vec<Range<usize>>,
    },
    /// A result was requested for a call that was not begun.
    #[error("no call to `{expected}` is pending")]
    NotPending {
        /// The call that was never begun.
        expected: Call,
    },
    /// Rows that were sent have not been received.
    #[error("{} are in flight: receive them first", named_rows(.rows))]
    InFlight {
        /// Every such row, or those that were to be sent again.
        rows: Vec<usize>,
    },
    /// `receive` was called although nothing is in flight.
    #[error("no row is in flight: there is nothing to receive")]
    NothingInFlight,
    /// Some rows were to be stepped, or reset before the first step, while a rollout is recorded:
    /// its batches contain all rows.
    #[error(
        "a rollout is being recorded ({done} of {steps} steps): {call} all rows at once, or end it"
    )]
    Recording {
        /// The call for some of the rows.
        call: Call,
        /// Number of steps recorded so far.
        done: usize,
        /// Number of steps of the rollout.
        steps: usize,
    },
    /// A batch was to be filled, and every slab is held, those that [must be copied](crate::memory::Lease::must_copy)
    /// among them.
    #[error(
        "every one of {slabs} slabs is held: drop the lease of a batch that must be copied before the next call"
    )]
    SlabsHeld {
        /// Number of slabs.
        slabs: usize,
    },
    /// A row that does not exist was named.
    #[error("row {row} does not exist; there are rows 0 to {}", .rows - 1)]
    NoSuchRow {
        /// The row.
        row: usize,
        /// Number of rows.
        rows: usize,
    },
    /// A row was named twice.
    #[error("row {0} is named twice")]
    NamedTwice(usize),
    /// The pool was closed.
    #[error("the pool is closed")]
    Closed,
    /// The workers have not answered within `timeout`; the answer is not lost, and the wait can be
    /// repeated.
    #[error("rows {rows:?} did not answer within {timeout:?}")]
    Timeout {
        /// Duration of the wait.
        timeout: Duration,
        /// The rows that have not answered: one range for each worker, or for each row that was sent.
        rows: Vec<Range<usize>>,
    },
    /// The workers have not answered yet, and the caller asked for a reminder: nothing is lost,
    /// wait again.
    #[error("still waiting for rows {rows:?} after {waited:?}")]
    StillWaiting {
        /// Duration of the wait so far.
        waited: Duration,
        /// The rows that have not answered, as of [`Error::Timeout`].
        rows: Vec<Range<usize>>,
    },
    /// The caller's interrupt check ended the wait; nothing is lost.
    #[error("interrupted while waiting")]
    Interrupted,
    /// A worker ended before it answered; the pool can only be closed.
    #[error("worker {worker} (pid {pid}, rows {rows:?}) died")]
    WorkerDied {
        /// The worker's index.
        worker: usize,
        /// Its process id.
        pid: u32,
        /// The rows it owned.
        rows: Range<usize>,
    },
    /// Shared memory holds a value that only a corrupt worker writes; the pool can only be closed.
    #[error("{} wrote {wrote}; close the environments and make new ones", one_of(.workers))]
    Corrupt {
        /// The worker that wrote it, or all workers that could have.
        workers: Vec<usize>,
        /// The value, its place, and what was expected there.
        wrote: String,
    },
    /// Rows whose episode is over were stepped with autoreset disabled.
    #[error("{} are over and autoreset is disabled", named_rows(.rows))]
    EpisodeOver {
        /// Every such row.
        rows: Vec<usize>,
    },
    /// Rows whose environment failed in an earlier call were stepped before a reset.
    #[error("{} failed in an earlier call and have not been reset since", named_rows(.rows))]
    NeedsReset {
        /// Every such row.
        rows: Vec<usize>,
    },
    /// Rows were stepped before their first reset. The message is that of Gymnasium's
    /// `OrderEnforcing`.
    #[error("Cannot call env.step() before calling env.reset()")]
    NeverReset {
        /// Every such row.
        rows: Vec<usize>,
    },
    /// Rows without an episode were to be stepped, where [episodes are
    /// counted](crate::episodes::Episodes).
    #[error(
        "{} have no episode: they were never reset, or their last result was lost",
        named_rows(.rows)
    )]
    NoEpisode {
        /// Every such row.
        rows: Vec<usize>,
    },
    /// Rows were sent to be stepped in a pool whose rows have external rewards.
    #[error(
        "rows with external rewards are stepped all together: they can be neither sent nor stepped by \
         `env_index`"
    )]
    SteppedTogether,
    /// A native environment got actions whose dtype differs from its space's.
    #[error("actions of leaf {leaf} must be {}, got {}", .expected.name(), tag_name(*.got))]
    WrongActionDType {
        /// The leaf of the action space.
        leaf: usize,
        /// The dtype of the space.
        expected: DType,
        /// The stored dtype, if an action was stored.
        got: Option<ActionTag>,
    },
    /// A native environment that does not exist.
    #[error("there is no native environment {0:?}")]
    UnknownEnv(String),
    /// Rows whose parameter cannot have the value that they were given. The others have theirs.
    #[error("parameter {name:?} {reason}, in {}", named_rows(.rows))]
    BadValues {
        /// The parameter.
        name: String,
        /// The rows, counted from the first row of the shard.
        rows: Vec<usize>,
        /// The reason, for the first of them.
        reason: String,
    },
    /// A plugin that cannot be used: its version or a table does not fit.
    #[error("{0}")]
    BadPlugin(String),
    /// An id of a plugin's environment that it cannot have: it is taken, or has another form.
    #[error("{0}")]
    BadId(String),
    /// A plugin broke the contract of its interface. What it made can only be freed.
    #[error("plugin {plugin} broke its contract in {id}: {what}")]
    Plugin {
        /// The plugin.
        plugin: String,
        /// The environment.
        id: String,
        /// The breach.
        what: String,
    },
    /// The state of a row that cannot be restored.
    #[error("{0}")]
    BadState(String),
    /// A native environment failed.
    #[error("the environment of row {row} failed: {message}")]
    Failed {
        /// The row, counted from the start of the batch.
        row: usize,
        /// The reason, in the author's words.
        message: String,
    },
    /// A native environment panicked.
    #[error("the environment of row {row} panicked: {message}")]
    Panicked {
        /// The row, counted from the start of the batch.
        row: usize,
        /// The message of the panic.
        message: String,
    },
    /// A fault of an environment, its spaces or its infos.
    #[error(transparent)]
    Env(#[from] cartwheel_core::Error),
}

fn tag_name(tag: Option<ActionTag>) -> &'static str {
    match tag {
        Some(ActionTag::Array(dtype)) => dtype.name(),
        Some(ActionTag::Integers) => "integers",
        None => "nothing",
    }
}

impl From<TooLarge> for Error {
    fn from(too_large: TooLarge) -> Self {
        Self::BadPlan(too_large.to_string())
    }
}

/// Maximum number of rows that a message names: a call may be about all rows.
const NAMED: usize = 16;

/// Rows in words for a message: the first ones, and the number of the others.
pub fn named_rows(rows: &[usize]) -> String {
    let (first, rest) = rows.split_at(rows.len().min(NAMED));
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    format!("rows {first:?}{more}")
}

/// The workers that may have written something.
fn one_of(workers: &[usize]) -> String {
    if let [worker] = workers {
        return format!("worker {worker}");
    }
    let names: Vec<_> = workers.iter().map(usize::to_string).collect();
    format!("one of the workers {}", names.join(", "))
}

impl Error {
    /// A [`cartwheel_core::Error::BadOptions`] that says `what` is wrong.
    pub fn bad_options(what: impl fmt::Display) -> Self {
        cartwheel_core::Error::bad_options(what).into()
    }

    /// The same error, if it is of rows counted from the first row of their shard, counted from the first
    /// row of the pool.
    #[must_use]
    pub fn of_shard(self, first: usize) -> Self {
        match self {
            Self::Failed { row, message } => Self::Failed { row: first + row, message },
            Self::BadValues { name, rows, reason } => {
                let rows = rows.into_iter().map(|row| first + row).collect();
                Self::BadValues { name, rows, reason }
            }
            other => other,
        }
    }

    /// The same error for a further row, if it is one that whole tasks have.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Plugin { plugin, id, what } => {
                Self::Plugin { plugin: plugin.clone(), id: id.clone(), what: what.clone() }
            }
            Self::WrongActionDType { leaf, expected, got } => {
                Self::WrongActionDType { leaf: *leaf, expected: *expected, got: *got }
            }
            other => Self::BadPlan(other.to_string()),
        }
    }

    /// An [`Error::Os`] for `doing`.
    pub(crate) fn os(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |cause| Self::Os { doing, cause }
    }

    /// The error for `bytes` bytes of memory for `what`: [`Error::OutOfMemory`] if memory is short.
    pub(crate) fn memory(what: &'static str, bytes: usize) -> impl Fn(io::Error) -> Self + Copy {
        move |error| match error.kind() {
            io::ErrorKind::OutOfMemory
            | io::ErrorKind::StorageFull
            | io::ErrorKind::FileTooLarge => {
                Self::OutOfMemory { what, bytes, why: Shortage::Refused(error) }
            }
            _ => Self::os(format!("making {bytes} bytes of memory for {what}"))(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_the_system_is_said_once() {
        let error = Error::os("opening it")(io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(error.to_string(), "opening it: entity not found");
        assert!(std::error::Error::source(&error).is_none());
    }

    #[test]
    fn a_full_folder_of_shared_memory_says_how_to_enlarge_it() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let text = Error::memory("cartwheel-slabs", 4096)(full).to_string();
        assert!(text.contains("4096 bytes") && text.contains("/dev/shm (--shm-size"), "{text}");
    }

    #[test]
    fn a_limit_of_the_size_of_files_is_named() {
        let limited = io::Error::from(io::ErrorKind::FileTooLarge);
        let text = Error::memory("cartwheel-slabs", 4096)(limited).to_string();
        assert!(text.contains("4096 bytes") && text.contains("`ulimit -f`"), "{text}");
    }
}
