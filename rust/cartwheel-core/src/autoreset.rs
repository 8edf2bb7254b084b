//! Restarts of rows: the modes that the engine carries out, and of which kernels know the rows.

/// Restart of a finished row. The names are those of Gymnasium's `AutoresetMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoresetMode {
    /// The step after the last one resets the row and ignores its action.
    NextStep,
    /// The last step itself resets the row; the terminal observation goes to `final_obs`.
    SameStep,
    /// Rows restart only when they are reset explicitly.
    Disabled,
}

impl AutoresetMode {
    /// Whether a step of an over row is an error.
    pub fn refuses_over(self, on_done: OnDone) -> bool {
        self == Self::Disabled && on_done == OnDone::Raise
    }
}

/// The effect of stepping an over row in [`AutoresetMode::Disabled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDone {
    /// It is an error.
    Raise,
    /// The row repeats its last frame with reward 0 and its flags kept.
    Freeze,
}
