//! Generalized advantage estimation.

use super::backward::Backward;
use super::error::Error;
use super::float::{Float, only_if};
use super::per_step::PerStep;
use super::sweep::{Step, Sweep, Transitions};
use super::time_major::TimeMajor;

/// Writes advantages and returns.
///
/// ```text
/// delta_t = r_t + gamma * (bootstraps_t ? v_next_t : 0) - v_t
/// A_t     = delta_t + gamma * lambda * (over_t ? 0 : A_{t+1}),      A_T = 0
/// returns = A + v
/// ```
///
/// Rows that are not valid get the advantage 0, so their return is their value.
///
/// Source: J. Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage
/// Estimation" (2016), equation 16.
///
/// # Errors
///
/// [`Error::WrongShape`], [`Error::WrongCount`] and [`Error::NotInUnitRange`].
pub fn gae<F: Float>(
    transitions: &Transitions<'_, F>,
    values: TimeMajor<'_, F>,
    next_values: TimeMajor<'_, F>,
    gae_lambda: PerStep<'_, F>,
    advantages: &mut [F],
    returns: &mut [F],
) -> Result<(), Error> {
    sweep(transitions, values, next_values, gae_lambda, advantages, returns, &Gae)
}

/// Writes advantages whose weights of n-step returns sum to one over a finite horizon, and returns.
///
/// With `G^(n)_t` the n-step returns that end before the episode ends and before the rollout ends,
///
/// ```text
/// A_t = (sum_n lambda^(n-1) G^(n)_t) / (sum_n lambda^(n-1)) - v_t,      returns = A + v
/// ```
///
/// In contrast, [`gae`] gives the last of these returns the weight of all returns that the rollout
/// does not contain. The sums are computed backward:
///
/// ```text
/// W_t = 1 + lambda * (over_t ? 0 : W_{t+1})
/// S_t = W_t * r_t + gamma * (bootstraps_t ? v_next_t : 0) + gamma * lambda * (over_t ? 0 : S_{t+1})
/// ```
///
/// Rows that are not valid get the advantage 0, so their return is their value.
///
/// Source: the option `finite_horizon_gae` of the PPO baseline of S. Tao et al., `ManiSkill3` (2024).
///
/// # Errors
///
/// [`Error::WrongShape`], [`Error::WrongCount`] and [`Error::NotInUnitRange`].
pub fn gae_normalized<F: Float>(
    transitions: &Transitions<'_, F>,
    values: TimeMajor<'_, F>,
    next_values: TimeMajor<'_, F>,
    gae_lambda: PerStep<'_, F>,
    advantages: &mut [F],
    returns: &mut [F],
) -> Result<(), Error> {
    sweep(transitions, values, next_values, gae_lambda, advantages, returns, &GaeNormalized)
}

fn sweep<F: Float, const LATER: usize>(
    transitions: &Transitions<'_, F>,
    values: TimeMajor<'_, F>,
    next_values: TimeMajor<'_, F>,
    gae_lambda: PerStep<'_, F>,
    advantages: &mut [F],
    returns: &mut [F],
    estimator: &impl Backward<F, 3, LATER, 2>,
) -> Result<(), Error> {
    let sweep = Sweep::new(transitions)?;
    let values = sweep.array("values", values)?;
    let next_values = sweep.array("next_values", next_values)?;
    let gae_lambda = sweep.per_step("gae_lambda", gae_lambda)?;
    sweep.backward(
        |t| [values.step(t), next_values.step(t), gae_lambda.step(t)],
        [("advantages", advantages), ("returns", returns)],
        estimator,
    )
}

/// A step of the advantages; `trace` is the advantage of the next step.
struct Gae;

impl<F: Float> Backward<F, 3, 1, 2> for Gae {
    #[inline(always)]
    fn step(
        &self,
        now: &Step<'_, F>,
        [values, next_values, gae_lambda]: [&[F]; 3],
        [trace]: [&mut [F]; 1],
        [advantages, returns]: [&mut [F]; 2],
    ) {
        let n = trace.len();
        let Step { rewards, gamma, rows } = now.of_len(n);
        let (values, next_values, gae_lambda) = (&values[..n], &next_values[..n], &gae_lambda[..n]);
        let (advantages, returns) = (&mut advantages[..n], &mut returns[..n]);
        for i in 0..n {
            let next_value = only_if(rows[i].bootstraps(), next_values[i]);
            let delta = rewards[i] + gamma[i] * next_value - values[i];
            let later = only_if(rows[i].goes_on(), trace[i]);
            let advantage = only_if(rows[i].valid(), delta + gamma[i] * gae_lambda[i] * later);
            trace[i] = advantage;
            advantages[i] = advantage;
            returns[i] = advantage + values[i];
        }
    }
}

/// A step of the advantages; `weight` and `sum` are those of the next step.
struct GaeNormalized;

impl<F: Float> Backward<F, 3, 2, 2> for GaeNormalized {
    #[inline(always)]
    fn step(
        &self,
        now: &Step<'_, F>,
        [values, next_values, gae_lambda]: [&[F]; 3],
        [weight, sum]: [&mut [F]; 2],
        [advantages, returns]: [&mut [F]; 2],
    ) {
        let n = weight.len();
        let Step { rewards, gamma, rows } = now.of_len(n);
        let (values, next_values, gae_lambda, sum) =
            (&values[..n], &next_values[..n], &gae_lambda[..n], &mut sum[..n]);
        let (advantages, returns) = (&mut advantages[..n], &mut returns[..n]);
        for i in 0..n {
            let next_value = only_if(rows[i].bootstraps(), next_values[i]);
            let weights = F::ONE + gae_lambda[i] * only_if(rows[i].goes_on(), weight[i]);
            let returned = weights * rewards[i]
                + gamma[i] * next_value
                + gamma[i] * gae_lambda[i] * only_if(rows[i].goes_on(), sum[i]);
            let advantage = only_if(rows[i].valid(), returned / weights - values[i]);
            weight[i] = only_if(rows[i].valid(), weights);
            sum[i] = only_if(rows[i].valid(), returned);
            advantages[i] = advantage;
            returns[i] = advantage + values[i];
        }
    }
}
