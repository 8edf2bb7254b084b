//! The kinds of the places of a batch, one byte each.

/// The environment was stepped.
pub const TRANSITION: u8 = 0;
/// The row shows the first observation of an episode: an explicit reset, or the autoreset step of
/// `NEXT_STEP`.
pub const RESET: u8 = 1;
/// The row was left alone and shows its last observation again.
pub const SHOWN: u8 = 2;
/// The environment failed and was replaced; the episode was truncated by that.
pub const FAILED: u8 = 3;
/// A transition of an episode of which an earlier step was lost, because a call raised.
pub const INCOMPLETE: u8 = 4;
