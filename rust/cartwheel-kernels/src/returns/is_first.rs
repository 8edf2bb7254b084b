//! Beginnings of episodes.

use super::error::Error;
use super::flags::Flags;
use super::restart::Restart;
use super::time_major::check_count;
use super::valid_mask::check_stale_rows;

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
