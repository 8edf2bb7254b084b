//! Discounted sums of rewards.

use super::backward::Backward;
use super::error::Error;
use super::float::{Float, only_if};
use super::sweep::{Step, Sweep, Transitions};
use super::time_major::TimeMajor;

/// Writes, for each row, the discounted sum of the rewards from that row to the end of its episode.
///
/// ```text
/// G_t = r_t + gamma * (goes_on_t ? G_{t+1} : bootstraps_t ? v_next_t : 0)
/// ```
///
/// where an episode *goes on* at `t` if it is not over and row `t + 1` is in the rollout and valid.
/// Without `next_values` nothing is bootstrapped, also not at the end of the rollout: only the
/// observed rewards are summed. Rows that are not valid get 0.
///
/// Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction" (2018), equation 3.9.
///
/// # Errors
///
/// [`Error::WrongShape`], [`Error::WrongCount`] and [`Error::NotInUnitRange`].
pub fn discounted<F: Float>(
    transitions: &Transitions<'_, F>,
    next_values: Option<TimeMajor<'_, F>>,
    returns: &mut [F],
) -> Result<(), Error> {
    let sweep = Sweep::new(transitions)?;
    let next_values = sweep.array_or_zeros("next_values", next_values)?;
    sweep.backward(|t| [next_values.step(t)], [("returns", returns)], &Discounted)
}

/// A step of the sums; `later` is the sum of the next step.
struct Discounted;

impl<F: Float> Backward<F, 1, 1, 1> for Discounted {
    #[inline(always)]
    fn step(
        &self,
        now: &Step<'_, F>,
        [next_values]: [&[F]; 1],
        [later]: [&mut [F]; 1],
        [returns]: [&mut [F]; 1],
    ) {
        let n = later.len();
        let Step { rewards, gamma, rows } = now.of_len(n);
        let (next_values, returns) = (&next_values[..n], &mut returns[..n]);
        for i in 0..n {
            // At most one of the two applies.
            let tail = only_if(rows[i].goes_on(), later[i])
                + only_if(rows[i].ends_in_value(), next_values[i]);
            let returned = only_if(rows[i].valid(), rewards[i] + gamma[i] * tail);
            later[i] = returned;
            returns[i] = returned;
        }
    }
}
