//! Observations of many rows, in place.

use std::fmt;

use crate::env::View;

/// Observations of the rows of a batch, in place: nothing is copied.
///
/// `V` is the type [`Env::Observation`](crate::Env::Observation), whose table in [`View`] says what
/// a row is.
pub struct Observations<'a, V: View> {
    rows: V::Rows<'a>,
    len: usize,
}

impl<V: View> fmt::Debug for Observations<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observations").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<'a, V: View> Observations<'a, V> {
    pub(super) fn new(rows: V::Rows<'a>, len: usize) -> Self {
        Self { rows, len }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The observation in place `at`.
    ///
    /// # Panics
    ///
    /// When there is no such place.
    #[inline]
    pub fn row(&self, at: usize) -> V::Ref<'a> {
        assert!(at < self.len, "place {at} of {}", self.len);
        V::row(&self.rows, at)
    }

    /// Every observation, in the order of their places.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = V::Ref<'a>> + '_ {
        (0..self.len).map(|at| V::row(&self.rows, at))
    }

    /// All rows at once, leaf by leaf: `&[i64]` for `i64`, `&[[f32; 4]]` for `[f32; 4]`, all elements
    /// for [`Flat`](crate::Flat), and a tuple of these for tuples and types of
    /// [`view!`](crate::view).
    pub fn columns(&self) -> V::Columns<'a> {
        V::columns(&self.rows)
    }
}
