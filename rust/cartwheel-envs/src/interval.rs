//! Intervals from which initial states are drawn: the `low` and `high` of reset options.

use serde::{Deserialize, Deserializer};

/// The ends as they were passed; missing ends have defaults.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ends {
    #[serde(default, deserialize_with = "number")]
    low: Option<f64>,
    #[serde(default, deserialize_with = "number")]
    high: Option<f64>,
}

/// A number that was passed: `None` is refused, although an `Option` would treat it as missing.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(deserializer).map(Some)
}

impl Ends {
    /// The interval, or the reason why it is invalid.
    pub(crate) fn or(self, low: f64, high: f64) -> Result<(f64, f64), String> {
        let (low, high) = (self.low.unwrap_or(low), self.high.unwrap_or(high));
        if low > high {
            // Gymnasium's own message.
            return Err(format!("Lower bound ({low}) must be lower than higher bound ({high})."));
        }
        check_range(low, high)?;
        Ok((low, high))
    }
}

/// The reason why uniform numbers between `low` and `high` cannot be drawn, if there is one.
pub(crate) fn check_range(low: f64, high: f64) -> Result<(), String> {
    if (high - low).is_finite() {
        return Ok(());
    }
    Err(format!("the range from {low} to {high} is too large"))
}

/// The reason why `low` or `high` is further than `max` from zero, if one of them is.
pub(crate) fn check_most(low: f64, high: f64, max: f64) -> Result<(), String> {
    if low.abs().max(high.abs()) <= max {
        return Ok(());
    }
    Err(format!("bounds must be between -{max:e} and {max:e}, got {low:e} and {high:e}"))
}

/// Makes reset options with the fields `low` and `high` and these defaults, at most `max` from
/// zero, for values that `of` names.
macro_rules! interval {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            of: $of:literal, low: $low:expr, high: $high:expr $(, max: $max:expr)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, serde::Deserialize)]
        #[serde(try_from = "crate::interval::Ends")]
        pub struct $name {
            /// Smallest value.
            pub low: f64,
            /// Largest value.
            pub high: f64,
        }

        impl cartwheel::EnvOptions for $name {
            fn describe() -> Vec<cartwheel::OptionDoc> {
                let doc = |name, default: f64, size| cartwheel::OptionDoc {
                    name,
                    default: Some(default.to_string()),
                    text: format!("{size} {}.", $of),
                };
                let Self { low, high } = Self::default();
                vec![doc("low", low, "Smallest"), doc("high", high, "Largest")]
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self { low: $low, high: $high }
            }
        }

        impl TryFrom<crate::interval::Ends> for $name {
            type Error = String;

            fn try_from(ends: crate::interval::Ends) -> Result<Self, String> {
                let (low, high) = ends.or($low, $high)?;
                $(crate::interval::check_most(low, high, $max)?;)?
                Ok(Self { low, high })
            }
        }
    };
}

pub(crate) use interval;
