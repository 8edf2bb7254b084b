//! Observations whose form the options decide.

use cartwheel_core::Leaf;

use super::leaves::{Leaves, LeavesMut};
use super::view::{Store, View};
use super::wanted::Wanted;
use crate::sealed::Sealed;

/// One of two views: the options of an environment decide which, when they decide its observation
/// space. `observe` gets the place of the one that fits the space, readers an observation of it.
///
/// It is `Left` where the leaves of the space begin with those of `L`, by their dtypes and the shapes
/// that `L` fixes, so of two views that both begin so the longer one is the left. Choices nest, for
/// three forms and for parts of a `Dict`. An action cannot be one.
///
/// ```
/// use cartwheel::{DType, Either, Flat, Space};
///
/// cartwheel::view! {
///     /// What the robot sees and where it is.
///     pub struct Seen, SeenMut, SeenRef {
///         camera: Flat<u8>,
///         position: i64,
///     }
/// }
///
/// /// `Env::Observation` of a robot whose option `camera_only` leaves the position out.
/// type Observation = Either<Seen, Flat<u8>>;
///
/// fn space(camera_only: bool) -> Space {
///     let camera = Space::integer_box(DType::U8, &[8, 8, 3], 0, 255);
///     if camera_only {
///         return camera;
///     }
///     Space::dict([("camera", camera), ("position", Space::discrete(10))])
/// }
///
/// fn observe(place: Either<SeenMut<'_>, &mut [u8]>) {
///     let camera = match place {
///         Either::Left(seen) => {
///             *seen.position = 3;
///             seen.camera
///         }
///         Either::Right(camera) => camera,
///     };
///     camera.fill(0);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either<L, R> {
    /// The first.
    Left(L),
    /// The second.
    Right(R),
}

impl<L, R> Sealed for Either<L, R> {}

impl<L: View, R: View> View for Either<L, R> {
    type RowsMut<'a> = Either<L::RowsMut<'a>, R::RowsMut<'a>>;
    type Mut<'a> = Either<L::Mut<'a>, R::Mut<'a>>;
    type Rows<'a> = Either<L::Rows<'a>, R::Rows<'a>>;
    type Ref<'a> = Either<L::Ref<'a>, R::Ref<'a>>;
    type Columns<'a> = Either<L::Columns<'a>, R::Columns<'a>>;
    type Owned = Either<L::Owned, R::Owned>;

    fn wanted() -> Wanted {
        Wanted::Either(Box::new([L::wanted(), R::wanted()]), L::matches)
    }

    fn matches(leaves: &mut &[Leaf]) -> bool {
        let all = *leaves;
        if L::matches(leaves) {
            return true;
        }
        *leaves = all;
        R::matches(leaves)
    }

    fn rows_mut<'a>(leaves: &mut LeavesMut<'_, 'a>) -> Self::RowsMut<'a> {
        if L::matches(&mut leaves.kinds()) {
            Either::Left(L::rows_mut(leaves))
        } else {
            Either::Right(R::rows_mut(leaves))
        }
    }

    #[inline]
    fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> Self::Mut<'a> {
        match rows {
            Either::Left(rows) => Either::Left(L::row_mut(rows, row)),
            Either::Right(rows) => Either::Right(R::row_mut(rows, row)),
        }
    }

    fn rows<'a>(leaves: &mut Leaves<'_, 'a>) -> Self::Rows<'a> {
        if L::matches(&mut leaves.kinds()) {
            Either::Left(L::rows(leaves))
        } else {
            Either::Right(R::rows(leaves))
        }
    }

    #[inline]
    fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a> {
        match rows {
            Either::Left(rows) => Either::Left(L::row(rows, row)),
            Either::Right(rows) => Either::Right(R::row(rows, row)),
        }
    }

    fn columns<'a>(rows: &Self::Rows<'a>) -> Self::Columns<'a> {
        match rows {
            Either::Left(rows) => Either::Left(L::columns(rows)),
            Either::Right(rows) => Either::Right(R::columns(rows)),
        }
    }

    fn owned(row: Self::Ref<'_>) -> Self::Owned {
        match row {
            Either::Left(row) => Either::Left(L::owned(row)),
            Either::Right(row) => Either::Right(R::owned(row)),
        }
    }

    fn store<'v, S: Store>(
        _: impl Iterator<Item = &'v Self::Owned> + Clone,
        _: &mut S,
    ) -> Result<(), S::Error> {
        unreachable!("an action is not an `Either`: making its kind refuses it")
    }
}
