//! What a row that was sent says of its infos.

/// What a row that was sent says of its infos.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// They begin in its cell and have this many bytes; those of the rows behind it are in them.
    Bytes(u32),
    /// They follow by the shard's own channel.
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
