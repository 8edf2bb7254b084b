//! Infos: what an environment reports besides observation, reward and flags, as a Rust type.

use cartwheel_core::info::{Buffer, InfoWriter};

use super::cell::{Cell, Shape, bytes_of};
use crate::sealed::Sealed;

/// An info: `()` for none, or a struct made by [`info!`](macro@crate::info). Sealed: there are no
/// others.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an info",
    label = "this type has no keys",
    note = "an info is `()` for none, or a struct that `cartwheel::info!` makes"
)]
pub trait Info: Sealed {
    /// Whether the info is always empty; then nothing is ever written, and it costs nothing.
    const EMPTY: bool = false;

    /// Number of keys that [`Info::write`] writes.
    fn len(&self) -> usize;

    /// Whether the info is empty this time.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the keys and values.
    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>);
}

impl Sealed for () {}

impl Info for () {
    const EMPTY: bool = true;

    fn len(&self) -> usize {
        0
    }

    fn write<B: Buffer>(&self, _writer: &mut InfoWriter<B>) {}
}

/// A value of an info.
///
/// `f64`, `i64`, `usize`, `isize`, `bool` and text become Python's own numbers and text; the other number
/// types become NumPy scalars, and arrays and vectors of numbers NumPy arrays. Arrays and vectors of other
/// values become lists, an info in an info a dictionary. `None` is a key that the info does not have.
///
/// A batch has the arrays of a key as one array, so they must have one shape, in all rows and steps: a
/// vector of numbers whose length varies is a [`List`].
#[diagnostic::on_unimplemented(
    message = "a `{Self}` is not a value of an info",
    label = "this type is not written to infos",
    note = "numbers, `bool`, `char`, texts, arrays, vectors, `List` and `Option` of them are, and structs \
            that `cartwheel::info!` makes"
)]
pub trait InfoValue: Sized {
    /// Whether the info has the key.
    fn is_there(&self) -> bool {
        true
    }

    /// Writes the value.
    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>);

    /// Whether these are numbers, or arrays of numbers, which are written as one array.
    #[doc(hidden)]
    const NUMBERS: bool = false;

    /// Writes several values as one: a list, or, if they are numbers, an array of this shape.
    #[doc(hidden)]
    fn write_all<B: Buffer>(values: &[Self], shape: Shape, writer: &mut InfoWriter<B>) {
        let _ = shape;
        writer.list(values.len());
        for value in values {
            value.write(writer);
        }
    }
}

macro_rules! numbers {
    ($($type:ident $value:ident $writer:ident => $write:expr;)*) => {$(
        impl InfoValue for $type {
            #[inline]
            fn write<B: Buffer>(&self, $writer: &mut InfoWriter<B>) {
                let $value = *self;
                $write;
            }

            const NUMBERS: bool = true;

            #[inline]
            fn write_all<B: Buffer>(values: &[Self], shape: Shape, writer: &mut InfoWriter<B>) {
                writer.array(<Self as Cell>::DTYPE, shape.lengths(), bytes_of(values));
            }
        }
    )*};
}

numbers! {
    f64 value writer => writer.float(value);
    i64 value writer => writer.int(value);
    bool value writer => writer.bool(value);
    i8 value writer => writer.scalar(<Self as Cell>::DTYPE, &value.to_ne_bytes());
    i16 value writer => writer.scalar(<Self as Cell>::DTYPE, &value.to_ne_bytes());
    i32 value writer => writer.scalar(<Self as Cell>::DTYPE, &value.to_ne_bytes());
    u8 value writer => writer.scalar(<Self as Cell>::DTYPE, &value.to_ne_bytes());
    u16 value writer => writer.scalar(<Self as Cell>::DTYPE, &value.to_ne_bytes());
    u32 value writer => writer.scalar(<Self as Cell>::DTYPE, &value.to_ne_bytes());
    u64 value writer => writer.scalar(<Self as Cell>::DTYPE, &value.to_ne_bytes());
    f32 value writer => writer.scalar(<Self as Cell>::DTYPE, &value.to_ne_bytes());
}

macro_rules! sizes {
    ($($type:ident $value:ident => $as_int:expr;)*) => {$(
        impl InfoValue for $type {
            #[inline]
            fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
                let $value = *self;
                writer.int($as_int);
            }

            const NUMBERS: bool = true;

            fn write_all<B: Buffer>(values: &[Self], shape: Shape, writer: &mut InfoWriter<B>) {
                let ints: Vec<i64> = values.iter().map(|&$value| $as_int).collect();
                i64::write_all(&ints, shape, writer);
            }
        }
    )*};
}

sizes! {
    isize value => value as i64;
    usize value => value.cast_signed() as i64;
}

impl InfoValue for char {
    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        writer.text(self.encode_utf8(&mut [0; 4]));
    }
}

impl InfoValue for &'static str {
    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        writer.text(self);
    }
}

impl InfoValue for String {
    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        writer.text(self);
    }
}

impl<T: InfoValue> InfoValue for Vec<T> {
    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        T::write_all(self, Shape::vector(self.len()), writer);
    }
}

/// A list of values in an info, of any length: a `list` in Python, of numbers too.
///
/// ```
/// cartwheel::info! {
///     /// What a player holds.
///     pub struct Held {
///         /// The cards, whose number varies.
///         cards: cartwheel::List<i64>,
///     }
/// }
///
/// let held = Held { cards: vec![3, 11].into() };
/// assert_eq!(held.cards.0.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct List<T>(pub Vec<T>);

impl<T> From<Vec<T>> for List<T> {
    fn from(values: Vec<T>) -> Self {
        Self(values)
    }
}

impl<T: InfoValue> InfoValue for List<T> {
    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        writer.list(self.0.len());
        for value in &self.0 {
            value.write(writer);
        }
    }
}

impl<T: InfoValue, const N: usize> InfoValue for [T; N] {
    #[inline]
    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        T::write_all(self, Shape::vector(N), writer);
    }

    const NUMBERS: bool = T::NUMBERS;

    fn write_all<B: Buffer>(values: &[Self], shape: Shape, writer: &mut InfoWriter<B>) {
        if T::NUMBERS {
            return T::write_all(values.as_flattened(), shape.of_vectors(N), writer);
        }
        writer.list(values.len());
        for value in values {
            value.write(writer);
        }
    }
}

impl<T: InfoValue> InfoValue for Option<T> {
    fn is_there(&self) -> bool {
        self.is_some()
    }

    fn write<B: Buffer>(&self, writer: &mut InfoWriter<B>) {
        match self {
            Some(value) => value.write(writer),
            None => writer.none(),
        }
    }
}

/// Makes an info: a struct whose fields are its keys.
///
/// ```
/// cartwheel::info! {
///     /// How likely the last move was.
///     pub struct Likelihood {
///         /// Probability, absent after a reset.
///         prob: Option<f64>,
///     }
/// }
/// ```
#[macro_export]
macro_rules! info {
    (
        $(#[$meta:meta])*
        $vis:vis struct $info:ident { $($(#[$key_meta:meta])* $key:ident: $type:ty),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        $vis struct $info { $($(#[$key_meta])* pub $key: $type,)+ }

        impl $crate::__private::Sealed for $info {}

        impl $crate::Info for $info {
            fn len(&self) -> usize {
                0 $(+ usize::from($crate::InfoValue::is_there(&self.$key)))+
            }

            #[inline]
            fn write<B: $crate::Buffer>(&self, writer: &mut $crate::InfoWriter<B>) {
                $(if $crate::InfoValue::is_there(&self.$key) {
                    writer.key(const { $crate::__private::name(::core::stringify!($key)) });
                    $crate::InfoValue::write(&self.$key, writer);
                })+
            }
        }

        /// As a value of another info: a dictionary.
        impl $crate::InfoValue for $info {
            fn write<B: $crate::Buffer>(&self, writer: &mut $crate::InfoWriter<B>) {
                writer.dict($crate::Info::len(self));
                $crate::Info::write(self, writer);
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis struct $info:ident { }) => {
        ::core::compile_error!("an info without keys is `()`: `type Info = ();`");
    };
}
