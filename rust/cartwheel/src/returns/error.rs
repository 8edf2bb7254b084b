//! Everything that can be wrong with what an estimator is given.

use crate::autoreset::AutoresetMode;

/// One variant per cause, with the values that are needed to mend the call. Nothing has been written
/// when an estimator returns one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are no steps, or no environments.
    #[error("a rollout needs at least one step and one environment, got shape {got:?}")]
    Empty {
        /// Steps and environments.
        got: [usize; 2],
    },
    /// A slice has not one cell for each step and environment.
    #[error("expected a cell for each of {steps} × {num_envs} (steps, environments), got {got}")]
    WrongLength {
        /// Steps of the array.
        steps: usize,
        /// Environments of the array.
        num_envs: usize,
        /// Length of the slice.
        got: usize,
    },
    /// Two arrays of one rollout do not have the same shape.
    #[error("`{what}` has shape {got:?}, expected {expected:?} (steps, environments)")]
    WrongShape {
        /// The array.
        what: &'static str,
        /// What the rollout's shape asks for.
        expected: [usize; 2],
        /// What it has.
        got: [usize; 2],
    },
    /// An array or output that is no `[steps, num_envs]` array has another length than it must.
    #[error("`{what}` must have {expected} elements, got {got}")]
    WrongCount {
        /// The array.
        what: &'static str,
        /// How many there must be.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// A discount or lambda is not in the range that the formulas allow.
    #[error("`{what}` must be in [0, 1], got {value}{}", at(*.row))]
    NotInUnitRange {
        /// `gamma` or `lam`.
        what: &'static str,
        /// What it is.
        value: f64,
        /// Step and environment, where it has a value for each.
        row: Option<[usize; 2]>,
    },
    /// A number that must be positive is not.
    #[error("`{what}` must be positive, got {value}")]
    NotPositive {
        /// Which one.
        what: &'static str,
        /// What it is.
        value: f64,
    },
    /// A step that resets a row ended an episode at once: the flags were not recorded in `NEXT_STEP`.
    #[error(
        "row {row:?} (step, environment) is over right after an over one, which cannot be in \
         NEXT_STEP: its step only resets; is this another mode's rollout?"
    )]
    OverTwice {
        /// Step and environment of the second one.
        row: [usize; 2],
    },
    /// Final values were given for a rollout whose next observations are all in it.
    #[error(
        "{count} final values were given, but {}",
        match .mode {
            AutoresetMode::NextStep =>
                "in NEXT_STEP the true next observation of every row is the next row's",
            _ => "frozen rows repeat their final observation, whose value is the next row's",
        }
    )]
    UnusedFinalValues {
        /// The mode: `NEXT_STEP`, or `DISABLED` with frozen rows.
        mode: AutoresetMode,
        /// How many there are.
        count: usize,
    },
    /// A final value belongs to no row of the rollout.
    #[error(
        "`final_index[{at}]` is {row:?} (step, environment), outside of a rollout of {shape:?}"
    )]
    FinalOutOfRange {
        /// Its place in the list.
        at: usize,
        /// Step and environment that it names.
        row: [usize; 2],
        /// Steps and environments of the rollout.
        shape: [usize; 2],
    },
    /// A final value belongs to a row that is not over.
    #[error("`final_index[{at}]` is {row:?} (step, environment), but no episode ends there")]
    FinalOfRunning {
        /// Its place in the list.
        at: usize,
        /// Step and environment that it names.
        row: [usize; 2],
    },
    /// Two final values belong to one row.
    #[error("`final_index[{at}]` is {row:?} (step, environment), for the second time")]
    FinalTwice {
        /// The later one's place in the list.
        at: usize,
        /// Step and environment that both name.
        row: [usize; 2],
    },
    /// Rows are to be bootstrapped from final observations whose values are not given.
    #[error(
        "{count} rows are bootstrapped from their final observation, but `final_values` has no value \
         for row {first:?} (step, environment)"
    )]
    MissingFinalValue {
        /// The first such row: step and environment.
        first: [usize; 2],
        /// How many rows are bootstrapped so.
        count: usize,
    },
    /// No row is valid, so there is no mean.
    #[error("none of the {count} rows is valid: there is nothing to take the mean of")]
    NoValidRow {
        /// How many rows there are.
        count: usize,
    },
}

/// Where in an array a value was found.
fn at(row: Option<[usize; 2]>) -> String {
    row.map_or_else(String::new, |row| format!(" at {row:?} (step, environment)"))
}
