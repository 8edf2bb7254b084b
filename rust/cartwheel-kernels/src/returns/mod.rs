//! Return estimators for the transitions of a rollout, in every autoreset mode.
//!
//! ```text
//! values[T + 1, N], final values ─▶ next_values ─┐
//! flags[T, N], prev_done[N] ──────▶ valid_mask ──┼─▶ gae, lambda_returns, vtrace, retrace,
//! rewards[T, N], flags ──────────────────────────┘   n_step, discounted, gae_normalized
//! ```
//!
//! One formula serves all modes: for each row (step `t` of environment `i`), an estimator gets the
//! reward, the value of the *true* next observation, the two flags and whether the row is a
//! transition. The mode only decides how [`next_values()`] and [`valid_mask()`] are built.
//!
//! * After a terminated episode the value is 0. After a truncated one it is the value of the last
//!   observation; [`Bootstrap`] has the other choices. With both flags set the episode counts as
//!   terminated.
//! * A trace never continues past the end of an episode, of either kind, nor into a row that is not
//!   valid, nor past the end of the rollout.
//! * Flags select and never multiply: values that are not used, also NaN, do not affect the result.
//! * Flags are bytes, of which every one but zero is true; those that are written are 0 or 1.
//! * Arrays are time-major, `[steps, num_envs]`; the caller owns the output slices. Environments do
//!   not depend on each other, so a long rollout is divided among threads by environment; the
//!   result has the same bits for any number of threads.
//!
//! ```
//! use cartwheel_kernels::returns::{Bootstrap, Flags, PerStep, TimeMajor, Transitions, gae};
//!
//! // Three steps of one environment; the second one is cut short by a time limit.
//! let array = |cells| TimeMajor::new(cells, 3, 1);
//! let flags = |cells| TimeMajor::new(cells, 3, 1);
//! let transitions = Transitions {
//!     rewards: array(&[1.0, 1.0, 1.0])?,
//!     flags: Flags {
//!         terminated: flags(&[0, 0, 0])?,
//!         truncated: flags(&[0, 1, 0])?,
//!     },
//!     valid: None,
//!     gamma: PerStep::Same(0.5),
//!     bootstrap: Bootstrap::Truncated,
//!     num_threads: None,
//! };
//! let (mut advantages, mut returns) = ([0.0; 3], [0.0; 3]);
//! let (values, next_values) = (array(&[0.0, 0.0, 0.0])?, array(&[0.0, 8.0, 2.0])?);
//! gae(&transitions, values, next_values, PerStep::Same(1.0), &mut advantages, &mut returns)?;
//! assert_eq!(returns, [3.5, 5.0, 2.0]); // 1 + 8 / 2, and half of that a step earlier
//! # Ok::<(), cartwheel_kernels::returns::Error>(())
//! ```
#![expect(clippy::inline_always, reason = "loops take on the instructions of their caller")]

mod backward;
mod discounted;
mod error;
mod flags;
mod float;
mod gae;
mod lambda_returns;
mod masked;
mod n_step;
mod next_values;
mod per_step;
mod retrace;
mod rows;
mod split;
mod sweep;
mod time_major;
mod vtrace;

pub use discounted::discounted;
pub use error::Error;
pub use flags::{Bootstrap, Flags};
pub use float::Float;
pub use gae::{gae, gae_normalized};
pub use lambda_returns::lambda_returns;
pub use masked::{masked_mean, masked_normalize};
pub use n_step::n_step;
pub use next_values::{FinalValues, next_values};
pub use per_step::PerStep;
pub use retrace::{Traces, retrace};
pub use rows::{Restart, is_first, valid_mask};
pub use sweep::Transitions;
pub use time_major::TimeMajor;
pub use vtrace::{Clipping, vtrace};
