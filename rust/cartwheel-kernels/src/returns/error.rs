//! The errors of the estimators' arguments.

use cartwheel_core::AutoresetMode;

/// One variant for each cause, with the values that are needed to correct the call. When an
/// estimator returns one, nothing has been written.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are no steps, or no environments.
    #[error("a rollout needs at least one step and one environment, got shape {got:?}")]
    Empty {
        /// Steps and environments.
        got: [usize; 2],
    },
    /// A slice does not have one cell for each step and environment.
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
        /// The shape of the rollout.
        expected: [usize; 2],
        /// The shape of the array.
        got: [usize; 2],
    },
    /// An array or output that is not `[steps, num_envs]` has the wrong length.
    #[error("`{what}` must have {expected} elements, got {got}")]
    WrongCount {
        /// The array.
        what: &'static str,
        /// Expected number of elements.
        expected: usize,
        /// Number of elements found.
        got: usize,
    },
    /// A discount or lambda is not in the range that the formulas allow.
    #[error("`{what}` must be in [0, 1], got {value}{}", at(*.row))]
    NotInUnitRange {
        /// `gamma`, `gae_lambda` or `lambda_`.
        what: &'static str,
        /// Its value.
        value: f64,
        /// Step and environment, where there is a value for each.
        row: Option<[usize; 2]>,
    },
    /// A number that must be positive is not.
    #[error("`{what}` must be positive, got {value}")]
    NotPositive {
        /// Its name.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A step that resets a row also ended an episode: the flags were not recorded in `NEXT_STEP`.
    #[error(
        "row {row:?} (step, environment) is over right after an over one, which cannot be in \
         NEXT_STEP: its step only resets; is this another mode's rollout?"
    )]
    OverTwice {
        /// Step and environment of the second row.
        row: [usize; 2],
    },
    /// Final values were given for a rollout that contains all its next observations.
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
        /// Number of final values.
        count: usize,
    },
    /// A final value belongs to a row outside of the rollout.
    #[error(
        "`final_index[{at}]` is {row:?} (step, environment), outside of a rollout of {shape:?}"
    )]
    FinalOutOfRange {
        /// Its position in the list.
        at: usize,
        /// Step and environment that it names.
        row: [usize; 2],
        /// Steps and environments of the rollout.
        shape: [usize; 2],
    },
    /// A final value belongs to a row that is not over.
    #[error("`final_index[{at}]` is {row:?} (step, environment), but no episode ends there")]
    FinalOfRunning {
        /// Its position in the list.
        at: usize,
        /// Step and environment that it names.
        row: [usize; 2],
    },
    /// Two final values belong to the same row.
    #[error("`final_index[{at}]` is {row:?} (step, environment), for the second time")]
    FinalTwice {
        /// The position of the second one in the list.
        at: usize,
        /// Step and environment that both name.
        row: [usize; 2],
    },
    /// Rows must be bootstrapped from final observations whose values are not given.
    #[error(
        "{count} rows are bootstrapped from their final observation, but `final_values` has no value \
         for row {first:?} (step, environment)"
    )]
    MissingFinalValue {
        /// The first such row: step and environment.
        first: [usize; 2],
        /// Number of rows that are bootstrapped in this way.
        count: usize,
    },
    /// No row is valid, so there is no mean.
    #[error("none of the {count} rows is valid: there is nothing to take the mean of")]
    NoValidRow {
        /// Number of rows.
        count: usize,
    },
}

/// The position of a value in an array.
fn at(row: Option<[usize; 2]>) -> String {
    row.map_or_else(String::new, |row| format!(" at {row:?} (step, environment)"))
}
