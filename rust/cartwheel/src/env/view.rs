//! Views: actions and observations as Rust types, in place.
//!
//! | type named by an environment | space | in `observe` | in `step` | owned |
//! |---|---|---|---|---|
//! | `i64`, `f32`, `bool`, … | `Discrete` (`i64`); a `Box` without dimensions | `&mut i64` | `i64` | `i64` |
//! | `[f32; 4]`, `[[u8; 8]; 8]`, … | a `Box` of that shape, `MultiDiscrete`, `MultiBinary` | `&mut [f32; 4]` | `&[f32; 4]` | `[f32; 4]` |
//! | [`Flat<u8>`] | the same, of a shape that the options decide | `&mut [u8]` | `&[u8]` | `Vec<u8>` |
//! | [`Floats`](super::Floats) | a `Box` of `float32`, whose actions may be `float64` | `&mut [f32]` | [`FloatsRef`](super::FloatsRef) | itself |
//! | [`Either<A, B>`](super::Either) | that of `A` or that of `B`, as the options decide; only of observations | `Either` of both | `Either` of both | `Either` of both |
//! | [`Text`](super::Text) | `Text`, only of observations | [`TextMut`](super::TextMut) | `&str` | `String` |
//! | `(i64, [f32; 2])`, up to twelve | `Tuple`, `Dict` in the order of its keys | `(&mut i64, &mut [f32; 2])` | `(i64, &[f32; 2])` | `(i64, [f32; 2])` |
//! | a type made by [`view!`](crate::view) | `Dict` with the names of its fields as keys | a struct of references | a struct of references | the type itself |
//!
//! Nothing is copied: the references point at the row's place in the batch. Only who steps
//! environments from Rust has owned values: actions.

use std::fmt;
use std::marker::PhantomData;

use cartwheel_core::space::Space;
use cartwheel_core::{Error, Leaf};

use super::cell::{Cell, Slot};
use super::leaves::{Leaves, LeavesMut};
use super::wanted::{Wanted, shown};
use crate::sealed::Sealed;

/// A Rust view of the leaves of a space. Implemented for the types above; [`view!`](crate::view)
/// makes more. Sealed: there are no others.
///
/// ```compile_fail,E0277
/// fn discrete<A: cartwheel::View>() {}
///
/// discrete::<i64>();
/// discrete::<usize>(); // `usize` is not a type of actions or observations: a Discrete is `i64`
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of actions or observations",
    label = "this type has no space",
    note = "a Discrete is `i64`, a Box an array of its element type such as `[f32; 4]`, an array whose \
            shape depends on the options `Flat<f32>`, a Tuple a tuple, and a Dict a type that \
            `cartwheel::view!` makes, each of at most twelve parts: more are nested"
)]
pub trait View: Sealed + 'static {
    /// Rows, for writing.
    type RowsMut<'a>;
    /// One row, for writing.
    type Mut<'a>;
    /// Rows, for reading.
    type Rows<'a>;
    /// One row, for reading.
    type Ref<'a>;
    /// Rows, for reading, leaf by leaf: a slice, or a tuple of slices.
    type Columns<'a>;
    /// One row that owns its memory.
    type Owned: Clone + fmt::Debug + PartialEq + Send + Sync + 'static;

    /// The space that the view needs.
    fn wanted() -> Wanted;

    /// Whether the leaves begin with those of the view, by their dtypes and shapes; it takes them.
    #[doc(hidden)]
    fn matches(leaves: &mut &[Leaf]) -> bool;

    /// Takes the leaves of rows, for writing.
    #[doc(hidden)]
    fn rows_mut<'a>(leaves: &mut LeavesMut<'_, 'a>) -> Self::RowsMut<'a>;

    /// One of these rows.
    #[doc(hidden)]
    fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> Self::Mut<'a>;

    /// Takes the leaves of rows, for reading.
    #[doc(hidden)]
    fn rows<'a>(leaves: &mut Leaves<'_, 'a>) -> Self::Rows<'a>;

    /// One of these rows.
    #[doc(hidden)]
    fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a>;

    /// All of these rows.
    #[doc(hidden)]
    fn columns<'a>(rows: &Self::Rows<'a>) -> Self::Columns<'a>;

    /// A copy of one row.
    fn owned(row: Self::Ref<'_>) -> Self::Owned;

    /// Stores values, leaf after leaf.
    #[doc(hidden)]
    fn store<'v, S: Store>(
        values: impl Iterator<Item = &'v Self::Owned> + Clone,
        into: &mut S,
    ) -> Result<(), S::Error>;
}

/// Checks that `V` fits `space`, which `what` names in the message.
///
/// # Errors
///
/// [`Error::BadOptions`]: the environment declares a space that its types do not fit.
pub(crate) fn check<V: View>(what: &str, space: &Space) -> Result<(), Error> {
    let wanted = V::wanted();
    if wanted.fits(space) {
        let leaves = space.leaves();
        let mut rest = leaves.as_slice();
        if V::matches(&mut rest) && rest.is_empty() {
            return Ok(());
        }
        return Err(Error::bad_options(format!(
            "the {what} type sees {wanted}, and the leaves of the {what} space begin with those of a \
             choice that is not the space's: put the other choice first"
        )));
    }
    let remedy = wanted.remedy(space).map_or_else(String::new, |remedy| format!(": {remedy}"));
    let space = shown(space);
    Err(Error::bad_options(format!(
        "the {what} type sees {wanted}; the {what} space has {space}{remedy}"
    )))
}

/// Takes the elements of rows, one leaf after the other.
#[doc(hidden)]
pub trait Store {
    /// The reason to refuse a leaf.
    type Error;

    /// Takes the next leaf: the elements of each row.
    fn leaf<'v, C: Cell>(&mut self, rows: impl Iterator<Item = &'v [C]>)
    -> Result<(), Self::Error>;
}

macro_rules! view_of_cells {
    ([$($generics:tt)*] $type:ty, $ref:ty, $slot:ident => $get:expr) => {
        impl<$($generics)*> View for $type {
            type RowsMut<'a> = &'a mut [Slot<Self>];
            type Mut<'a> = &'a mut Self;
            type Rows<'a> = &'a [Slot<Self>];
            type Ref<'a> = $ref;
            type Columns<'a> = &'a [Self];
            type Owned = Self;

            fn wanted() -> Wanted {
                let shape = <Self as Cell>::SHAPE;
                Wanted::Array(<Self as Cell>::DTYPE, Some(shape.lengths().to_vec()))
            }

            fn matches(leaves: &mut &[Leaf]) -> bool {
                leaves.split_off_first().is_some_and(|leaf| {
                    leaf.dtype == <Self as Cell>::DTYPE
                        && leaf.shape == <Self as Cell>::SHAPE.lengths()
                })
            }

            fn rows_mut<'a>(leaves: &mut LeavesMut<'_, 'a>) -> Self::RowsMut<'a> {
                leaves.cells()
            }

            #[inline]
            fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> Self::Mut<'a> {
                rows[row].get_mut()
            }

            fn rows<'a>(leaves: &mut Leaves<'_, 'a>) -> Self::Rows<'a> {
                leaves.cells()
            }

            #[inline]
            fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a> {
                let $slot = rows[row].get();
                $get
            }

            fn columns<'a>(rows: &Self::Rows<'a>) -> Self::Columns<'a> {
                Slot::slice(rows)
            }

            fn owned($slot: Self::Ref<'_>) -> Self {
                $slot.clone()
            }

            fn store<'v, S: Store>(
                values: impl Iterator<Item = &'v Self> + Clone,
                into: &mut S,
            ) -> Result<(), S::Error> {
                into.leaf(values.map(std::slice::from_ref))
            }
        }
    };
}

view_of_cells!([] bool, bool, cell => *cell);
view_of_cells!([] i8, i8, cell => *cell);
view_of_cells!([] i16, i16, cell => *cell);
view_of_cells!([] i32, i32, cell => *cell);
view_of_cells!([] i64, i64, cell => *cell);
view_of_cells!([] u8, u8, cell => *cell);
view_of_cells!([] u16, u16, cell => *cell);
view_of_cells!([] u32, u32, cell => *cell);
view_of_cells!([] u64, u64, cell => *cell);
view_of_cells!([] f32, f32, cell => *cell);
view_of_cells!([] f64, f64, cell => *cell);
view_of_cells!([C: Cell, const N: usize] [C; N], &'a Self, cell => cell);

/// An array whose shape depends on the options, as its elements, row-major.
#[derive(Debug)]
pub struct Flat<T>(PhantomData<fn() -> T>);

impl<T> Sealed for Flat<T> {}

impl<T: Cell<Element = T>> View for Flat<T> {
    type RowsMut<'a> = (&'a mut [Slot<T>], usize);
    type Mut<'a> = &'a mut [T];
    type Rows<'a> = (&'a [Slot<T>], usize);
    type Ref<'a> = &'a [T];
    type Columns<'a> = &'a [T];
    type Owned = Vec<T>;

    fn wanted() -> Wanted {
        Wanted::Array(T::DTYPE, None)
    }

    fn matches(leaves: &mut &[Leaf]) -> bool {
        leaves.split_off_first().is_some_and(|leaf| leaf.dtype == T::DTYPE)
    }

    fn rows_mut<'a>(leaves: &mut LeavesMut<'_, 'a>) -> Self::RowsMut<'a> {
        leaves.elements()
    }

    #[inline]
    fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> Self::Mut<'a> {
        let length = rows.1;
        Slot::slice_mut(&mut rows.0[row * length..(row + 1) * length])
    }

    fn rows<'a>(leaves: &mut Leaves<'_, 'a>) -> Self::Rows<'a> {
        leaves.elements()
    }

    #[inline]
    fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a> {
        Slot::slice(&rows.0[row * rows.1..(row + 1) * rows.1])
    }

    fn columns<'a>(rows: &Self::Rows<'a>) -> Self::Columns<'a> {
        Slot::slice(rows.0)
    }

    fn owned(row: Self::Ref<'_>) -> Vec<T> {
        row.to_vec()
    }

    fn store<'v, S: Store>(
        values: impl Iterator<Item = &'v Vec<T>> + Clone,
        into: &mut S,
    ) -> Result<(), S::Error> {
        into.leaf(values.map(Vec::as_slice))
    }
}

macro_rules! view_of_tuples {
    ($($name:ident $at:tt),+) => {
        impl<$($name: View),+> Sealed for ($($name,)+) {}

        impl<$($name: View),+> View for ($($name,)+) {
            type RowsMut<'a> = ($($name::RowsMut<'a>,)+);
            type Mut<'a> = ($($name::Mut<'a>,)+);
            type Rows<'a> = ($($name::Rows<'a>,)+);
            type Ref<'a> = ($($name::Ref<'a>,)+);
            type Columns<'a> = ($($name::Columns<'a>,)+);
            type Owned = ($($name::Owned,)+);

            fn wanted() -> Wanted {
                Wanted::Tuple(vec![$($name::wanted()),+])
            }

            fn matches(leaves: &mut &[Leaf]) -> bool {
                $($name::matches(leaves))&&+
            }

            fn rows_mut<'a>(leaves: &mut LeavesMut<'_, 'a>) -> Self::RowsMut<'a> {
                ($($name::rows_mut(leaves),)+)
            }

            #[inline]
            fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> Self::Mut<'a> {
                ($($name::row_mut(&mut rows.$at, row),)+)
            }

            fn rows<'a>(leaves: &mut Leaves<'_, 'a>) -> Self::Rows<'a> {
                ($($name::rows(leaves),)+)
            }

            #[inline]
            fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a> {
                ($($name::row(&rows.$at, row),)+)
            }

            fn columns<'a>(rows: &Self::Rows<'a>) -> Self::Columns<'a> {
                ($($name::columns(&rows.$at),)+)
            }

            fn owned(row: Self::Ref<'_>) -> Self::Owned {
                ($($name::owned(row.$at),)+)
            }

            fn store<'v, S: Store>(
                values: impl Iterator<Item = &'v Self::Owned> + Clone,
                into: &mut S,
            ) -> Result<(), S::Error> {
                $($name::store(values.clone().map(|value| &value.$at), into)?;)+
                Ok(())
            }
        }
    };
}

view_of_tuples!(A 0);
view_of_tuples!(A 0, B 1);
view_of_tuples!(A 0, B 1, C 2);
view_of_tuples!(A 0, B 1, C 2, D 3);
view_of_tuples!(A 0, B 1, C 2, D 3, E 4);
view_of_tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
view_of_tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
view_of_tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
view_of_tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
view_of_tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
view_of_tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
view_of_tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);

/// Makes a view with up to twelve named parts, for `Dict` spaces: a part sees the key of its name.
/// The parts are in the order of the keys, which is alphabetic. A key that is a word of Rust is written
/// `r#move`, here and in the other macros.
///
/// The three names are the view, which is an owned row too; one row for writing; and one row for
/// reading. The columns of many rows are a tuple, in the order of the parts. The owned row implements `Debug`,
/// `Clone` and `PartialEq`, and a `#[derive(…)]` behind the comment derives more for it. Other
/// attributes are those of all three types.
///
/// ```
/// cartwheel::view! {
///     /// What the robot sees.
///     pub struct Sensors, SensorsMut, SensorsRef {
///         /// Pixels, row-major.
///         camera: cartwheel::Flat<u8>,
///         /// Metres.
///         position: [f32; 3],
///     }
/// }
///
/// fn observe(sensors: SensorsMut<'_>) {
///     sensors.camera.fill(0);
///     sensors.position[2] = 1.5;
/// }
/// ```
#[macro_export]
macro_rules! view {
    ($(#[doc = $doc:expr])* #[derive($($derived:path),+ $(,)?)] $($rest:tt)+) => {
        $crate::view! { @derive($($derived),+) $(#[doc = $doc])* $($rest)+ }
    };
    (
        $(@derive($($derived:path),+))?
        $(#[$meta:meta])*
        $vis:vis struct $view:ident, $mut:ident, $ref:ident {
            $($(#[$part_meta:meta])* $part:ident: $type:ty),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        $(#[derive($($derived),+)])?
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $view {
            $($(#[$part_meta])* pub $part: <$type as $crate::View>::Owned,)+
        }

        $(#[$meta])*
        /// One row, for writing in place.
        #[allow(missing_debug_implementations, reason = "the parts may have none")]
        #[allow(missing_docs, reason = "a part without documentation is reported once, for the view")]
        $vis struct $mut<'a> {
            $($(#[$part_meta])* pub $part: <$type as $crate::View>::Mut<'a>,)+
        }

        $(#[$meta])*
        /// One row, for reading in place.
        #[allow(missing_debug_implementations, reason = "the parts may have none")]
        #[allow(missing_docs, reason = "a part without documentation is reported once, for the view")]
        $vis struct $ref<'a> {
            $($(#[$part_meta])* pub $part: <$type as $crate::View>::Ref<'a>,)+
        }

        impl $crate::__private::Sealed for $view {}

        impl $crate::View for $view {
            type RowsMut<'a> = <($($type,)+) as $crate::View>::RowsMut<'a>;
            type Mut<'a> = $mut<'a>;
            type Rows<'a> = <($($type,)+) as $crate::View>::Rows<'a>;
            type Ref<'a> = $ref<'a>;
            type Columns<'a> = <($($type,)+) as $crate::View>::Columns<'a>;
            type Owned = Self;

            fn wanted() -> $crate::__private::Wanted {
                $crate::__private::Wanted::Dict(::std::vec![
                    $((
                        $crate::__private::name(::core::stringify!($part)),
                        <$type as $crate::View>::wanted(),
                    )),+
                ])
            }

            fn matches(leaves: &mut &[$crate::__private::Leaf]) -> bool {
                <($($type,)+) as $crate::View>::matches(leaves)
            }

            fn rows_mut<'a>(leaves: &mut $crate::__private::LeavesMut<'_, 'a>) -> Self::RowsMut<'a> {
                <($($type,)+) as $crate::View>::rows_mut(leaves)
            }

            #[inline]
            fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> Self::Mut<'a> {
                let ($($part,)+) = <($($type,)+) as $crate::View>::row_mut(rows, row);
                $mut { $($part),+ }
            }

            fn rows<'a>(leaves: &mut $crate::__private::Leaves<'_, 'a>) -> Self::Rows<'a> {
                <($($type,)+) as $crate::View>::rows(leaves)
            }

            #[inline]
            fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a> {
                let ($($part,)+) = <($($type,)+) as $crate::View>::row(rows, row);
                $ref { $($part),+ }
            }

            fn columns<'a>(rows: &Self::Rows<'a>) -> Self::Columns<'a> {
                <($($type,)+) as $crate::View>::columns(rows)
            }

            fn owned(row: Self::Ref<'_>) -> Self {
                $view { $($part: <$type as $crate::View>::owned(row.$part)),+ }
            }

            fn store<'v, S: $crate::__private::Store>(
                values: impl ::core::iter::Iterator<Item = &'v Self> + ::core::clone::Clone,
                into: &mut S,
            ) -> ::core::result::Result<(), S::Error> {
                $(<$type as $crate::View>::store(
                    ::core::iter::Iterator::map(::core::clone::Clone::clone(&values), |value| {
                        &value.$part
                    }),
                    into,
                )?;)+
                ::core::result::Result::Ok(())
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis struct $view:ident { $($parts:tt)* }) => {
        ::core::compile_error!(::core::concat!(
            "`view!` makes three types, for owning, writing and reading a row: `struct ",
            ::core::stringify!($view), ", ", ::core::stringify!($view), "Mut, ",
            ::core::stringify!($view), "Ref { … }`",
        ));
    };
}
