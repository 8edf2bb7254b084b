//! Keywords: weights, ranges and switches, as Gymnasium takes them.

use std::fmt::Debug;
use std::ops::Deref;

use cartwheel::{EnvOptions, Error, Failure, Parameter, ParameterValue, State, wrong};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::python_number::PythonNumber;

/// The two ends of a range.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Range(PythonNumber, PythonNumber);

impl Range {
    /// Both ends.
    #[inline]
    pub(crate) fn ends(&self) -> (f64, f64) {
        (*self.0, *self.1)
    }

    /// Whether a number is between the ends, and is neither.
    #[inline]
    pub(crate) fn is_around(&self, value: f64) -> bool {
        *self.0 < value && value < *self.1
    }
}

impl From<(f64, f64)> for Range {
    fn from((low, high): (f64, f64)) -> Self {
        Self(low.into(), high.into())
    }
}

impl Parameter for Range {
    fn get(&self) -> ParameterValue {
        ParameterValue::Tuple(vec![self.0.get(), self.1.get()])
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let parts = value.parts().unwrap_or_default();
        let Ok([low, high]) = <[ParameterValue; 2]>::try_from(parts) else {
            return Err(wrong("two numbers", &value));
        };
        let mut range = *self;
        range.0.set(low)?;
        range.1.set(high)?;
        *self = range;
        Ok(())
    }
}

cartwheel::state! { impl State for Range { 0, 1 } }

/// The scale of the noise of a reset: NumPy draws uniform numbers from finite ranges that are not
/// reversed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseScale(PythonNumber);

impl NoiseScale {
    fn new(scale: PythonNumber) -> Result<Self, String> {
        if *scale >= 0.0 && (2.0 * *scale).is_finite() {
            return Ok(Self(scale));
        }
        Err(format!("must be finite and not negative, got {:?}", *scale))
    }
}

impl Deref for NoiseScale {
    type Target = f64;

    fn deref(&self) -> &f64 {
        &self.0
    }
}

impl From<f64> for NoiseScale {
    fn from(scale: f64) -> Self {
        Self(scale.into())
    }
}

impl<'de> Deserialize<'de> for NoiseScale {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wrong = |what| D::Error::custom(format!("`reset_noise_scale` {what}"));
        Self::new(PythonNumber::deserialize(from)?).map_err(wrong)
    }
}

impl Parameter for NoiseScale {
    fn get(&self) -> ParameterValue {
        self.0.get()
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let mut scale = self.0;
        scale.set(value)?;
        *self = Self::new(scale).map_err(Error::BadParameter)?;
        Ok(())
    }
}

impl State for NoiseScale {
    fn save(&self, state: &mut Vec<u8>) {
        self.0.save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        Self::new(State::load(state)?).map_err(Failure::new)
    }
}

/// A choice that decides the shape of observations, or what is looked at: it cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Fixed<T>(T);

impl<T> Deref for Fixed<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for Fixed<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: Parameter> Parameter for Fixed<T> {
    fn get(&self) -> ParameterValue {
        self.0.get()
    }

    fn set(&mut self, _: ParameterValue) -> Result<(), Error> {
        Err(Error::BadParameter("cannot be changed: pass it when you make the environments".into()))
    }
}

impl<T: State> State for Fixed<T> {
    fn save(&self, state: &mut Vec<u8>) {
        self.0.save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        State::load(state).map(Self)
    }
}

/// The keywords of a robot. Weights are saved with a state, and are parameters.
pub trait RobotOptions: EnvOptions + Clone {
    /// The names of all parameters, those of the simulation included.
    const PARAMETERS: &'static [&'static str];

    /// The number of the model.
    fn simulation(&self) -> u64;

    /// The weight that is this parameter.
    fn parameter(&self, name: &str) -> Option<&dyn Parameter>;

    /// The weight that is this parameter, for setting it.
    fn parameter_mut(&mut self, name: &str) -> Option<&mut dyn Parameter>;

    /// Appends the weights.
    fn save(&self, state: &mut Vec<u8>);

    /// Takes the weights off the front.
    ///
    /// # Errors
    ///
    /// A [`Failure`] for bytes that are not weights.
    fn load(&mut self, state: &mut &[u8]) -> Result<(), Failure>;
}

/// Makes the keywords of an environment: `cartwheel::options!`, with what names the model. Each is a
/// parameter too, by Gymnasium's name of the attribute. Those behind a semicolon are none, and have the
/// defaults of their types.
macro_rules! options {
    (
        $($(#[$($meta:tt)*])* $attribute:ident = $field:ident: $type:ty = $default:expr,)+
        $(; $($(#[$($other_meta:tt)*])* $other:ident: $other_type:ty,)+)?
    ) => {
        cartwheel::options! {
            /// Keywords.
            pub struct Options {
                /// The number of a registered model. It begins with an underscore, so that saved
                /// states do not depend on it.
                #[serde(rename = "_simulation")]
                simulation: u64,
                /// Any text that tells models apart, for saved states.
                model: String,
                $($(#[$($meta)*])* $field: $type = <$type>::from($default),)+
                $($($(#[$($other_meta)*])* $other: $other_type,)+)?
            }
        }

        impl $crate::options::RobotOptions for Options {
            const PARAMETERS: &'static [&'static str] = &[
                $(stringify!($attribute),)+
                "simulation", "frame_skip", "timestep", "init_qpos", "init_qvel", "qpos", "qvel",
                "state_vector", "ctrl", "scene", "written",
            ];

            fn simulation(&self) -> u64 {
                self.simulation
            }

            fn parameter(&self, name: &str) -> Option<&dyn cartwheel::Parameter> {
                Some(match name {
                    $(stringify!($attribute) => &self.$field,)+
                    _ => return None,
                })
            }

            fn parameter_mut(&mut self, name: &str) -> Option<&mut dyn cartwheel::Parameter> {
                Some(match name {
                    $(stringify!($attribute) => &mut self.$field,)+
                    _ => return None,
                })
            }

            fn save(&self, state: &mut Vec<u8>) {
                $(cartwheel::State::save(&self.$field, state);)+
            }

            fn load(&mut self, state: &mut &[u8]) -> Result<(), cartwheel::Failure> {
                $(self.$field = cartwheel::State::load(state)?;)+
                Ok(())
            }
        }
    };
}

pub(crate) use options;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_tuples_of_two() {
        let mut range: Range = serde_json::from_str(r#"[0.7, "inf"]"#).unwrap();
        assert_eq!(range.ends(), (0.7, f64::INFINITY));
        let two = ParameterValue::List(vec![ParameterValue::Int(1), ParameterValue::Float(2.5)]);
        range.set(two).unwrap();
        let both = vec![ParameterValue::Int(1), ParameterValue::Float(2.5)];
        assert_eq!(range.get(), ParameterValue::Tuple(both));
        for wrong in [vec![ParameterValue::Int(1)], vec![ParameterValue::None; 2]] {
            assert!(range.set(ParameterValue::List(wrong)).is_err());
            assert_eq!(range.ends(), (1.0, 2.5));
        }
    }

    #[test]
    fn noise_has_a_finite_scale_that_is_not_negative() {
        let scale = |json: &str| serde_json::from_str::<NoiseScale>(json);
        assert!(scale("0").is_ok());
        for wrong in ["-0.1", r#""inf""#, r#""nan""#, "1e308"] {
            assert!(scale(wrong).unwrap_err().to_string().contains("reset_noise_scale"), "{wrong}");
        }
    }
}
