//! n-step returns.

use std::num::NonZero;

use super::error::Error;
use super::float::{Float, only_if};
use super::split::split;
use super::sweep::{Row, Step, Sweep, Transitions};
use super::time_major::TimeMajor;
use crate::threads::compute_each;

/// Writes n-step returns, the discount of the value that follows each, and its number of steps.
///
/// A window of `m` steps begins at each valid row. It ends after `n` steps, at the end of the
/// episode or at the end of the rollout, whichever comes first:
///
/// ```text
/// R_t    = sum_{k<m} gamma^k * r_{t+k}
/// disc_t = bootstraps_{t+m-1} ? gamma^m : 0
/// target = R_t + disc_t * v_next_{t+m-1}
/// ```
///
/// `returns` get the target if `next_values` are given, and otherwise `R`, for values that are
/// known only later. `discounts` get `disc`, which varies from row to row, and `lengths` get `m`.
/// Rows that are not valid get 0 in all three.
///
/// Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction" (2018), equation 7.1.
///
/// # Errors
///
/// [`Error::WrongShape`], [`Error::WrongCount`] and [`Error::NotInUnitRange`].
pub fn n_step<F: Float>(
    transitions: &Transitions<'_, F>,
    next_values: Option<TimeMajor<'_, F>>,
    n: NonZero<usize>,
    returns: &mut [F],
    discounts: &mut [F],
    lengths: &mut [i64],
) -> Result<(), Error> {
    let sweep = Sweep::new(transitions)?;
    let next_values = sweep.array_or_zeros("next_values", next_values)?;
    sweep.check_output("returns", returns)?;
    sweep.check_output("discounts", discounts)?;
    sweep.check_output("lengths", lengths)?;
    let sums = split(returns, sweep.shares()).into_iter().zip(split(discounts, sweep.shares()));
    let outputs = sums.zip(split(lengths, sweep.shares()));
    compute_each(
        sweep.shares().to_vec(),
        outputs,
        |envs, ((mut returns, mut discounts), mut lengths)| {
            let mut rows = vec![Row::default(); envs.len()];
            let mut open = vec![false; envs.len()];
            for t in 0..sweep.steps() {
                let (returns, discounts) = (returns.step(t), discounts.step(t));
                let lengths = lengths.step(t);
                begin(sweep.step(t, &envs, &mut rows).rows, &mut open, returns, discounts, lengths);
                let last = t.saturating_add(n.get() - 1).min(sweep.steps() - 1);
                for now in t..=last {
                    let next_values = &next_values.step(now)[envs.clone()];
                    let step = sweep.step(now, &envs, &mut rows);
                    take(&step, next_values, now == last, &mut open, returns, discounts, lengths);
                    if !open.contains(&true) {
                        break;
                    }
                }
            }
        },
    );
    Ok(())
}

/// Begins a window in each environment whose row is valid. While the window is open, `discounts`
/// holds the discount of its next reward.
fn begin<F: Float>(
    rows: &[Row],
    open: &mut [bool],
    returns: &mut [F],
    discounts: &mut [F],
    lengths: &mut [i64],
) {
    for ((open, discount), row) in open.iter_mut().zip(&mut *discounts).zip(rows) {
        *open = row.valid();
        *discount = only_if(row.valid(), F::ONE);
    }
    returns.fill(F::ZERO);
    lengths.fill(0);
}

/// Adds one step of all environments to the open windows; `last` closes all of them.
fn take<F: Float>(
    step: &Step<'_, F>,
    next_values: &[F],
    last: bool,
    open: &mut [bool],
    returns: &mut [F],
    discounts: &mut [F],
    lengths: &mut [i64],
) {
    let n = open.len();
    let Step { rewards, gamma, rows } = step.of_len(n);
    let (next_values, lengths) = (&next_values[..n], &mut lengths[..n]);
    let (returns, discounts) = (&mut returns[..n], &mut discounts[..n]);
    for i in 0..n {
        let closes_in_value = rows[i].ends_in_value() | (last & rows[i].bootstraps());
        let discount = discounts[i] * gamma[i];
        let reward = only_if(open[i], discounts[i] * rewards[i]);
        let value = only_if(open[i] & closes_in_value, discount * next_values[i]);
        returns[i] = returns[i] + reward + value;
        let kept = only_if(rows[i].bootstraps(), discount);
        discounts[i] = if open[i] { kept } else { discounts[i] };
    }
    for (length, open) in lengths.iter_mut().zip(&*open) {
        *length += i64::from(*open);
    }
    for (open, row) in open.iter_mut().zip(rows) {
        *open &= row.goes_on();
    }
}
