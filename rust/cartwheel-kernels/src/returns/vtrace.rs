//! V-trace: off-policy value targets and policy advantages.

use super::backward::Backward;
use super::error::Error;
use super::float::{Float, capped, only_if};
use super::per_step::PerStep;
use super::sweep::{Step, Sweep, Transitions};
use super::time_major::TimeMajor;

/// The limits of V-trace's importance ratios, and the decay of its traces.
#[derive(Debug, Clone, Copy)]
pub struct Clipping<'a, F> {
    /// Decay of the traces.
    pub lambda_: PerStep<'a, F>,
    /// Cap of the ratio in the temporal differences: it decides to which policy the learned values
    /// belong.
    pub rho_bar: f64,
    /// Cap of the ratio in the traces: it decides the speed of learning.
    pub c_bar: f64,
    /// Cap of the ratio in the policy advantages.
    pub pg_rho_bar: f64,
}

impl<F> Default for Clipping<'_, F> {
    /// All caps 1, and traces that do not decay: as in IMPALA.
    fn default() -> Self {
        Self { lambda_: PerStep::Same(1.0), rho_bar: 1.0, c_bar: 1.0, pg_rho_bar: 1.0 }
    }
}

/// The caps, in the type of the rollout.
#[derive(Debug, Clone, Copy)]
struct Caps<F> {
    rho: F,
    c: F,
    pg_rho: F,
}

/// Writes value targets and policy advantages.
///
/// With `w` the importance ratios, the target policy's probability divided by the behavior
/// policy's,
///
/// ```text
/// rho_t = min(rho_bar, w_t),   c_t = lambda * min(c_bar, w_t)
/// e_t   = rho_t * (r_t + gamma * (bootstraps_t ? v_next_t : 0) - v_t)
///         + gamma * c_t * (over_t ? 0 : e_{t+1}),                            targets = v + e
/// y_t   = goes_on_t ? lambda * targets_{t+1} + (1 - lambda) * v_next_t
///                   : bootstraps_t ? v_next_t : 0
/// pg_advantage_t = min(pg_rho_bar, w_t) * (r_t + gamma * y_t - v_t)
/// ```
///
/// where an episode *goes on* at `t` if it is not over and row `t + 1` is in the rollout and valid.
/// Rows that are not valid get their value and the advantage 0.
///
/// Source: L. Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with Importance Weighted
/// Actor-Learner Architectures" (2018), equation 1 and section 4.2.
///
/// # Errors
///
/// [`Error::WrongShape`], [`Error::WrongCount`], [`Error::NotInUnitRange`] and [`Error::NotPositive`].
pub fn vtrace<F: Float>(
    transitions: &Transitions<'_, F>,
    values: TimeMajor<'_, F>,
    next_values: TimeMajor<'_, F>,
    ratios: TimeMajor<'_, F>,
    clipping: &Clipping<'_, F>,
    targets: &mut [F],
    pg_advantages: &mut [F],
) -> Result<(), Error> {
    let sweep = Sweep::new(transitions)?;
    let values = sweep.array("values", values)?;
    let next_values = sweep.array("next_values", next_values)?;
    let ratios = sweep.array("ratios", ratios)?;
    let lambda_ = sweep.per_step("lambda_", clipping.lambda_)?;
    let caps = Caps {
        rho: positive("rho_bar", clipping.rho_bar)?,
        c: positive("c_bar", clipping.c_bar)?,
        pg_rho: positive("pg_rho_bar", clipping.pg_rho_bar)?,
    };
    sweep.backward(
        |t| [values.step(t), next_values.step(t), ratios.step(t), lambda_.step(t)],
        [("targets", targets), ("pg_advantages", pg_advantages)],
        &caps,
    )
}

/// A cap; it may be infinite.
pub(super) fn positive<F: Float>(what: &'static str, value: f64) -> Result<F, Error> {
    if value > 0.0 { Ok(F::from_f64(value)) } else { Err(Error::NotPositive { what, value }) }
}

/// A step of the targets; `error` and `later` are `e` and the target of the next step.
impl<F: Float> Backward<F, 4, 2, 2> for Caps<F> {
    #[inline(always)]
    fn step(
        &self,
        now: &Step<'_, F>,
        [values, next_values, ratios, lambda_]: [&[F]; 4],
        [error, later]: [&mut [F]; 2],
        [targets, pg_advantages]: [&mut [F]; 2],
    ) {
        let n = error.len();
        let Step { rewards, gamma, rows } = now.of_len(n);
        let (values, next_values, ratios) = (&values[..n], &next_values[..n], &ratios[..n]);
        let (lambda_, later) = (&lambda_[..n], &mut later[..n]);
        let (targets, pg_advantages) = (&mut targets[..n], &mut pg_advantages[..n]);
        for i in 0..n {
            let next_value = only_if(rows[i].bootstraps(), next_values[i]);
            let trace = lambda_[i] * capped(ratios[i], self.c);
            let delta = rewards[i] + gamma[i] * next_value - values[i];
            let correction = capped(ratios[i], self.rho) * delta
                + gamma[i] * trace * only_if(rows[i].goes_on(), error[i]);
            // The next target belongs to this episode only where the episode goes on.
            let mixture = lambda_[i] * later[i] + (F::ONE - lambda_[i]) * next_values[i];
            let tail = only_if(rows[i].goes_on(), mixture)
                + only_if(rows[i].ends_in_value(), next_values[i]);
            let advantage =
                capped(ratios[i], self.pg_rho) * (rewards[i] + gamma[i] * tail - values[i]);
            error[i] = only_if(rows[i].valid(), correction);
            later[i] = values[i] + error[i];
            targets[i] = later[i];
            pg_advantages[i] = only_if(rows[i].valid(), advantage);
        }
    }
}
