//! The command of a task to a row, and the reasons to do nothing.

/// The command of a task to a row. The bytes are those of the [phase](crate::PhaseTag) in which a step
/// gives the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RowCommand {
    /// Step the environment with the row's action.
    Step = 0,
    /// Reset the environment.
    Reset = 1,
    /// Neither call the environment nor write its observation.
    Leave = 2,
    /// Write the last observation again, without calling the environment.
    Show = 3,
}

impl RowCommand {
    /// The command with this byte; every byte above 3 counts as [`RowCommand::Leave`].
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

/// The places of all commands of `commands` that are [`RowCommand::Reset`] or [`RowCommand::Show`]: those
/// with the lowest bit. Fast where most rows have others.
pub fn restarted(commands: &[u8]) -> impl Iterator<Item = usize> {
    const LOWEST: u64 = u64::from_ne_bytes([1; 8]);
    let (words, rest) = commands.as_chunks::<8>();
    let in_words = words.iter().enumerate().flat_map(|(at, word)| {
        let mut found = u64::from_le_bytes(*word) & LOWEST;
        std::iter::from_fn(move || {
            let bit = (found != 0).then(|| found.trailing_zeros())?;
            found &= found - 1;
            Some(8 * at + bit as usize / 8)
        })
    });
    let first = 8 * words.len();
    let in_rest = rest.iter().enumerate().filter(|(_, command)| **command & 1 != 0);
    in_words.chain(in_rest.map(move |(at, _)| first + at))
}

/// Reason why a row is not stepped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its episode is over and nothing resets it.
    Over,
    /// Its environment failed and has not been reset since.
    Failed,
    /// It was never reset.
    Unstarted,
}
