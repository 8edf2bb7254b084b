//! Return estimators on NumPy arrays; `cartwheel.returns` documents what they compute.
//!
//! Python passes C-contiguous arrays of one floating-point type, and outputs that share no memory
//! with them. Every estimator runs detached.

mod array;
mod estimators;
mod masks;
mod transitions;

pub(crate) use estimators::{discounted, gae, lambda_returns, n_step, retrace, vtrace};
pub(crate) use masks::{is_first, masked_mean, masked_normalize, next_values, valid_mask};
pub(crate) use transitions::PyTransitions;
