//! Infos: what an environment reports besides observation, reward and flags, as a Rust type.

use crate::info::InfoWriter;
use crate::memory::{Cell, bytes_of};

/// An info: `()` for none, or a struct made by [`info!`](macro@crate::info).
pub trait Info {
    /// Whether the info is always empty; then nothing is ever written, and it costs nothing.
    const EMPTY: bool = false;

    /// Number of keys that [`Info::write`] writes.
    fn len(&self) -> usize;

    /// Whether the info is empty this time.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the keys and values.
    fn write(&self, writer: &mut InfoWriter);
}

impl Info for () {
    const EMPTY: bool = true;

    fn len(&self) -> usize {
        0
    }

    fn write(&self, _writer: &mut InfoWriter) {}
}

/// A value of an info.
///
/// `f64`, `i64`, `bool` and text become Python's own numbers and text; the other number types become
/// NumPy scalars, and arrays NumPy arrays. `None` is a key that the info does not have.
pub trait InfoValue {
    /// Whether the info has the key.
    fn is_there(&self) -> bool {
        true
    }

    /// Writes the value.
    fn write(&self, writer: &mut InfoWriter);
}

impl InfoValue for f64 {
    fn write(&self, writer: &mut InfoWriter) {
        writer.float(*self);
    }
}

impl InfoValue for i64 {
    fn write(&self, writer: &mut InfoWriter) {
        writer.int(*self);
    }
}

impl InfoValue for bool {
    fn write(&self, writer: &mut InfoWriter) {
        writer.bool(*self);
    }
}

impl InfoValue for &'static str {
    fn write(&self, writer: &mut InfoWriter) {
        writer.text(self);
    }
}

macro_rules! scalars {
    ($($type:ident)*) => {$(
        impl InfoValue for $type {
            fn write(&self, writer: &mut InfoWriter) {
                writer.scalar(<Self as Cell>::DTYPE, &self.to_ne_bytes());
            }
        }
    )*};
}

scalars! { i8 i16 i32 u8 u16 u32 u64 f32 }

impl<C: Cell, const N: usize> InfoValue for [C; N] {
    fn write(&self, writer: &mut InfoWriter) {
        writer.array(Self::DTYPE, Self::SHAPE.lengths(), bytes_of(self));
    }
}

impl<T: InfoValue> InfoValue for Option<T> {
    fn is_there(&self) -> bool {
        self.is_some()
    }

    fn write(&self, writer: &mut InfoWriter) {
        match self {
            Some(value) => value.write(writer),
            None => writer.none(),
        }
    }
}

/// Makes an info: a struct whose fields are its keys.
///
/// ```
/// cartwheel_engine::info! {
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

        impl $crate::env::Info for $info {
            fn len(&self) -> usize {
                0 $(+ usize::from($crate::env::InfoValue::is_there(&self.$key)))+
            }

            fn write(&self, writer: &mut $crate::info::InfoWriter) {
                $(if $crate::env::InfoValue::is_there(&self.$key) {
                    writer.key(stringify!($key));
                    $crate::env::InfoValue::write(&self.$key, writer);
                })+
            }
        }
    };
}
