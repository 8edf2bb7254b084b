//! Where the infos of a row that was sent are.

/// Where the infos of a row that was sent are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// They begin in the row's cell and have this many bytes; they include the infos of the rows
    /// after it.
    Bytes(u32),
    /// They follow through the shard's own channel.
    Spilled,
}

impl Told {
    const SPILLED: u32 = u32::MAX;

    pub(crate) fn to_word(self) -> u32 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Spilled => Self::SPILLED,
        }
    }

    pub(crate) fn from_word(word: u32) -> Self {
        if word == Self::SPILLED { Self::Spilled } else { Self::Bytes(word) }
    }
}
