//! Texts as views: what a row says in words.

use std::fmt;

use cartwheel_core::space::TextSpace;
use cartwheel_core::{DType, Leaf};

use super::cell::Slot;
use super::leaves::{Leaves, LeavesMut};
use super::view::{Store, View};
use super::wanted::Wanted;
use crate::sealed::Sealed;

/// A text, of a `Text` space of observations: `observe` gets a [`TextMut`], readers get a `&str`.
///
/// ```
/// use cartwheel::{Space, Text, TextMut};
///
/// cartwheel::view! {
///     /// An observation: a dictionary with these keys.
///     pub struct Told, ToldMut, ToldRef {
///         /// What is to be done, at most 60 characters.
///         mission: Text,
///     }
/// }
///
/// fn space() -> Space {
///     Space::dict([("mission", Space::text(60, "abcdefghijklmnopqrstuvwxyz "))])
/// }
///
/// fn observe(mut told: ToldMut<'_>) {
///     told.mission.set("open the red door");
/// }
/// ```
#[derive(Debug)]
pub struct Text(());

/// The place of a row's text, for writing.
pub struct TextMut<'a>(&'a mut [u8]);

impl TextMut<'_> {
    /// Writes the text of the row.
    ///
    /// # Panics
    ///
    /// When it has more bytes than the longest text of the space.
    pub fn set(&mut self, text: &str) {
        TextSpace::write(self.0, text);
    }
}

impl fmt::Debug for TextMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TextMut").field(&TextSpace::read(self.0)).finish()
    }
}

/// The texts of many rows, for reading in place.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    bytes: &'a [u8],
    row_bytes: usize,
}

impl<'a> Texts<'a> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.row_bytes
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The text in place `at`; empty where the bytes are not a text.
    ///
    /// # Panics
    ///
    /// When there is no such place.
    pub fn row(&self, at: usize) -> &'a str {
        let row = &self.bytes[at * self.row_bytes..(at + 1) * self.row_bytes];
        TextSpace::read(row).unwrap_or_default()
    }

    /// Every text, in the order of the places.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        let own = *self;
        (0..self.len()).map(move |at| own.row(at))
    }
}

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Sealed for Text {}

impl View for Text {
    type RowsMut<'a> = (&'a mut [Slot<u8>], usize);
    type Mut<'a> = TextMut<'a>;
    type Rows<'a> = Texts<'a>;
    type Ref<'a> = &'a str;
    type Columns<'a> = Texts<'a>;
    type Owned = String;

    fn wanted() -> Wanted {
        Wanted::Text
    }

    fn matches(leaves: &mut &[Leaf]) -> bool {
        let is_text = |leaf: &Leaf| leaf.dtype == DType::U8 && leaf.shape.len() == 1;
        leaves.split_off_first().is_some_and(is_text)
    }

    fn rows_mut<'a>(leaves: &mut LeavesMut<'_, 'a>) -> Self::RowsMut<'a> {
        leaves.elements()
    }

    #[inline]
    fn row_mut<'a>(rows: &'a mut Self::RowsMut<'_>, row: usize) -> TextMut<'a> {
        let length = rows.1;
        TextMut(Slot::slice_mut(&mut rows.0[row * length..(row + 1) * length]))
    }

    fn rows<'a>(leaves: &mut Leaves<'_, 'a>) -> Texts<'a> {
        let (slots, row_bytes) = leaves.elements();
        Texts { bytes: Slot::slice(slots), row_bytes }
    }

    #[inline]
    fn row<'a>(rows: &Self::Rows<'a>, row: usize) -> &'a str {
        rows.row(row)
    }

    fn columns<'a>(rows: &Self::Rows<'a>) -> Texts<'a> {
        *rows
    }

    fn owned(row: &str) -> String {
        row.to_owned()
    }

    fn store<'v, S: Store>(
        _: impl Iterator<Item = &'v String> + Clone,
        _: &mut S,
    ) -> Result<(), S::Error> {
        unreachable!("an action is not a text: `Spaces::check` refuses it")
    }
}
