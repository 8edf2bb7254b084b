//! Options of environments and of resets: parsed from JSON, with errors that name them.

use std::fmt::Debug;

use cartwheel_core::Error as EnvError;
use serde::de::value::{Error as Stop, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Error, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

/// A number that a `f32` can be.
pub(crate) const FLOAT32: &str = "a number of float32, at most 3.4e38";

/// The most characters of a value that an error shows.
const SHOWN: usize = 60;

/// Options of an environment, from a JSON object; an empty text means the defaults.
///
/// # Errors
///
/// [`EnvError::BadOptions`] that names the option.
pub fn parse<T: DeserializeOwned + Default>(json: &str) -> Result<T, EnvError> {
    if json.trim().is_empty() {
        return Ok(T::default());
    }
    // Values have no lines and columns, which would be those of JSON that the caller never wrote.
    let value: Value = serde_json::from_str(json).map_err(EnvError::bad_options)?;
    T::deserialize(Finite(&value)).map_err(|error| {
        EnvError::BadOptions(match &value {
            Value::Object(options) => wrong_option::<T>(options, &error),
            _ => error.to_string(),
        })
    })
}

/// Documentation of an option, for listings such as `python -m cartwheel envs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionDoc {
    /// Its name.
    pub name: &'static str,
    /// Its default as JSON; `None` if it has no form in JSON.
    pub default: Option<String>,
    /// Its effect, with units, in one line.
    pub text: String,
}

/// The options of a constructor or of a reset: what [`options!`](crate::options!) makes, or a type that
/// derives `Deserialize` and has an empty `impl` of this trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a struct of options",
    label = "this type does not implement `EnvOptions`",
    note = "`cartwheel::options!` makes one, and `cartwheel::NoOptions` is one without options; a type that \
            derives `Debug`, `Default` and serde's `Deserialize` needs `impl cartwheel::EnvOptions for {Self} {{}}`"
)]
pub trait EnvOptions: DeserializeOwned + Default + Debug + Send + Sync + 'static {
    /// Documentation of the options, for listings such as `python -m cartwheel envs`. Those without
    /// an entry are listed by name.
    #[must_use]
    fn describe() -> Vec<OptionDoc> {
        Vec::new()
    }
}

/// A value that may have a form in JSON: the method of the type precedes that of [`NotJson`].
#[doc(hidden)]
#[derive(Debug)]
pub struct AsJson<'a, T>(pub &'a T);

impl<T: Serialize + DeserializeOwned> AsJson<'_, T> {
    /// JSON that is read as a `T` again: for a number that is not finite, serde writes `null`.
    #[must_use]
    pub fn json(&self) -> Option<String> {
        serde_json::to_string(self.0).ok().filter(|json| serde_json::from_str::<T>(json).is_ok())
    }
}

/// See [`AsJson`].
#[doc(hidden)]
pub trait NotJson {
    fn json(&self) -> Option<String> {
        None
    }
}

impl<T> NotJson for AsJson<'_, T> {}

/// Documentation of all fields of a `T`, in their order, under the names that serde knows: an attribute of serde
/// may have renamed a field.
#[doc(hidden)]
#[must_use]
pub fn as_serde_names<T: DeserializeOwned>(mut docs: Vec<OptionDoc>) -> Vec<OptionDoc> {
    let names = names_of::<T>();
    if names.len() == docs.len() {
        docs.iter_mut().zip(names).for_each(|(doc, name)| doc.name = name);
    }
    docs
}

/// A comment of several lines in one line.
#[doc(hidden)]
#[must_use]
pub fn one_line(comment: &str) -> String {
    comment.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names of the fields of a `T`, which derives `Deserialize`; one empty name for a type without
/// named fields, such as a map.
pub(crate) fn names_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    struct Names<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Names<'_> {
        type Error = Stop;

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Stop> {
            *self.0 = fields;
            Err(Stop::custom("the names are known"))
        }

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
            Err(Stop::custom("this type has no named fields"))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let mut names: &[&str] = &[""];
    let stopped = T::deserialize(Names(&mut names));
    debug_assert!(stopped.is_err(), "this deserializer has no values");
    names
}

/// The option and its wrong value, if the error is about the type of a value or a choice; else the
/// error.
fn wrong_option<T: for<'de> Deserialize<'de>>(
    options: &Map<String, Value>,
    error: &serde_json::Error,
) -> String {
    let text = error.to_string();
    let is_wrong = |entry: &(&String, &Value)| {
        let alone = Map::from_iter([(entry.0.clone(), entry.1.clone())]);
        let refused = T::deserialize(Finite(&Value::Object(alone)));
        refused.is_err_and(|error| error.to_string() == text) // it may lack another option, too
    };
    let expected = text.rsplit_once(", expected ").map(|(_, expected)| expected);
    match (options.iter().find(is_wrong), expected) {
        (Some((name, value @ Value::String(_))), Some(choices))
            if text.starts_with("unknown variant ") =>
        {
            format!("`{name}` must be {}, got {}", choices.replace('`', "'"), shown(value))
        }
        (Some((name, value)), Some(expected)) if text.starts_with("invalid ") => {
            let expected = match expected {
                "f32" | "f64" => "a number",
                "i8" => "a whole number from -128 to 127",
                "i16" => "a whole number from -32768 to 32767",
                "i32" => "a whole number from -2147483648 to 2147483647",
                "i64" | "isize" => "a whole number",
                "u8" => "a whole number from 0 to 255",
                "u16" => "a whole number from 0 to 65535",
                "u32" => "a whole number from 0 to 4294967295",
                "u64" | "usize" => "a whole number that is not negative",
                "a boolean" => "True or False",
                "string or map" => "a string", // one of the choices of an enum
                "a sequence" => "a list",
                "a tuple of size 3" => "3 numbers",
                other => other.strip_suffix(" in sequence").unwrap_or(other), // "2 elements"
            };
            format!("`{name}` must be {expected}, got {}", shown(value))
        }
        _ => text,
    }
}

/// Options whose numbers are finite in the types that take them: serde would make a `f32` of `1e40`
/// infinite, and JSON has no infinity.
#[derive(Clone, Copy)]
struct Finite<'v>(&'v Value);

impl<'de> Deserializer<'de> for Finite<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::Array(parts) => {
                SeqDeserializer::new(parts.iter().map(Finite)).deserialize_any(visitor)
            }
            Value::Object(parts) => {
                let parts = parts.iter().map(|(name, part)| (name.as_str(), Finite(part)));
                MapDeserializer::new(parts).deserialize_any(visitor)
            }
            other => other.deserialize_any(visitor),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "to see what becomes of it")]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0.as_f64() {
            Some(number) if (number as f32).is_infinite() => {
                Err(Error::invalid_value(Unexpected::Float(number), &FLOAT32))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, serde_json::Error> for Finite<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// A value as Python writes it, abbreviated.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => format!("'{text}'"),
        other => other.to_string(),
    };
    let first: String = text.chars().take(SHOWN).collect();
    if first.len() < text.len() { first + "…" } else { first }
}

/// Makes options: a struct whose fields are keywords, each with its default value after `=`, or that
/// of its type.
///
/// Unknown keywords, and values of another type, are errors that name them. Attributes of serde, such as
/// `#[serde(rename = "lambda")]`, may follow the comment of a field; derive `Deserialize` yourself where a
/// struct needs more of serde. The comments of the fields are the documentation that
/// [`EnvOptions::describe`] returns.
///
/// ```
/// use cartwheel::EnvOptions;
///
/// cartwheel::options! {
///     /// Keywords of `make_vec`.
///     pub struct Options {
///         /// Metres.
///         length: f64 = 0.5,
///         /// Whether the wind blows.
///         windy: bool,
///     }
/// }
///
/// let options = Options::default();
/// assert_eq!((options.length, options.windy), (0.5, false));
/// let length = &Options::describe()[0];
/// assert_eq!((length.name, length.text.as_str()), ("length", "Metres."));
/// assert_eq!(length.default.as_deref(), Some("0.5"));
/// ```
#[macro_export]
macro_rules! options {
    (
        $(#[$meta:meta])*
        $vis:vis struct $options:ident {
            $($(#[$($field_meta:tt)*])* $field:ident: $type:ty $(= $default:expr)?),+ $(,)?
        }
    ) => {
        // Serde takes the path of its crate as a text, in which `$crate` has no meaning.
        #[allow(unused_imports, clippy::wildcard_imports, reason = "once for several structs")]
        use $crate::__private::names_for_serde::*;

        #[derive(Debug, Clone, $crate::__private::serde::Deserialize)]
        #[serde(crate = "__cartwheel_serde", deny_unknown_fields, default)]
        $(#[$meta])*
        $vis struct $options { $($(#[$($field_meta)*])* pub $field: $type,)+ }

        impl $crate::EnvOptions for $options {
            fn describe() -> ::std::vec::Vec<$crate::OptionDoc> {
                #[allow(unused_imports, reason = "for types that are not JSON")]
                use $crate::__private::NotJson as _;

                let options = <Self as ::core::default::Default>::default();
                $crate::__private::as_serde_names::<Self>(::std::vec![$($crate::OptionDoc {
                    name: $crate::__private::name(stringify!($field)),
                    default: $crate::__private::AsJson(&options.$field).json(),
                    text: $crate::__private::one_line(
                        concat!($($crate::__comment!($($field_meta)*),)* ""),
                    ),
                },)+])
            }
        }

        impl ::core::default::Default for $options {
            fn default() -> Self {
                Self { $($field: $crate::__default!($($default)?),)+ }
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis struct $options:ident { }) => {
        ::core::compile_error!("options without fields are `cartwheel::NoOptions`");
    };
}

/// The text of an attribute that is a comment.
#[doc(hidden)]
#[macro_export]
macro_rules! __comment {
    (doc = $text:literal) => {
        $text
    };
    ($($other:tt)*) => {
        ""
    };
}

/// The default of a field of options.
#[doc(hidden)]
#[macro_export]
macro_rules! __default {
    () => {
        ::core::default::Default::default()
    };
    ($default:expr) => {
        $default
    };
}
