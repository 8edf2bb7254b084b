//! Mask of the rows of a rollout that are transitions.

use super::error::Error;
use super::flags::Flags;
use super::restart::Restart;
use super::time_major::check_count;

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
    for (t, valid) in valid.chunks_exact_mut(num_envs).enumerate() {
        if t == 0 {
            for (valid, &over) in valid.iter_mut().zip(prev_done) {
                *valid = u8::from(over == 0);
            }
        } else {
            for (valid, over) in valid.iter_mut().zip(flags.over(t - 1)) {
                *valid = u8::from(!over);
            }
        }
    }
    Ok(())
}

/// Refuses flags that are impossible in a `NEXT_STEP` rollout: a row that only resets is not over.
pub(super) fn check_stale_rows(flags: Flags<'_>, prev_done: &[u8]) -> Result<(), Error> {
    let mut before: Vec<_> = prev_done.iter().map(|&flag| flag != 0).collect();
    for t in 0..flags.shape()?[0] {
        let mut rows = before.iter_mut().zip(flags.over(t));
        if let Some(env) = rows.position(|(before, over)| std::mem::replace(before, over) & over) {
            return Err(Error::OverTwice { row: [t, env] });
        }
    }
    Ok(())
}
