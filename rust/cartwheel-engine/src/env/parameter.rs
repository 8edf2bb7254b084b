//! Parameters: the attributes of an environment that `get_attr` and `set_attr` reach by name.

use std::fmt;
use std::ops::{Deref, DerefMut};

use cartwheel_core::Error;

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValue {
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A `float32`.
    Float32(f32),
    /// Text.
    Text(String),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A vector of `float64`.
    Floats(Vec<f64>),
    /// A vector of `float32`.
    Float32s(Vec<f32>),
    /// Lines of text.
    Texts(Vec<String>),
}

impl fmt::Display for ParameterValue {
    /// As Python writes it; the first values of a long list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(flag) => f.write_str(if *flag { "True" } else { "False" }),
            Self::Int(int) => write!(f, "{int}"),
            Self::Float(float) => write!(f, "{float:?}"),
            Self::Float32(float) => write!(f, "{float:?}"),
            Self::Text(text) => write_text(f, text),
            Self::Ints(ints) => write_list(f, ints, |f, int| write!(f, "{int}")),
            Self::Floats(floats) => write_list(f, floats, |f, float| write!(f, "{float:?}")),
            Self::Float32s(floats) => write_list(f, floats, |f, float| write!(f, "{float:?}")),
            Self::Texts(texts) => write_list(f, texts, |f, text| write_text(f, text)),
        }
    }
}

/// The most characters of a text, and the most values of a list, that an error shows.
const SHOWN: (usize, usize) = (60, 6);

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let shown: String = text.chars().take(SHOWN.0).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    write!(f, "'{shown}{more}'")
}

fn write_list<T>(
    f: &mut fmt::Formatter<'_>,
    values: &[T],
    write: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    f.write_str("[")?;
    for (at, value) in values.iter().take(SHOWN.1).enumerate() {
        f.write_str(if at == 0 { "" } else { ", " })?;
        write(f, value)?;
    }
    if values.len() > SHOWN.1 {
        return write!(f, ", …] ({} values)", values.len());
    }
    f.write_str("]")
}

/// A type that a parameter may have.
pub trait Parameter {
    /// Its value.
    fn get(&self) -> ParameterValue;

    /// Sets it to another value.
    ///
    /// # Errors
    ///
    /// [`Error::BadParameter`] when it cannot have this value; then it keeps its old one.
    fn set(&mut self, value: ParameterValue) -> Result<(), Error>;
}

/// An [`Error::BadParameter`] for a value of the wrong kind.
pub fn wrong(expected: &str, got: &ParameterValue) -> Error {
    Error::BadParameter(format!("must be {expected}, got {got}"))
}

impl Parameter for f64 {
    fn get(&self) -> ParameterValue {
        ParameterValue::Float(*self)
    }

    #[expect(clippy::cast_precision_loss, reason = "as in Python's own arithmetic")]
    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        *self = match value {
            ParameterValue::Float(float) => float,
            ParameterValue::Float32(float) => float.into(),
            ParameterValue::Int(int) => int as f64,
            got => return Err(wrong("a number", &got)),
        };
        Ok(())
    }
}

impl Parameter for f32 {
    fn get(&self) -> ParameterValue {
        ParameterValue::Float32(*self)
    }

    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as in NumPy")]
    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        *self = match value {
            ParameterValue::Float32(float) => float,
            ParameterValue::Float(float) => float as f32,
            ParameterValue::Int(int) => int as f32,
            got => return Err(wrong("a number", &got)),
        };
        Ok(())
    }
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Parameter for $type {
            fn get(&self) -> ParameterValue {
                ParameterValue::Int(i64::try_from(*self).unwrap_or(i64::MAX))
            }

            fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
                let ParameterValue::Int(int) = value else {
                    return Err(wrong("an integer", &value));
                };
                *self = Self::try_from(int).map_err(|_| wrong(concat!("an integer of ", stringify!($type)), &value))?;
                Ok(())
            }
        }
    )*};
}

integers! { i64 u32 usize }

impl Parameter for bool {
    fn get(&self) -> ParameterValue {
        ParameterValue::Bool(*self)
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let ParameterValue::Bool(flag) = value else {
            return Err(wrong("a truth value", &value));
        };
        *self = flag;
        Ok(())
    }
}

impl<T: Parameter + Default> Parameter for Option<T> {
    fn get(&self) -> ParameterValue {
        self.as_ref().map_or(ParameterValue::None, T::get)
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        *self = match value {
            ParameterValue::None => None,
            value => {
                let mut inner = T::default();
                inner.set(value)?;
                Some(inner)
            }
        };
        Ok(())
    }
}

impl<const N: usize> Parameter for [f64; N] {
    fn get(&self) -> ParameterValue {
        ParameterValue::Floats(self.to_vec())
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        #[expect(clippy::cast_precision_loss, reason = "as in Python's own arithmetic")]
        let floats = match &value {
            ParameterValue::Floats(floats) => floats.clone(),
            ParameterValue::Float32s(floats) => floats.iter().map(|&float| float.into()).collect(),
            ParameterValue::Ints(ints) => ints.iter().map(|&int| int as f64).collect(),
            _ => return Err(wrong(&format!("{N} numbers"), &value)),
        };
        let floats = floats.as_slice().try_into();
        *self = floats.map_err(|_| wrong(&format!("{N} numbers"), &value))?;
        Ok(())
    }
}

/// Constants of an environment that have a standard value: rows share it until they differ.
///
/// It has the size of a pointer in each row, so that a step reads the row's state and little else.
/// Fields are read through it directly. The first mutable borrow of a field gives the row its own
/// constants; [`Tuned::settle`] drops these again if they equal the standard ones.
///
/// ```
/// use cartwheel_engine::env::{Standard, Tuned};
///
/// #[derive(Debug, Clone, PartialEq)]
/// struct Physics {
///     gravity: f64,
/// }
///
/// impl Standard for Physics {
///     const STANDARD: &'static Self = &Self { gravity: 9.8 };
/// }
///
/// let mut physics = Tuned::<Physics>::default();
/// for (gravity, is_standard) in [(1.6, false), (9.8, true)] {
///     physics.gravity = gravity;
///     physics.settle(); // in `Env::parameters_changed`
///     assert_eq!(physics.is_standard(), is_standard);
/// }
/// ```
#[derive(Debug)]
pub struct Tuned<T: Standard>(Option<Box<T>>);

/// The standard value of [`Tuned`] constants.
pub trait Standard: Clone + PartialEq + fmt::Debug + 'static {
    /// The value.
    const STANDARD: &'static Self;
}

impl<T: Standard> Tuned<T> {
    /// Whether the constants are the standard ones, shared: never borrowed mutably, or settled
    /// since.
    #[inline]
    pub fn is_standard(&self) -> bool {
        self.0.is_none()
    }

    /// Shares the standard constants again if the row's own ones are the same: a value was refused,
    /// or the standard value was set.
    pub fn settle(&mut self) {
        // Compared as text, because a negative zero differs from zero, and such a constant may
        // decide a bit of a result.
        let is_standard =
            |own: &T| own == T::STANDARD && format!("{own:?}") == format!("{:?}", T::STANDARD);
        self.0.take_if(|own| is_standard(own));
    }
}

impl<T: Standard> Default for Tuned<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Standard> Clone for Tuned<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Standard> Deref for Tuned<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::STANDARD)
    }
}

impl<T: Standard> DerefMut for Tuned<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(|| Box::new(T::STANDARD.clone()))
    }
}

/// Names the parameters of an environment, inside its `impl Env`: each is a field, or a field of a
/// field.
///
/// ```ignore
/// cartwheel_engine::parameters! { gravity: physics.gravity, length: physics.length }
/// ```
#[macro_export]
macro_rules! parameters {
    ($($name:ident: $field:ident $(. $rest:tt)*),+ $(,)?) => {
        fn parameters() -> &'static [&'static str] {
            &[$(stringify!($name)),+]
        }

        fn parameter(&self, name: &str) -> Option<&dyn $crate::env::Parameter> {
            Some(match name {
                $(stringify!($name) => &self.$field$(.$rest)*,)+
                _ => return None,
            })
        }

        fn parameter_mut(&mut self, name: &str) -> Option<&mut dyn $crate::env::Parameter> {
            Some(match name {
                $(stringify!($name) => &mut self.$field$(.$rest)*,)+
                _ => return None,
            })
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Wind(f64);

    impl Standard for Wind {
        const STANDARD: &'static Self = &Self(0.0);
    }

    #[test]
    fn constants_that_differ_in_a_bit_are_not_shared() {
        let mut wind = Tuned::<Wind>::default();
        (*wind).0 = -0.0;
        wind.settle();
        assert!(!wind.is_standard() && (*wind).0.is_sign_negative());
        (*wind).0 = 0.0;
        wind.settle();
        assert!(wind.is_standard());
    }
}
