//! What the flags of a row mean for the loops, in a byte.

/// Which values a row looks at.
///
/// The loops choose by these bits. One byte for three questions keeps them vectorised, which four
/// arrays of flags do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Row(u8);

const VALID: u8 = 1;
const BOOTSTRAPS: u8 = 2;
const GOES_ON: u8 = 4;

impl Row {
    /// A row that is `valid`; is worth the value of its next observation if it `bootstraps`; and whose
    /// episode, if it `goes_on`, has a valid row in the next step of the rollout.
    #[inline]
    pub(super) fn new(valid: bool, bootstraps: bool, goes_on: bool) -> Self {
        let bit = |flag: bool, bit: u8| u8::from(flag) * bit;
        Self(bit(valid, VALID) | bit(bootstraps, BOOTSTRAPS) | bit(goes_on, GOES_ON))
    }

    /// Whether it is a transition.
    #[inline]
    pub(super) fn valid(self) -> bool {
        self.0 & VALID != 0
    }

    /// Whether it is worth the value of its next observation.
    #[inline]
    pub(super) fn bootstraps(self) -> bool {
        self.0 & BOOTSTRAPS != 0
    }

    /// Whether what the next row computes belongs to the same episode.
    #[inline]
    pub(super) fn goes_on(self) -> bool {
        self.0 & GOES_ON != 0
    }

    /// Whether it is the last one of its episode in the rollout, and bootstraps.
    #[inline]
    pub(super) fn ends_in_value(self) -> bool {
        self.0 & (BOOTSTRAPS | GOES_ON) == BOOTSTRAPS
    }
}
