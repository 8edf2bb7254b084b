//! Lambda-returns: the geometrically weighted mean of all n-step returns.

use super::backward::Backward;
use super::error::Error;
use super::float::{Float, only_if};
use super::per_step::PerStep;
use super::sweep::{Step, Sweep, Transitions};
use super::time_major::TimeMajor;

/// Writes lambda-returns.
///
/// ```text
/// G_t = r_t + gamma * (goes_on_t ? (1 - lambda) * v_next_t + lambda * G_{t+1}
///                                : bootstraps_t ? v_next_t : 0)
/// ```
///
/// where an episode *goes on* at `t` if it is not over and row `t + 1` is in the rollout and valid.
/// They equal `A + v` of [`gae`](super::gae()). With the greatest action value as `v_next` they are
/// the targets of Q(lambda) in PQN. Rows that are not valid get 0.
///
/// Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction" (2018), section 12.8.
///
/// # Errors
///
/// [`Error::WrongShape`], [`Error::WrongCount`] and [`Error::NotInUnitRange`].
pub fn lambda_returns<F: Float>(
    transitions: &Transitions<'_, F>,
    next_values: TimeMajor<'_, F>,
    lambda_: PerStep<'_, F>,
    returns: &mut [F],
) -> Result<(), Error> {
    let sweep = Sweep::new(transitions)?;
    let next_values = sweep.array("next_values", next_values)?;
    let lambda_ = sweep.per_step("lambda_", lambda_)?;
    sweep.backward(
        |t| [next_values.step(t), lambda_.step(t)],
        [("returns", returns)],
        &LambdaReturns,
    )
}

/// A step of the returns; `later` is the return of the next step.
struct LambdaReturns;

impl<F: Float> Backward<F, 2, 1, 1> for LambdaReturns {
    #[inline(always)]
    fn step(
        &self,
        now: &Step<'_, F>,
        [next_values, lambda_]: [&[F]; 2],
        [later]: [&mut [F]; 1],
        [returns]: [&mut [F]; 1],
    ) {
        let n = later.len();
        let Step { rewards, gamma, rows } = now.of_len(n);
        let (next_values, lambda_, returns) = (&next_values[..n], &lambda_[..n], &mut returns[..n]);
        for i in 0..n {
            let mixture = (F::ONE - lambda_[i]) * next_values[i] + lambda_[i] * later[i];
            let tail = only_if(rows[i].goes_on(), mixture)
                + only_if(rows[i].ends_in_value(), next_values[i]);
            let returned = only_if(rows[i].valid(), rewards[i] + gamma[i] * tail);
            later[i] = returned;
            returns[i] = returned;
        }
    }
}
