//! Texts: observations of a length that differs from row to row, in rows of one size.
//!
//! A row has the number of its bytes as a native `u32`, then the text in UTF-8, then zeros.

use std::collections::BTreeSet;

/// Bytes of the number that precedes a text.
const TEXT_LENGTH_BYTES: usize = 4;

/// Most bytes that a row may reserve: more are a mistake, since each batch has them for each row.
const MAX_BYTES: usize = 1 << 16;

/// `Text(max_length, min_length=min_length, charset=charset)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSpace {
    /// The fewest characters.
    pub min_length: usize,
    /// The most characters.
    pub max_length: usize,
    /// The characters that may occur, each once.
    pub charset: String,
}

impl TextSpace {
    /// Bytes of one row: those of the longest text, and of its length.
    pub fn row_bytes(&self) -> usize {
        let widest = self.charset.chars().map(char::len_utf8).max().unwrap_or(1);
        self.max_length.saturating_mul(widest).saturating_add(TEXT_LENGTH_BYTES)
    }

    /// The text of a row; `None` if the bytes are not one.
    pub fn read(row: &[u8]) -> Option<&str> {
        let (length, text) = row.split_first_chunk()?;
        let length = usize::try_from(u32::from_ne_bytes(*length)).ok()?;
        std::str::from_utf8(text.get(..length)?).ok()
    }

    /// Writes a text into a row.
    ///
    /// # Panics
    ///
    /// When the text is longer than the row.
    pub fn write(row: &mut [u8], text: &str) {
        let (length, place) =
            row.split_first_chunk_mut::<TEXT_LENGTH_BYTES>().expect("a row begins with its length");
        let (bytes, capacity) = (text.as_bytes(), place.len());
        assert!(
            bytes.len() <= capacity,
            "a text of {} bytes in a space of {capacity}: {text:?}",
            bytes.len()
        );
        let count = u32::try_from(bytes.len()).expect("a row has fewer bytes");
        let (place, rest) = place.split_at_mut(bytes.len());
        *length = count.to_ne_bytes();
        place.copy_from_slice(bytes);
        rest.fill(0);
    }

    /// The first reason why `text` does not belong to the space, in words.
    pub fn misfit(&self, text: &str) -> Option<String> {
        let length = text.chars().count();
        if !(self.min_length..=self.max_length).contains(&length) {
            let (low, high) = (self.min_length, self.max_length);
            return Some(format!("has {length} characters, expected {low} to {high}: {text:?}"));
        }
        let strange = text.chars().find(|&character| !self.charset.contains(character))?;
        Some(format!("has {strange:?}, which is not in the charset: {text:?}"))
    }

    /// Checks that Gymnasium accepts the space.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self { min_length, max_length, charset } = self;
        if *max_length == 0 || min_length > max_length || self.row_bytes() > MAX_BYTES {
            return Err(format!(
                "has texts of {min_length} to {max_length} characters, expected at least 1 and at \
                 most {MAX_BYTES} bytes"
            ));
        }
        let characters: BTreeSet<char> = charset.chars().collect();
        if characters.is_empty() || characters.len() < charset.chars().count() {
            return Err(format!("has a charset that is empty or repeats a character: {charset:?}"));
        }
        Ok(())
    }
}
