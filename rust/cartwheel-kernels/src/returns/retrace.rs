//! Retrace(lambda) and its relatives: off-policy targets of action values.

use super::backward::Backward;
use super::error::Error;
use super::float::{Float, capped, only_if};
use super::per_step::PerStep;
use super::sweep::{Step, Sweep, Transitions};
use super::time_major::TimeMajor;
use super::vtrace::positive;

/// The coefficients that weight later corrections, `c_t = lambda * min(c_bar, ratio_t)`.
#[derive(Debug, Clone, Copy)]
pub struct Traces<'a, F> {
    /// Decay of the traces.
    pub lambda_: PerStep<'a, F>,
    /// Probability of each action under the target policy, divided by that under the behavior
    /// policy.
    pub ratios: TimeMajor<'a, F>,
    /// Cap of the ratios; 1 for Retrace, infinite for importance sampling.
    pub c_bar: f64,
}

/// Writes targets of action values.
///
/// With `q` the values of the actions that were taken, and `q_next` the expected value of the true
/// next observation under the target policy,
///
/// ```text
/// Y_t = r_t + gamma * (bootstraps_t ? q_next_t : 0)
///       + gamma * (over_t ? 0 : c_{t+1} * (Y_{t+1} - q_{t+1})),      c_t = lambda * min(c_bar, w_t)
/// ```
///
/// The last term is 0 in the last step. Off-policy Q(lambda) uses ratios of 1; tree backup uses the
/// target policy's probabilities instead of ratios. Rows that are not valid get 0; their action
/// value and their ratio are not used.
///
/// Source: R. Munos et al., "Safe and Efficient Off-Policy Reinforcement Learning" (2016), equation 4.
///
/// # Errors
///
/// [`Error::WrongShape`], [`Error::WrongCount`], [`Error::NotInUnitRange`] and [`Error::NotPositive`].
pub fn retrace<F: Float>(
    transitions: &Transitions<'_, F>,
    q_values: TimeMajor<'_, F>,
    next_values: TimeMajor<'_, F>,
    traces: &Traces<'_, F>,
    targets: &mut [F],
) -> Result<(), Error> {
    let sweep = Sweep::new(transitions)?;
    let q_values = sweep.array("q_values", q_values)?;
    let next_values = sweep.array("next_values", next_values)?;
    let ratios = sweep.array("ratios", traces.ratios)?;
    let lambda_ = sweep.per_step("lambda_", traces.lambda_)?;
    let cap = positive("c_bar", traces.c_bar)?;
    sweep.backward(
        |t| [q_values.step(t), next_values.step(t), ratios.step(t), lambda_.step(t)],
        [("targets", targets)],
        &Retrace { cap },
    )
}

/// A step of the targets; `correction` is `c * (Y - q)` of the next step.
struct Retrace<F> {
    cap: F,
}

impl<F: Float> Backward<F, 4, 1, 1> for Retrace<F> {
    #[inline(always)]
    fn step(
        &self,
        now: &Step<'_, F>,
        [q_values, next_values, ratios, lambda_]: [&[F]; 4],
        [correction]: [&mut [F]; 1],
        [targets]: [&mut [F]; 1],
    ) {
        let n = correction.len();
        let Step { rewards, gamma, rows } = now.of_len(n);
        let (q_values, next_values, ratios) = (&q_values[..n], &next_values[..n], &ratios[..n]);
        let (lambda_, targets) = (&lambda_[..n], &mut targets[..n]);
        for i in 0..n {
            let next_value = only_if(rows[i].bootstraps(), next_values[i]);
            let later = only_if(rows[i].goes_on(), correction[i]);
            let target = only_if(rows[i].valid(), rewards[i] + gamma[i] * (next_value + later));
            let trace = lambda_[i] * capped(ratios[i], self.cap);
            correction[i] = only_if(rows[i].valid(), trace * (target - q_values[i]));
            targets[i] = target;
        }
    }
}
