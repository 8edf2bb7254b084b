//! The type of the elements of an action leaf, as each batch records it.

use cartwheel_core::DType;

/// The type of the bytes of an action leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionTag {
    /// Array elements of this dtype.
    Array(DType),
    /// `int64` values that were integers of the calling language, not array elements.
    Integers,
}

impl ActionTag {
    const INTEGERS: u8 = u8::MAX;
    /// The byte of rows without a tag: new memory holds it.
    pub(crate) const NONE: u8 = 0;

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::Array(dtype) => dtype.size(),
            Self::Integers => size_of::<i64>(),
        }
    }

    pub(crate) fn to_byte(self) -> u8 {
        match self {
            Self::Array(dtype) => dtype.tag() + 1,
            Self::Integers => Self::INTEGERS,
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        if byte == Self::INTEGERS {
            return Some(Self::Integers);
        }
        DType::from_tag(byte.checked_sub(1)?).map(Self::Array)
    }
}
