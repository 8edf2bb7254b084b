//! The meaning of a row's flags for the loops, in one byte.

/// Selection of the values of a row.
///
/// The loops select by these bits. One byte for all questions keeps the loops vectorized; separate
/// arrays of flags do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Row(u8);

const VALID: u8 = 1;
const BOOTSTRAPS: u8 = 2;
const GOES_ON: u8 = 4;

impl Row {
    /// A row that is `valid`, or not; that `bootstraps` the value of its next observation, or not;
    /// and whose episode `goes_on` in a valid row of the next step, or not.
    #[inline]
    pub(super) fn new(valid: bool, bootstraps: bool, goes_on: bool) -> Self {
        let bit = |flag: bool, bit: u8| u8::from(flag) * bit;
        Self(bit(valid, VALID) | bit(bootstraps, BOOTSTRAPS) | bit(goes_on, GOES_ON))
    }

    /// Whether the row is a transition.
    #[inline]
    pub(super) fn valid(self) -> bool {
        self.0 & VALID != 0
    }

    /// Whether the row bootstraps the value of its next observation.
    #[inline]
    pub(super) fn bootstraps(self) -> bool {
        self.0 & BOOTSTRAPS != 0
    }

    /// Whether the results of the next row belong to the same episode.
    #[inline]
    pub(super) fn goes_on(self) -> bool {
        self.0 & GOES_ON != 0
    }

    /// Whether the row is the last one of its episode in the rollout, and bootstraps.
    #[inline]
    pub(super) fn ends_in_value(self) -> bool {
        self.0 & (BOOTSTRAPS | GOES_ON) == BOOTSTRAPS
    }
}
