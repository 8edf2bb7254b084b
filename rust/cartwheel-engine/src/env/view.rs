//! Views: actions and observations as Rust types, in place.
//!
//! | type named by an environment | space | in `observe` | in `step` |
//! |---|---|---|---|
//! | `i64`, `f32`, … | `Discrete`; a `Box` without dimensions | `&mut i64` | `i64` |
//! | `[f32; 4]`, `[[u8; 8]; 8]`, … | a `Box` of that shape, `MultiDiscrete`, `MultiBinary` | `&mut [f32; 4]` | `&[f32; 4]` |
//! | [`Flat<u8>`] | the same, of a shape that the options decide | `&mut [u8]` | `&[u8]` |
//! | `(i64, [f32; 2])`, up to eight | `Tuple`, `Dict` in the order of its keys | `(&mut i64, &mut [f32; 2])` | `(i64, &[f32; 2])` |
//! | a type made by [`view!`](crate::view) | `Dict` | a struct of references | a struct of references |
//!
//! Nothing is copied: the references point at the row's place in the batch.

use std::fmt;
use std::marker::PhantomData;

use crate::error::Error;
use crate::memory::{ActionColumns, Cell, SlabColumns, bytes_of};
use crate::space::{DType, Leaf};

/// How Rust sees the leaves of a space. Implemented for the types above; `view!` makes more.
pub trait View: 'static {
    /// The rows of a shard, for writing.
    type RowsMut<'a>;
    /// One row, for writing.
    type Mut<'a>;
    /// The rows of a shard, for reading.
    type Rows<'a>;
    /// One row, for reading.
    type Ref<'a>;

    /// Adds what the view needs from each leaf: its dtype, and its shape where that is fixed.
    fn wanted(wanted: &mut Vec<Wanted>);

    /// Takes the leaves of a shard, for writing.
    fn rows_mut<'a>(columns: &mut SlabColumns<'a>) -> Self::RowsMut<'a>;

    /// One of these rows, counted from the first row of the shard.
    fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> Self::Mut<'a>;

    /// Takes the leaves of a shard, for reading.
    ///
    /// # Errors
    ///
    /// [`Error::WrongActionDType`].
    fn rows<'a>(columns: &mut ActionColumns<'a>) -> Result<Self::Rows<'a>, Error>;

    /// One of these rows, counted from the first row of the shard.
    fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a>;

    /// The bytes of leaf `leaf` of a row that was written. If the view has no such leaf, returns
    /// `None`, after subtracting its number of leaves from `leaf`.
    fn bytes<'a>(rows: &'a Self::RowsMut<'_>, row: usize, leaf: &mut usize) -> Option<&'a [u8]>;
}

/// A leaf that a view needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Element type.
    pub dtype: DType,
    /// Shape of one row; `None` if any shape is accepted.
    pub shape: Option<Vec<usize>>,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shape {
            Some(shape) => write!(f, "{}{shape:?}", self.dtype.name()),
            None => write!(f, "{} of any shape", self.dtype.name()),
        }
    }
}

/// Checks that `V` fits `leaves`; `what` names them in the message.
///
/// # Errors
///
/// [`Error::BadOptions`]: the environment declares a space that its types do not fit.
pub(crate) fn check<V: View>(what: &str, leaves: &[Leaf]) -> Result<(), Error> {
    let mut wanted = Vec::new();
    V::wanted(&mut wanted);
    let fits = |(wanted, leaf): (&Wanted, &Leaf)| {
        wanted.dtype == leaf.dtype && wanted.shape.as_ref().is_none_or(|shape| *shape == leaf.shape)
    };
    if wanted.len() == leaves.len() && wanted.iter().zip(leaves).all(fits) {
        return Ok(());
    }
    let wanted: Vec<String> = wanted.iter().map(Wanted::to_string).collect();
    let got: Vec<String> =
        leaves.iter().map(|leaf| format!("{}{:?}", leaf.dtype.name(), leaf.shape)).collect();
    let (wanted, got) = (wanted.join(", "), got.join(", "));
    Err(Error::bad_options(format!("the {what} type sees {wanted}; the {what} space has {got}")))
}

/// Whether leaf `leaf` is the next one; if not, subtracts 1 from `leaf`.
fn this_leaf(leaf: &mut usize) -> bool {
    match leaf.checked_sub(1) {
        Some(rest) => {
            *leaf = rest;
            false
        }
        None => true,
    }
}

macro_rules! view_of_cells {
    ([$($generics:tt)*] $type:ty, $ref:ty, $row:ident => $get:expr) => {
        impl<$($generics)*> View for $type {
            type RowsMut<'a> = &'a mut [Self];
            type Mut<'a> = &'a mut Self;
            type Rows<'a> = &'a [Self];
            type Ref<'a> = $ref;

            fn wanted(wanted: &mut Vec<Wanted>) {
                let shape = Some(<Self as Cell>::SHAPE.lengths().to_vec());
                wanted.push(Wanted { dtype: <Self as Cell>::DTYPE, shape });
            }

            fn rows_mut<'a>(columns: &mut SlabColumns<'a>) -> Self::RowsMut<'a> {
                columns.leaf()
            }

            #[inline]
            fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> Self::Mut<'a> {
                &mut rows[row]
            }

            fn rows<'a>(columns: &mut ActionColumns<'a>) -> Result<Self::Rows<'a>, Error> {
                columns.leaf()
            }

            #[inline]
            fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a> {
                let $row = &rows[row];
                $get
            }

            fn bytes<'a>(
                rows: &'a Self::RowsMut<'_>,
                row: usize,
                leaf: &mut usize,
            ) -> Option<&'a [u8]> {
                this_leaf(leaf).then(|| bytes_of(&rows[row..=row]))
            }
        }
    };
}

view_of_cells!([] i8, i8, row => *row);
view_of_cells!([] i16, i16, row => *row);
view_of_cells!([] i32, i32, row => *row);
view_of_cells!([] i64, i64, row => *row);
view_of_cells!([] u8, u8, row => *row);
view_of_cells!([] u16, u16, row => *row);
view_of_cells!([] u32, u32, row => *row);
view_of_cells!([] u64, u64, row => *row);
view_of_cells!([] f32, f32, row => *row);
view_of_cells!([] f64, f64, row => *row);
view_of_cells!([C: Cell, const N: usize] [C; N], &'a Self, row => row);

/// An array whose shape depends on the options, as its elements, row-major.
#[derive(Debug)]
pub struct Flat<T>(PhantomData<fn() -> T>);

impl<T: Cell<Element = T>> View for Flat<T> {
    type RowsMut<'a> = (&'a mut [T], usize);
    type Mut<'a> = &'a mut [T];
    type Rows<'a> = (&'a [T], usize);
    type Ref<'a> = &'a [T];

    fn wanted(wanted: &mut Vec<Wanted>) {
        wanted.push(Wanted { dtype: T::DTYPE, shape: None });
    }

    fn rows_mut<'a>(columns: &mut SlabColumns<'a>) -> Self::RowsMut<'a> {
        columns.elements()
    }

    #[inline]
    fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> Self::Mut<'a> {
        let length = rows.1;
        &mut rows.0[row * length..(row + 1) * length]
    }

    fn rows<'a>(columns: &mut ActionColumns<'a>) -> Result<Self::Rows<'a>, Error> {
        columns.elements()
    }

    #[inline]
    fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a> {
        &rows.0[row * rows.1..(row + 1) * rows.1]
    }

    fn bytes<'a>(rows: &'a Self::RowsMut<'_>, row: usize, leaf: &mut usize) -> Option<&'a [u8]> {
        this_leaf(leaf).then(|| bytes_of(&rows.0[row * rows.1..(row + 1) * rows.1]))
    }
}

macro_rules! view_of_tuples {
    ($($name:ident $at:tt),+) => {
        impl<$($name: View),+> View for ($($name,)+) {
            type RowsMut<'a> = ($($name::RowsMut<'a>,)+);
            type Mut<'a> = ($($name::Mut<'a>,)+);
            type Rows<'a> = ($($name::Rows<'a>,)+);
            type Ref<'a> = ($($name::Ref<'a>,)+);

            fn wanted(wanted: &mut Vec<Wanted>) {
                $($name::wanted(wanted);)+
            }

            fn rows_mut<'a>(columns: &mut SlabColumns<'a>) -> Self::RowsMut<'a> {
                ($($name::rows_mut(columns),)+)
            }

            #[inline]
            fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> Self::Mut<'a> {
                ($($name::row_mut(&mut rows.$at, row),)+)
            }

            fn rows<'a>(columns: &mut ActionColumns<'a>) -> Result<Self::Rows<'a>, Error> {
                Ok(($($name::rows(columns)?,)+))
            }

            #[inline]
            fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a> {
                ($($name::row(&rows.$at, row),)+)
            }

            fn bytes<'a>(
                rows: &'a Self::RowsMut<'_>,
                row: usize,
                leaf: &mut usize,
            ) -> Option<&'a [u8]> {
                None$(.or_else(|| $name::bytes(&rows.$at, row, leaf)))+
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

/// Makes a view with named parts, for `Dict` spaces: the parts are in the order of the leaves.
///
/// The three names are the view, one row for writing, and one row for reading.
///
/// ```
/// cartwheel_engine::view! {
///     /// What the robot sees.
///     pub struct Sensors, SensorsMut, SensorsRef {
///         /// Pixels, row-major.
///         camera: cartwheel_engine::env::Flat<u8>,
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
    (
        $(#[$meta:meta])*
        $vis:vis struct $view:ident, $mut:ident, $ref:ident {
            $($(#[$part_meta:meta])* $part:ident: $type:ty),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $view;

        $(#[$meta])*
        /// One row, for writing in place.
        #[allow(missing_debug_implementations, reason = "the parts may have none")]
        $vis struct $mut<'a> {
            $($(#[$part_meta])* pub $part: <$type as $crate::env::View>::Mut<'a>,)+
        }

        $(#[$meta])*
        /// One row, for reading in place.
        #[allow(missing_debug_implementations, reason = "the parts may have none")]
        $vis struct $ref<'a> {
            $($(#[$part_meta])* pub $part: <$type as $crate::env::View>::Ref<'a>,)+
        }

        impl $crate::env::View for $view {
            type RowsMut<'a> = <($($type,)+) as $crate::env::View>::RowsMut<'a>;
            type Mut<'a> = $mut<'a>;
            type Rows<'a> = <($($type,)+) as $crate::env::View>::Rows<'a>;
            type Ref<'a> = $ref<'a>;

            fn wanted(wanted: &mut Vec<$crate::env::Wanted>) {
                <($($type,)+) as $crate::env::View>::wanted(wanted);
            }

            fn rows_mut<'a>(columns: &mut $crate::memory::SlabColumns<'a>) -> Self::RowsMut<'a> {
                <($($type,)+) as $crate::env::View>::rows_mut(columns)
            }

            #[inline]
            fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> Self::Mut<'a> {
                let ($($part,)+) = <($($type,)+) as $crate::env::View>::row_mut(rows, row);
                $mut { $($part),+ }
            }

            fn rows<'a>(
                columns: &mut $crate::memory::ActionColumns<'a>,
            ) -> ::core::result::Result<Self::Rows<'a>, $crate::Error> {
                <($($type,)+) as $crate::env::View>::rows(columns)
            }

            #[inline]
            fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a> {
                let ($($part,)+) = <($($type,)+) as $crate::env::View>::row(rows, row);
                $ref { $($part),+ }
            }

            fn bytes<'a>(
                rows: &'a Self::RowsMut<'_>,
                row: usize,
                leaf: &mut usize,
            ) -> Option<&'a [u8]> {
                <($($type,)+) as $crate::env::View>::bytes(rows, row, leaf)
            }
        }
    };
}
