//! Saved states of rows: bytes that outlive the process.
//!
//! ```text
//! state  := magic, version u32, origin text, options text, row 7 bytes, seed, stream, env bytes,
//!           sum u64
//! text   := length u32, UTF-8                          bytes := length u32, bytes
//! seed   := 0, u128 | 1, words u32, each u32 | 2       (number, longer number, unknown)
//! stream := state u128, increment u128, half u32, has_half u8
//! ```
//!
//! Numbers are little-endian. The origin is the id of the environment, and of a plugin its name and
//! the part of its version that compatible versions share, which load each other's states. The last
//! number is the FNV-1a hash of the bytes before it: it finds bytes that were cut or changed by
//! mistake, not by intent.

use cartwheel_core::rng::{Pcg64State, Rng};

use super::stream::Seed;
use crate::autoreset::SavedRow;
use crate::error::Error;
use crate::plugin::EnvKind;

const MAGIC: &[u8; 8] = b"cartwhl\n";
const VERSION: u32 = 1;

/// The state of one row: environment, random stream, steps so far, phase. It can be restored into
/// any row of the same kind of environment with the same options, any number of times.
#[derive(Debug, Clone)]
pub struct RowState {
    pub(super) row: SavedRow,
    pub(super) seed: Seed,
    pub(super) stream: Rng,
    pub(super) env: Vec<u8>,
}

impl RowState {
    /// The state as bytes.
    ///
    /// # Errors
    ///
    /// [`Error::BadState`] when a part is too long for its length.
    pub(super) fn write(&self, kind: &EnvKind) -> Result<Vec<u8>, Error> {
        let Pcg64State { state, increment, has_half, half } = self.stream.state();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        push(&mut bytes, kind.table().origin().as_bytes())?;
        push(&mut bytes, kind.options().as_bytes())?;
        bytes.extend(self.row.to_bytes());
        match &self.seed {
            Seed::Number(number) => {
                bytes.push(0);
                bytes.extend(number.to_le_bytes());
            }
            Seed::Words(words) => {
                bytes.push(1);
                push(
                    &mut bytes,
                    &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>(),
                )?;
            }
            Seed::Unknown => bytes.push(2),
        }
        bytes.extend(state.to_le_bytes());
        bytes.extend(increment.to_le_bytes());
        bytes.extend(half.to_le_bytes());
        bytes.push(has_half.into());
        push(&mut bytes, &self.env)?;
        bytes.extend(hash(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// Whether the row failed and has to be reset; its environment is in no state to go on from.
    pub fn has_failed(&self) -> bool {
        self.row.has_failed()
    }

    /// The state from bytes that [`super::Answer::States`] holds.
    ///
    /// # Errors
    ///
    /// [`Error::BadState`] when the bytes are not a state, were cut or changed, or are the state of
    /// another kind of environment or of other options.
    pub fn read(kind: &EnvKind, bytes: &[u8]) -> Result<Self, Error> {
        let bad = |what: String| Err(Error::BadState(what));
        let (start, origin, options) = (MAGIC.len(), kind.table().origin(), kind.options());
        if !bytes.starts_with(MAGIC) {
            return bad("this is not a state of a native environment".to_owned());
        }
        let mut reader = Reader(&bytes[start..]);
        let version = reader.u32();
        if let Some(other) = version.filter(|&version| version != VERSION) {
            return bad(format!(
                "the state has version {other}; this cartwheel reads {VERSION}: load it with the \
                 cartwheel that saved it"
            ));
        }
        let whole = bytes
            .len()
            .checked_sub(8)
            .filter(|&end| end >= start && bytes[end..] == hash(&bytes[..end]).to_le_bytes());
        let Some(end) = whole else {
            return bad(format!("the state of {} bytes was cut or changed", bytes.len()));
        };
        reader.0 = &bytes[start + 4..end];
        match reader.state() {
            Some((own, ..)) if own != origin => {
                bad(format!("the state is of {own}, not of {origin}"))
            }
            Some((_, own, _)) if own != options => {
                bad(format!("the state is of {origin} with the options {own}, not {options}"))
            }
            Some((.., state)) if reader.0.is_empty() => Ok(state),
            _ => bad("the state holds values that no row has".to_owned()),
        }
    }
}

pub(super) fn push(bytes: &mut Vec<u8>, part: &[u8]) -> Result<(), Error> {
    bytes.extend(length_of(part.len())?);
    bytes.extend_from_slice(part);
    Ok(())
}

/// The number before a part of a state.
fn length_of(bytes: usize) -> Result<[u8; size_of::<u32>()], Error> {
    let length = u32::try_from(bytes).map_err(|_| {
        let most = u32::MAX;
        Error::BadState(format!("a part of the state has {bytes} bytes; saved are at most {most}"))
    });
    length.map(u32::to_le_bytes)
}

/// FNV-1a, 64 bits.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.fixed().map(u32::from_le_bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// Origin, options and state.
    fn state(&mut self) -> Option<(&'a str, &'a str, RowState)> {
        Some((self.text()?, self.text()?, self.row()?))
    }

    fn row(&mut self) -> Option<RowState> {
        let row = SavedRow::from_bytes(self.fixed()?)?;
        let seed = match self.fixed()? {
            [0] => Seed::Number(u128::from_le_bytes(self.fixed()?)),
            [1] => {
                let (words, []) = self.bytes()?.as_chunks::<4>() else { return None };
                Seed::Words(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
            }
            [2] => Seed::Unknown,
            _ => return None,
        };
        let state = u128::from_le_bytes(self.fixed()?);
        let increment = u128::from_le_bytes(self.fixed()?);
        let half = self.u32()?;
        let [has_half] = self.fixed()?;
        let at = Pcg64State { state, increment, has_half: has_half != 0, half };
        Some(RowState { row, seed, stream: Rng::from_state(at), env: self.bytes()?.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_too_long_is_refused() {
        let most = u32::MAX as usize;
        assert_eq!(length_of(most).expect("it fits"), [u8::MAX; 4]);
        let refused = length_of(most + 1).expect_err("it does not fit").to_string();
        assert_eq!(
            refused,
            "a part of the state has 4294967296 bytes; saved are at most 4294967295"
        );
    }
}
