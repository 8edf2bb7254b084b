//! Parameters: the attributes of an environment that `get_attr` and `set_attr` reach by name.

use cartwheel_core::{DType, Error};

use super::cell::{Cell, bytes_of};
use super::value::{ParameterArray, ParameterValue};
use crate::options::FLOAT32;

/// A type that a parameter may have: all numbers, `bool`, `String`, arrays and vectors of them,
/// `Option` of them, and what an author adds.
///
/// Numbers become Python's own, except that a `f32` becomes a `np.float32`. Arrays and vectors of
/// numbers become NumPy arrays, those of other values lists. `None` is Python's.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` is not the value of a parameter",
    label = "this type does not implement `Parameter`",
    note = "numbers, `bool`, `String`, arrays, vectors and `Option` of them are; a type of your own, such as \
            an enum, implements `Parameter`"
)]
pub trait Parameter {
    /// Its value.
    fn get(&self) -> ParameterValue;

    /// Sets it to another value.
    ///
    /// # Errors
    ///
    /// [`Error::BadParameter`] when it cannot have this value; then it keeps its old one.
    fn set(&mut self, value: ParameterValue) -> Result<(), Error>;

    /// The value of several together: a list, unless they are numbers.
    #[doc(hidden)]
    fn get_all(parameters: &[Self]) -> ParameterValue
    where
        Self: Sized,
    {
        ParameterValue::List(parameters.iter().map(Self::get).collect())
    }

    /// The plural in an error.
    #[doc(hidden)]
    fn plural() -> &'static str
    where
        Self: Sized,
    {
        "values"
    }
}

/// An [`Error::BadParameter`] for a value of the wrong kind.
pub fn wrong(expected: &str, got: &ParameterValue) -> Error {
    Error::BadParameter(format!("must be {expected}, got {got}"))
}

/// The value of several numbers together.
fn array<C: Cell>(numbers: &[C]) -> ParameterValue {
    let elements = bytes_of(numbers).to_vec();
    ParameterValue::Array(ParameterArray::new(C::DTYPE, &[numbers.len()], elements))
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
            ParameterValue::Unsigned(number) => number as f64,
            got => return Err(wrong("a number", &got)),
        };
        Ok(())
    }

    fn get_all(parameters: &[Self]) -> ParameterValue {
        array(parameters)
    }

    fn plural() -> &'static str {
        "numbers"
    }
}

impl Parameter for f32 {
    fn get(&self) -> ParameterValue {
        ParameterValue::Float32(*self)
    }

    #[expect(clippy::cast_possible_truncation, reason = "rounding is wanted")]
    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        if let ParameterValue::Float32(float) = value {
            *self = float;
            return Ok(());
        }
        let mut wide = 0.0_f64;
        wide.set(value)?;
        let rounded = wide as f32;
        if rounded.is_infinite() && wide.is_finite() {
            return Err(wrong(FLOAT32, &wide.get()));
        }
        *self = rounded;
        Ok(())
    }

    fn get_all(parameters: &[Self]) -> ParameterValue {
        array(parameters)
    }

    fn plural() -> &'static str {
        "numbers"
    }
}

macro_rules! integers {
    ($($type:ident as $cell:ident)*) => {$(
        impl Parameter for $type {
            fn get(&self) -> ParameterValue {
                match i64::try_from(*self) {
                    Ok(int) => ParameterValue::Int(int),
                    Err(_) => u64::try_from(*self).expect("it exceeds `i64`").into(),
                }
            }

            fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
                let set = match value {
                    ParameterValue::Int(int) => Self::try_from(int).ok(),
                    ParameterValue::Unsigned(number) => Self::try_from(number).ok(),
                    _ => return Err(wrong("an integer", &value)),
                };
                let range = || format!("an integer from {} to {}", Self::MIN, Self::MAX);
                *self = set.ok_or_else(|| wrong(&range(), &value))?;
                Ok(())
            }

            fn get_all(parameters: &[Self]) -> ParameterValue {
                let cells: Vec<$cell> = parameters.iter().map(|&number| number as $cell).collect();
                array(&cells)
            }

            fn plural() -> &'static str {
                "numbers"
            }
        }
    )*};
}

mod integers {
    use super::{Error, Parameter, ParameterValue, array, wrong};

    integers! {
        i8 as i8 i16 as i16 i32 as i32 i64 as i64 isize as i64
        u8 as u8 u16 as u16 u32 as u32 u64 as u64 usize as u64
    }
}

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

    fn get_all(parameters: &[Self]) -> ParameterValue {
        array(parameters)
    }
}

impl Parameter for String {
    fn get(&self) -> ParameterValue {
        ParameterValue::Text(self.clone())
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let ParameterValue::Text(text) = value else {
            return Err(wrong("text", &value));
        };
        *self = text;
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

impl<T: Parameter + Default> Parameter for Vec<T> {
    fn get(&self) -> ParameterValue {
        T::get_all(self)
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let parts = value.parts().ok_or_else(|| wrong("a list or an array", &value))?;
        let set = |(at, part)| {
            let mut inner = T::default();
            inner.set(part).map_err(|error| element(at, &error)).map(|()| inner)
        };
        *self = parts.into_iter().enumerate().map(set).collect::<Result<_, _>>()?;
        Ok(())
    }
}

impl<T: Parameter + Clone, const N: usize> Parameter for [T; N] {
    fn get(&self) -> ParameterValue {
        T::get_all(self)
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let parts = value.parts().filter(|parts| parts.len() == N);
        let parts = parts.ok_or_else(|| wrong(&format!("{N} {}", T::plural()), &value))?;
        let mut new = self.clone();
        for (at, (inner, part)) in new.iter_mut().zip(parts).enumerate() {
            inner.set(part).map_err(|error| element(at, &error))?;
        }
        *self = new;
        Ok(())
    }

    /// Arrays of arrays are arrays of two dimensions.
    fn get_all(parameters: &[Self]) -> ParameterValue {
        let values: Vec<ParameterValue> = parameters.iter().map(Self::get).collect();
        stacked(&values).unwrap_or(ParameterValue::List(values))
    }
}

/// One array of arrays of the same kind; `None` when there are none.
fn stacked(values: &[ParameterValue]) -> Option<ParameterValue> {
    let mut kind: Option<(DType, &[usize])> = None;
    let mut elements = Vec::new();
    for value in values {
        let ParameterValue::Array(array) = value else { return None };
        let this = (array.dtype(), array.shape());
        if *kind.get_or_insert(this) != this {
            return None;
        }
        elements.extend_from_slice(array.elements());
    }
    let (dtype, shape) = kind?;
    let shape: Vec<usize> = std::iter::once(values.len()).chain(shape.iter().copied()).collect();
    Some(ParameterValue::Array(ParameterArray::new(dtype, &shape, elements)))
}

/// The error of one element of a list.
fn element(at: usize, error: &Error) -> Error {
    Error::BadParameter(format!("element {at} {error}"))
}

/// Names the parameters of an environment, inside its `impl Env`: each is a field, or a field of a
/// field.
///
/// ```ignore
/// cartwheel::parameters! { gravity: physics.gravity, length: physics.length }
/// ```
#[macro_export]
macro_rules! parameters {
    ($($name:ident: $field:ident $(. $rest:tt)*),+ $(,)?) => {
        fn parameters() -> &'static [&'static str] {
            const { &[$($crate::__private::name(::core::stringify!($name))),+] }
        }

        fn parameter(&self, name: &str) -> ::core::option::Option<&dyn $crate::Parameter> {
            $(if name == $crate::__private::name(::core::stringify!($name)) {
                return ::core::option::Option::Some(&self.$field$(.$rest)*);
            })+
            ::core::option::Option::None
        }

        fn parameter_mut(&mut self, name: &str) -> ::core::option::Option<&mut dyn $crate::Parameter> {
            $(if name == $crate::__private::name(::core::stringify!($name)) {
                return ::core::option::Option::Some(&mut self.$field$(.$rest)*);
            })+
            ::core::option::Option::None
        }
    };
}
