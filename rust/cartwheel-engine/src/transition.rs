//! The phase of a row after a step.

/// The phase of a row, as workers report it to the pool. From [`PhaseTag::Failed`] on, the row
/// cannot be stepped in any mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PhaseTag {
    /// It can be stepped.
    Running = 0,
    /// Its episode is over.
    Over = 1,
    /// Its environment failed and has not been reset since.
    Failed = 2,
    /// It must be reset before its first step.
    Unstarted = 3,
}

impl PhaseTag {
    /// The phase with this byte.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Running),
            1 => Some(Self::Over),
            2 => Some(Self::Failed),
            3 => Some(Self::Unstarted),
            _ => None,
        }
    }
}
