//! The value of the true next observation of each row.

use cartwheel_core::AutoresetMode;

use super::error::Error;
use super::flags::{Bootstrap, Flags};
use super::rows::Restart;
use super::time_major::{TimeMajor, check_count};

/// Values of final observations, one for each listed row.
#[derive(Debug, Clone, Copy)]
pub struct FinalValues<'a, F> {
    /// The values.
    pub values: &'a [F],
    /// Step and environment of each value.
    pub index: &'a [[usize; 2]],
}

/// Writes the value of the true next observation of each row, `[steps, num_envs]`.
///
/// While an episode goes on, it is the next row's entry in `values`, `[steps + 1, num_envs]`. At
/// the end of an episode this still holds in `NEXT_STEP` and with frozen rows, since the next row
/// shows the final observation. In the other modes the next row belongs to the next episode, and
/// the value comes from `finals`. `finals` must have a value for each row that `bootstrap`
/// requires, and may have one for any row that is over. Rows that need no value and have none get
/// the next row's value, which no estimator uses.
///
/// # Errors
///
/// [`Error::WrongShape`]; [`Error::WrongCount`]; [`Error::MissingFinalValue`] and all other errors
/// in `finals`, which must be empty in `NEXT_STEP` and with frozen rows.
pub fn next_values<F: Copy>(
    values: TimeMajor<'_, F>,
    flags: Flags<'_>,
    restart: Restart,
    bootstrap: Bootstrap,
    finals: Option<FinalValues<'_, F>>,
    next_values: &mut [F],
) -> Result<(), Error> {
    let shape @ [steps, num_envs] = flags.shape()?;
    let values = values.of_shape("values", [steps + 1, num_envs])?;
    check_count("next_values", next_values, steps * num_envs)?;
    let finals = finals.unwrap_or(FinalValues { values: &[], index: &[] });
    check_count("final_values", finals.values, finals.index.len())?;
    if !restart.shows_final() {
        check_finals(flags, shape, bootstrap, finals.index)?;
    } else if !finals.index.is_empty() {
        let mode = match restart {
            Restart::NextStep => AutoresetMode::NextStep,
            _ => AutoresetMode::Disabled,
        };
        return Err(Error::UnusedFinalValues { mode, count: finals.index.len() });
    }
    next_values.copy_from_slice(&values.cells()[num_envs..]);
    for (&value, [t, env]) in finals.values.iter().zip(finals.index) {
        next_values[t * num_envs + env] = value;
    }
    Ok(())
}

/// Checks that final values belong to rows that are over, one value for each, and that none is
/// missing.
fn check_finals(
    flags: Flags<'_>,
    shape: [usize; 2],
    bootstrap: Bootstrap,
    index: &[[usize; 2]],
) -> Result<(), Error> {
    let [steps, num_envs] = shape;
    let mut given = vec![false; steps * num_envs];
    for (at, &row @ [t, env]) in index.iter().enumerate() {
        if t >= steps || env >= num_envs {
            return Err(Error::FinalOutOfRange { at, row, shape });
        }
        if (flags.terminated.step(t)[env] | flags.truncated.step(t)[env]) == 0 {
            return Err(Error::FinalOfRunning { at, row });
        }
        if std::mem::replace(&mut given[t * num_envs + env], true) {
            return Err(Error::FinalTwice { at, row });
        }
    }
    let needed = bootstrap.stops();
    let (mut first, mut count) = (None, 0);
    for (t, given) in given.chunks_exact(num_envs).enumerate() {
        for (env, ((terminated, truncated), given)) in flags.step(t).zip(given).enumerate() {
            if (terminated | truncated != 0) & needed.bootstraps(terminated, truncated) {
                count += 1;
                if !given && first.is_none() {
                    first = Some([t, env]);
                }
            }
        }
    }
    first.map_or(Ok(()), |first| Err(Error::MissingFinalValue { first, count }))
}
