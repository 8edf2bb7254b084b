//! Saved states: an environment as bytes, to the last bit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cartwheel_abi::RandomStream;

use crate::{Failure, Rng};

/// A type whose values are saved as bytes and loaded again, to the last bit: all numbers, `bool`, `char`,
/// `String`, `()`, [`Rng`], arrays and vectors of them, `VecDeque`, `BTreeMap` and `BTreeSet`, `Option`
/// and `Box` of them, tuples, and what an author adds. A `HashMap` has no order, so its bytes would
/// differ from one run to the next.
///
/// [`state!`](crate::state) saves and loads the fields of an environment, and makes structs and enums
/// such types. Bytes are little-endian.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be saved in a state",
    label = "this type does not implement `State`",
    note = "`cartwheel::state!` implements it for a struct whose fields do, and for an enum without \
            fields; other types implement `State` themselves"
)]
pub trait State: Sized {
    /// Appends the value.
    fn save(&self, state: &mut Vec<u8>);

    /// Takes a value off the front.
    ///
    /// # Errors
    ///
    /// A [`Failure`] for bytes that no value has.
    fn load(state: &mut &[u8]) -> Result<Self, Failure>;
}

/// The failure of bytes that end too early.
fn short() -> Failure {
    Failure::new("the state ends too early: it is of another environment, or was cut")
}

macro_rules! numbers {
    ($($type:ident)*) => {$(
        impl State for $type {
            fn save(&self, state: &mut Vec<u8>) {
                state.extend_from_slice(&self.to_le_bytes());
            }

            fn load(state: &mut &[u8]) -> Result<Self, Failure> {
                let (bytes, rest) = state.split_first_chunk().ok_or_else(short)?;
                *state = rest;
                Ok(Self::from_le_bytes(*bytes))
            }
        }
    )*};
}

numbers! { i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 }

impl State for () {
    fn save(&self, _: &mut Vec<u8>) {}

    fn load(_: &mut &[u8]) -> Result<Self, Failure> {
        Ok(())
    }
}

impl State for usize {
    fn save(&self, state: &mut Vec<u8>) {
        (*self as u64).save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        Self::try_from(u64::load(state)?).map_err(Failure::from)
    }
}

impl State for isize {
    fn save(&self, state: &mut Vec<u8>) {
        (*self as i64).save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        Self::try_from(i64::load(state)?).map_err(Failure::from)
    }
}

impl State for bool {
    fn save(&self, state: &mut Vec<u8>) {
        u8::from(*self).save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        match u8::load(state)? {
            0 => Ok(false),
            1 => Ok(true),
            byte => Err(Failure::new(format!("a truth value is saved as {byte}"))),
        }
    }
}

macro_rules! collections {
    ($([$($generics:tt)*] $type:ty, $value:ty;)*) => {$(
        impl<$($generics)*> State for $type {
            fn save(&self, state: &mut Vec<u8>) {
                self.len().save(state);
                for value in self {
                    value.save(state);
                }
            }

            fn load(state: &mut &[u8]) -> Result<Self, Failure> {
                // Collected one by one: a length that is wrong must not allocate.
                (0..usize::load(state)?).map(|_| <$value>::load(state)).collect()
            }
        }
    )*};
}

collections! {
    [T: State] Vec<T>, T;
    [T: State] VecDeque<T>, T;
    [T: State + Ord] BTreeSet<T>, T;
}

impl<K: State + Ord, V: State> State for BTreeMap<K, V> {
    fn save(&self, state: &mut Vec<u8>) {
        self.len().save(state);
        for (key, value) in self {
            key.save(state);
            value.save(state);
        }
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        (0..usize::load(state)?).map(|_| <(K, V)>::load(state)).collect()
    }
}

impl<T: State> State for Box<T> {
    fn save(&self, state: &mut Vec<u8>) {
        T::save(self, state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        T::load(state).map(Self::new)
    }
}

impl State for char {
    fn save(&self, state: &mut Vec<u8>) {
        u32::from(*self).save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let code = u32::load(state)?;
        Self::from_u32(code)
            .ok_or_else(|| Failure::new(format!("a character is saved as {code:#x}")))
    }
}

/// A stream of an environment's own, beyond the one that `reset` and `step` get: it continues with the
/// same numbers.
impl State for Rng {
    fn save(&self, state: &mut Vec<u8>) {
        let RandomStream { state: at, increment, half, has_half } = self.stream();
        (at, increment, half, has_half).save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let (at, increment, half, has_half) = State::load(state)?;
        let stream = RandomStream { state: at, increment, half, has_half };
        if stream.increment[0].is_multiple_of(2) || stream.has_half > 1 {
            return Err(Failure::new("a stream of random numbers is saved as something else"));
        }
        Ok(Self::from_stream(stream))
    }
}

impl<T: State, const N: usize> State for [T; N] {
    fn save(&self, state: &mut Vec<u8>) {
        for value in self {
            value.save(state);
        }
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let values = (0..N).map(|_| T::load(state)).collect::<Result<Vec<T>, _>>()?;
        values.try_into().map_err(|_| short())
    }
}

impl State for String {
    fn save(&self, state: &mut Vec<u8>) {
        self.len().save(state);
        state.extend_from_slice(self.as_bytes());
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let len = usize::load(state)?;
        let (text, rest) = state.split_at_checked(len).ok_or_else(short)?;
        *state = rest;
        Ok(std::str::from_utf8(text)?.to_owned())
    }
}

impl<T: State> State for Option<T> {
    fn save(&self, state: &mut Vec<u8>) {
        self.is_some().save(state);
        if let Some(value) = self {
            value.save(state);
        }
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        bool::load(state)?.then(|| T::load(state)).transpose()
    }
}

macro_rules! tuples {
    ($($name:ident $at:tt),+) => {
        impl<$($name: State),+> State for ($($name,)+) {
            fn save(&self, state: &mut Vec<u8>) {
                $(self.$at.save(state);)+
            }

            fn load(state: &mut &[u8]) -> Result<Self, Failure> {
                Ok(($($name::load(state)?,)+))
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);

/// Saves and loads the fields of a struct: inside an `impl Env`, or as an `impl State for`; or an enum
/// without fields, as an `impl State for enum`.
///
/// Name every field that changes in an episode or by a parameter: what is not named keeps the value
/// that the loading row has. A value is loaded completely or not at all. The fields of a tuple struct
/// are named by their numbers, `impl State for Range { 0, 1 }`. A variant is saved as its place in the
/// list, which has all of them.
///
/// ```
/// #[derive(Debug, PartialEq)]
/// enum Tile {
///     Floor,
///     Wall,
/// }
///
/// #[derive(Debug, PartialEq)]
/// struct Position {
///     x: f64,
///     visited: Vec<Tile>,
/// }
///
/// cartwheel::state! { impl State for enum Tile { Floor, Wall } }
/// cartwheel::state! { impl State for Position { x, visited } }
///
/// use cartwheel::State;
///
/// let position = Position { x: -0.0, visited: vec![Tile::Wall] };
/// let mut bytes = Vec::new();
/// position.save(&mut bytes);
/// assert_eq!(Position::load(&mut bytes.as_slice()).unwrap(), position);
/// ```
#[macro_export]
macro_rules! state {
    (impl State for enum $type:ty { $($variant:ident),+ $(,)? }) => {
        const _: () = {
            /// The number of each variant, of which a byte has 256.
            #[repr(u8)]
            enum Number {
                $($variant),+
            }

            impl $crate::State for $type {
                fn save(&self, state: &mut ::std::vec::Vec<u8>) {
                    let number = match self {
                        $(Self::$variant => Number::$variant),+
                    };
                    $crate::State::save(&(number as u8), state);
                }

                fn load(
                    state: &mut &[u8],
                ) -> ::core::result::Result<Self, $crate::Failure> {
                    let number: u8 = $crate::State::load(state)?;
                    $(if number == Number::$variant as u8 {
                        return ::core::result::Result::Ok(Self::$variant);
                    })+
                    ::core::result::Result::Err($crate::Failure::new(::std::format!(
                        "a {} is saved as {number}",
                        ::core::stringify!($type),
                    )))
                }
            }
        };
    };
    (impl State for $type:ty { $($field:tt),+ $(,)? }) => {
        impl $crate::State for $type {
            fn save(&self, state: &mut ::std::vec::Vec<u8>) {
                $($crate::State::save(&self.$field, state);)+
            }

            fn load(
                state: &mut &[u8],
            ) -> ::core::result::Result<Self, $crate::Failure> {
                ::core::result::Result::Ok(Self { $($field: $crate::State::load(state)?),+ })
            }
        }
    };
    ($($field:ident),+ $(,)?) => {
        const SAVES: bool = true;

        fn save(&self, state: &mut ::std::vec::Vec<u8>) {
            $($crate::State::save(&self.$field, state);)+
        }

        fn load(&mut self, state: &[u8]) -> ::core::result::Result<(), $crate::Failure> {
            let rest = &mut { state };
            $(let $field = $crate::State::load(rest)?;)+
            $crate::__private::all_read(rest)?;
            $(self.$field = $field;)+
            ::core::result::Result::Ok(())
        }
    };
}

/// Refuses a state that is longer than what was loaded.
#[doc(hidden)]
pub fn all_read(rest: &[u8]) -> Result<(), Failure> {
    if rest.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("the state has {} bytes too many", rest.len())))
}
