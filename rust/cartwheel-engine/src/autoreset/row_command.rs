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
/// with the lowest bit. Fast where most rows have others: the bits of 64 rows are gathered before any is
/// looked at, since a processor mostly mispredicts whether there is another one.
pub fn restarted(commands: &[u8]) -> impl Iterator<Item = usize> {
    commands.chunks(64).enumerate().flat_map(|(at, commands)| {
        let (words, rest) = commands.as_chunks::<8>();
        let mut found = 0;
        for (at, command) in rest.iter().enumerate() {
            found |= u64::from(command & 1) << at;
        }
        for word in words.iter().rev() {
            found = found << 8 | lowest_bits(*word);
        }
        std::iter::from_fn(move || {
            let bit = (found != 0).then(|| found.trailing_zeros())?;
            found &= found - 1;
            Some(64 * at + bit as usize)
        })
    })
}

/// The lowest bit of each byte, that of the first byte lowest.
fn lowest_bits(bytes: [u8; 8]) -> u64 {
    const LOWEST: u64 = u64::from_ne_bytes([1; 8]);
    // Each of the eight bits moves bit 0 of another byte to the highest byte; no two sums meet.
    const TO_HIGHEST: u64 = 0x0102_0408_1020_4080;
    (u64::from_le_bytes(bytes) & LOWEST).wrapping_mul(TO_HIGHEST) >> 56
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_and_shows_are_found_in_rows_of_any_number() {
        let mut commands: Vec<u8> =
            (0..200_u32).map(|at| (at * at / 7 % 4).to_le_bytes()[0]).collect();
        commands[64..128].fill(1);
        for end in 0..=commands.len() {
            let expected = (0..end).filter(|&at| commands[at] & 1 != 0);
            assert!(restarted(&commands[..end]).eq(expected), "of {end} rows");
        }
    }
}
