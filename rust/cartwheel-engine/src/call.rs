//! The calls of a pool.

use std::fmt;

/// The calls for which a pool can wait; [`fmt::Display`] gives the word that Gymnasium's errors
/// use.
///
/// ```
/// use cartwheel_engine::Call;
///
/// for call in [Call::Step, Call::Reset, Call::Call, Call::Settle] {
///     assert_eq!(Call::from_number(call as u8), Some(call));
/// }
/// assert_eq!(Call::from_number(4), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Call {
    /// A step of every row.
    Step,
    /// A reset of some or all rows.
    Reset,
    /// A control call: an attribute, a method, a rendering.
    Call,
    /// The second half of a step of rows with
    /// [external rewards](crate::native::ShardSettings::has_external_rewards).
    Settle,
}

/// Flag of a reset of all rows that does not name rows, by numbers or by a mask. Shards whose
/// [rules](crate::autoreset::Rules::staggered_reset) say so stagger their rows then.
pub const FULL_RESET: u32 = 1;

impl Call {
    /// The call with this number, `call as u8`.
    pub fn from_number(number: u8) -> Option<Self> {
        let calls = [Self::Step, Self::Reset, Self::Call, Self::Settle];
        calls.into_iter().find(|&call| call as u8 == number)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Step | Self::Settle => "step",
            Self::Reset => "reset",
            Self::Call => "call",
        })
    }
}
