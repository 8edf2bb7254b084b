//! Floats of the dtype that the caller passed: an action that is `float32` or `float64`.

use std::borrow::Cow;

use cartwheel_core::{DType, Leaf};

use super::cell::Slot;
use super::leaves::{FloatSlots, Leaves, LeavesMut};
use super::view::{Store, View};
use super::wanted::Wanted;
use crate::sealed::Sealed;

/// An action whose dtype the caller chooses: the space is a `Box` of `float32` of any shape, and the
/// elements are `float32` or `float64`, as they were passed. Other floats and integers are cast to
/// `float32`.
///
/// For environments whose results depend on it: a sum of squares that is rounded to `float32`
/// differs from one that is not. As an observation it is a [`Flat<f32>`](super::Flat).
///
/// It is an owned row, too. Rows of one batch have one dtype: with a `float64` row among them, all
/// become `float64`, as by `numpy.stack`.
///
/// ```
/// # use cartwheel::FloatsRef;
/// /// The sum as the caller's dtype has it.
/// fn effort(action: FloatsRef<'_>) -> f64 {
///     match action {
///         FloatsRef::F32(action) => action.iter().map(|a| a * a).sum::<f32>().into(),
///         FloatsRef::F64(action) => action.iter().map(|a| a * a).sum(),
///     }
/// }
/// assert_eq!(effort(FloatsRef::F64(&[0.1])), 0.1 * 0.1);
/// assert_ne!(effort(FloatsRef::F32(&[0.1])), 0.1 * 0.1);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Floats {
    /// `float32` elements, row-major.
    F32(Vec<f32>),
    /// `float64` elements, row-major.
    F64(Vec<f64>),
}

/// One row of [`Floats`], for reading in place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FloatsRef<'a> {
    /// `float32` elements, row-major.
    F32(&'a [f32]),
    /// `float64` elements, row-major.
    F64(&'a [f64]),
}

impl FloatsRef<'_> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(elements) => elements.len(),
            Self::F64(elements) => elements.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as `float64`, which every `float32` is exactly.
    pub fn iter(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.len()).map(move |at| match self {
            Self::F32(elements) => elements[at].into(),
            Self::F64(elements) => elements[at],
        })
    }
}

impl Sealed for Floats {}

impl View for Floats {
    type RowsMut<'a> = (&'a mut [Slot<f32>], usize);
    type Mut<'a> = &'a mut [f32];
    type Rows<'a> = FloatSlots<'a>;
    type Ref<'a> = FloatsRef<'a>;
    type Columns<'a> = FloatsRef<'a>;
    type Owned = Self;

    fn wanted() -> Wanted {
        Wanted::Floats
    }

    fn matches(leaves: &mut &[Leaf]) -> bool {
        leaves.split_off_first().is_some_and(|leaf| leaf.dtype == DType::F32)
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
        leaves.floats()
    }

    #[inline]
    fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> Self::Ref<'a> {
        match *rows {
            FloatSlots::F32(slots, length) => {
                FloatsRef::F32(Slot::slice(&slots[row * length..(row + 1) * length]))
            }
            FloatSlots::F64(slots, length) => {
                FloatsRef::F64(Slot::slice(&slots[row * length..(row + 1) * length]))
            }
        }
    }

    fn columns<'a>(rows: &Self::Rows<'a>) -> Self::Columns<'a> {
        match *rows {
            FloatSlots::F32(slots, _) => FloatsRef::F32(Slot::slice(slots)),
            FloatSlots::F64(slots, _) => FloatsRef::F64(Slot::slice(slots)),
        }
    }

    fn owned(row: Self::Ref<'_>) -> Self {
        match row {
            FloatsRef::F32(elements) => Self::F32(elements.to_vec()),
            FloatsRef::F64(elements) => Self::F64(elements.to_vec()),
        }
    }

    fn store<'v, S: Store>(
        values: impl Iterator<Item = &'v Self> + Clone,
        into: &mut S,
    ) -> Result<(), S::Error> {
        let singles = values.clone().map_while(|value| match value {
            Self::F32(elements) => Some(elements.as_slice()),
            Self::F64(_) => None,
        });
        if singles.clone().count() == values.clone().count() {
            return into.leaf(singles);
        }
        let doubles: Vec<Cow<'_, [f64]>> = values
            .map(|value| match value {
                Self::F32(elements) => elements.iter().copied().map(f64::from).collect(),
                Self::F64(elements) => Cow::Borrowed(elements.as_slice()),
            })
            .collect();
        into.leaf(doubles.iter().map(|elements| &**elements))
    }
}
