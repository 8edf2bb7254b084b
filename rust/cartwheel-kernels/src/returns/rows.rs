//! Which rows of a rollout are transitions, and which of its observations begin an episode.

use cartwheel_core::{AutoresetMode, OnDone};

use super::error::Error;
use super::flags::Flags;
use super::time_major::check_count;

/// The row after the last one of an episode in a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// A *stale* row, which is not a transition: it shows the final observation, and its step only
    /// resets.
    NextStep,
    /// The first row of the next episode; the final observation is kept separately.
    SameStep,
    /// The same, through a masked reset right after the step; the step's own result is kept
    /// separately.
    Masked,
    /// Rows that repeat the final observation and the flags until the end of the rollout.
    Frozen,
}

impl Restart {
    /// The behavior of rows in this mode; `on_done` counts only in `DISABLED`.
    pub fn new(mode: AutoresetMode, on_done: OnDone) -> Self {
        match (mode, on_done) {
            (AutoresetMode::NextStep, _) => Self::NextStep,
            (AutoresetMode::SameStep, _) => Self::SameStep,
            (AutoresetMode::Disabled, OnDone::Raise) => Self::Masked,
            (AutoresetMode::Disabled, OnDone::Freeze) => Self::Frozen,
        }
    }

    /// Whether the row after an over row shows the final observation.
    pub(super) fn shows_final(self) -> bool {
        matches!(self, Self::NextStep | Self::Frozen)
    }
}

/// Writes which rows, `[steps, num_envs]`, are transitions of an environment.
///
/// Rows that follow the end of an episode are not: in `NEXT_STEP` because their step only resets,
/// and with frozen rows because nothing is stepped. In the other modes all rows are transitions.
///
/// `prev_done`, `[num_envs]`, says which rows were over in the last step of the previous rollout;
/// after an explicit reset it is false everywhere.
///
/// # Errors
///
/// [`Error::WrongShape`], [`Error::WrongCount`], and [`Error::OverTwice`] where a `NEXT_STEP` row
/// is over right after another over row: such flags were recorded in another mode.
pub fn valid_mask(
    flags: Flags<'_>,
    restart: Restart,
    prev_done: &[u8],
    valid: &mut [u8],
) -> Result<(), Error> {
    let [steps, num_envs] = flags.shape()?;
    check_count("prev_done", prev_done, num_envs)?;
    check_count("valid", valid, steps * num_envs)?;
    if restart == Restart::NextStep {
        check_stale_rows(flags, prev_done)?;
    }
    if !restart.shows_final() {
        valid.fill(1);
        return Ok(());
    }
    let (first, later) = valid.split_at_mut(num_envs);
    fill(first, prev_done.iter().map(|&over| over == 0));
    for (t, rows) in later.chunks_exact_mut(num_envs).enumerate() {
        fill(rows, flags.over(t).map(|over| !over)); // `rows` belong to step t + 1
    }
    Ok(())
}

/// Writes which observations, `[steps + 1, num_envs]`, are the first of an episode. A recurrent
/// state has to be set to zero before such an observation.
///
/// In `NEXT_STEP` that is the observation after a stale row, not the stale row's own observation:
/// the stale row shows the final observation, whose value needs the state of its episode.
///
/// `prev_done`, `[num_envs]`, says which rows were over in the last step of the previous rollout.
/// `initial`, `[num_envs]`, says in which environments the first observation of this rollout begins
/// an episode; it is the last row of this function's output for the previous rollout. After an
/// explicit reset `prev_done` is false and `initial` is true for every environment.
///
/// # Errors
///
/// [`Error::WrongShape`], [`Error::WrongCount`] and [`Error::OverTwice`].
pub fn is_first(
    flags: Flags<'_>,
    restart: Restart,
    prev_done: &[u8],
    initial: &[u8],
    is_first: &mut [u8],
) -> Result<(), Error> {
    let [steps, num_envs] = flags.shape()?;
    check_count("prev_done", prev_done, num_envs)?;
    check_count("initial", initial, num_envs)?;
    check_count("is_first", is_first, (steps + 1) * num_envs)?;
    if restart == Restart::NextStep {
        check_stale_rows(flags, prev_done)?;
    }
    let (first, later) = is_first.split_at_mut(num_envs);
    fill(first, initial.iter().map(|&flag| flag != 0));
    for (t, rows) in later.chunks_exact_mut(num_envs).enumerate() {
        // `rows` belong to step t + 1.
        match restart {
            Restart::SameStep | Restart::Masked => fill(rows, flags.over(t)),
            Restart::NextStep if t == 0 => fill(rows, prev_done.iter().map(|&flag| flag != 0)),
            Restart::NextStep => fill(rows, flags.over(t - 1)),
            Restart::Frozen => rows.fill(0),
        }
    }
    Ok(())
}

fn fill(rows: &mut [u8], flags: impl Iterator<Item = bool>) {
    for (row, flag) in rows.iter_mut().zip(flags) {
        *row = u8::from(flag);
    }
}

/// Refuses flags that are impossible in a `NEXT_STEP` rollout: a row that only resets is not over.
fn check_stale_rows(flags: Flags<'_>, prev_done: &[u8]) -> Result<(), Error> {
    let mut before: Vec<_> = prev_done.iter().map(|&flag| flag != 0).collect();
    for t in 0..flags.shape()?[0] {
        let mut rows = before.iter_mut().zip(flags.over(t));
        if let Some(env) = rows.position(|(before, over)| std::mem::replace(before, over) & over) {
            return Err(Error::OverTwice { row: [t, env] });
        }
    }
    Ok(())
}
