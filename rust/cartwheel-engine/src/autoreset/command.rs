//! What a task does to a row, and why it does nothing.

/// What a task does to a row. The bytes are those of the [phase](crate::PhaseTag) in which a step
/// gives the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    /// Step the environment with the row's action.
    Step = 0,
    /// Reset the environment.
    Reset = 1,
    /// Neither call the environment nor write its observation.
    Leave = 2,
    /// Write the last observation again, without calling the environment.
    Show = 3,
}

impl Command {
    /// The command with this byte; every byte above 3 counts as [`Command::Leave`].
    #[inline]
    pub const fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::Step,
            1 => Self::Reset,
            3 => Self::Show,
            _ => Self::Leave,
        }
    }
}

/// Why a row is not stepped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its episode is over and nothing resets it.
    Over,
    /// Its environment failed and has not been reset since.
    Failed,
    /// It was never reset.
    Unstarted,
}
