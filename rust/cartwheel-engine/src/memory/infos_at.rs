//! The word of a batch that says where the infos of a row that was sent are.

/// Location of the infos of a row that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfosAt {
    /// They begin in the row's cell and have this many bytes; they include the infos of the rows
    /// after it.
    Memory(u32),
    /// They follow through the shard's own channel.
    Channel,
}

impl InfosAt {
    const SPILLED: u32 = u32::MAX;

    pub(crate) fn to_word(self) -> u32 {
        match self {
            Self::Memory(bytes) => bytes,
            Self::Channel => Self::SPILLED,
        }
    }

    pub(crate) fn from_word(word: u32) -> Self {
        if word == Self::SPILLED { Self::Channel } else { Self::Memory(word) }
    }
}
