//! Python's own numbers, as keywords have them.

use std::fmt;
use std::ops::Deref;

use cartwheel::{Error, Parameter, ParameterValue};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

/// One of Python's own numbers. An integer stays one, as an attribute and in infos. JSON has no
/// infinity, so numbers that are not finite are the texts `inf`, `-inf` and `nan`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PythonNumber {
    value: f64,
    /// The same, if it is an integer.
    integer: Option<i64>,
}

impl PythonNumber {
    /// The number itself, if it is an integer.
    #[inline]
    pub(crate) fn integer(self) -> Option<i64> {
        self.integer
    }
}

impl Deref for PythonNumber {
    type Target = f64;

    #[inline]
    fn deref(&self) -> &f64 {
        &self.value
    }
}

impl From<f64> for PythonNumber {
    fn from(value: f64) -> Self {
        Self { value, integer: None }
    }
}

impl From<i64> for PythonNumber {
    #[expect(clippy::cast_precision_loss, reason = "as in Python's own arithmetic")]
    fn from(integer: i64) -> Self {
        Self { value: integer as f64, integer: Some(integer) }
    }
}

impl<'de> Deserialize<'de> for PythonNumber {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = PythonNumber;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_f64<E>(self, value: f64) -> Result<PythonNumber, E> {
                Ok(value.into())
            }

            fn visit_i64<E>(self, value: i64) -> Result<PythonNumber, E> {
                Ok(value.into())
            }

            #[expect(clippy::cast_precision_loss, reason = "too large for an integer of NumPy's")]
            fn visit_u64<E>(self, value: u64) -> Result<PythonNumber, E> {
                Ok(i64::try_from(value)
                    .map_or_else(|_| PythonNumber::from(value as f64), PythonNumber::from))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PythonNumber, E> {
                let value = match text {
                    "inf" => f64::INFINITY,
                    "-inf" => f64::NEG_INFINITY,
                    "nan" => f64::NAN,
                    _ => return Err(E::invalid_type(serde::de::Unexpected::Str(text), &self)),
                };
                Ok(value.into())
            }
        }

        from.deserialize_any(Number)
    }
}

impl Parameter for PythonNumber {
    fn get(&self) -> ParameterValue {
        self.integer.map_or(ParameterValue::Float(self.value), ParameterValue::Int)
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        if let ParameterValue::Int(integer) = value {
            *self = integer.into();
            return Ok(());
        }
        let mut float = 0.0;
        f64::set(&mut float, value)?;
        *self = float.into();
        Ok(())
    }
}

cartwheel::state! { impl State for PythonNumber { value, integer } }

#[cfg(test)]
mod tests {
    use super::*;

    fn real(json: &str) -> Result<PythonNumber, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_keep_pythons_type_and_may_be_infinite() {
        assert_eq!(real("2").unwrap().get(), ParameterValue::Int(2));
        assert_eq!(real("2.0").unwrap().get(), ParameterValue::Float(2.0));
        assert_eq!(
            real("18446744073709551615").unwrap().get(),
            ParameterValue::Float(2_f64.powi(64))
        );
        assert_eq!(real(r#""-inf""#).unwrap().to_bits(), f64::NEG_INFINITY.to_bits());
        assert!(real(r#""nan""#).unwrap().is_nan());
        for wrong in [r#""infinite""#, "true", "null", "[1.0]"] {
            assert!(real(wrong).unwrap_err().contains("expected a number"), "{wrong}");
        }
    }
}
