//! Writes an info stream.

use super::format::{Kind, Tag};
use super::reader::InfoReader;
use crate::DType;

/// Where a record began, for [`InfoWriter::end`].
#[derive(Debug)]
#[must_use = "a record must be ended"]
pub struct RecordAt(usize);

/// Writes records into a buffer that keeps its capacity from task to task.
#[derive(Debug, Default)]
pub struct InfoWriter {
    stream: Vec<u8>,
}

impl InfoWriter {
    /// An empty stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the stream.
    pub fn clear(&mut self) {
        self.stream.clear();
    }

    /// What was written since the last [`InfoWriter::clear`].
    pub fn stream(&self) -> &[u8] {
        &self.stream
    }

    /// Begins a record of row `row`, counted from the start of the batch.
    ///
    /// # Panics
    ///
    /// When row or leaf exceed the limits of a stream (2³² rows, 2¹⁶ leaves).
    pub fn begin(&mut self, kind: Kind, row: usize, leaf: usize) -> RecordAt {
        let row = u32::try_from(row).expect("fewer than 2^32 rows");
        let leaf = u16::try_from(leaf).expect("fewer than 2^16 leaves");
        let start = self.stream.len();
        self.stream.push(kind as u8);
        self.stream.extend_from_slice(&row.to_le_bytes());
        self.stream.extend_from_slice(&leaf.to_le_bytes());
        self.stream.extend_from_slice(&[0; 4]);
        RecordAt(start)
    }

    /// Ends a record.
    pub fn end(&mut self, record: RecordAt) {
        let body = record.0 + 11;
        let bytes = length(self.stream.len() - body);
        self.stream[body - 4..body].copy_from_slice(&bytes);
    }

    /// Marks an [`Kind::Info`] record that holds a value of an unknown column.
    pub fn mark_irregular(&mut self, record: &RecordAt) {
        self.stream[record.0] = Kind::Irregular as u8;
    }

    /// Removes a record, with everything that was written since it began.
    pub fn cancel(&mut self, record: RecordAt) {
        self.stream.truncate(record.0);
    }

    /// Removes every record from the first one of row `row` on.
    pub fn forget(&mut self, row: usize) {
        let mut at = 0;
        while let Ok(Some(record)) = InfoReader::new(&self.stream, at).record() {
            if record.row == row {
                return self.stream.truncate(at);
            }
            at = record.end;
        }
    }

    /// Writes the key of the next value. Returns `false`, and writes nothing, when it is longer
    /// than 65,535 bytes.
    pub fn key(&mut self, key: &str) -> bool {
        let Ok(bytes) = u16::try_from(key.len()) else {
            return false;
        };
        self.stream.extend_from_slice(&bytes.to_le_bytes());
        self.stream.extend_from_slice(key.as_bytes());
        true
    }

    fn tag(&mut self, tag: Tag) {
        self.stream.push(tag as u8);
    }

    /// Nothing.
    pub fn none(&mut self) {
        self.tag(Tag::None);
    }

    /// A truth value.
    pub fn bool(&mut self, value: bool) {
        self.tag(if value { Tag::True } else { Tag::False });
    }

    /// An integer.
    pub fn int(&mut self, value: i64) {
        self.tag(Tag::Int);
        self.stream.extend_from_slice(&value.to_le_bytes());
    }

    /// A float.
    pub fn float(&mut self, value: f64) {
        self.tag(Tag::Float);
        self.stream.extend_from_slice(&value.to_le_bytes());
    }

    /// Text.
    pub fn text(&mut self, value: &str) {
        self.tag(Tag::Text);
        self.sized(value.as_bytes());
    }

    /// An array scalar: the bytes of one element.
    ///
    /// # Panics
    ///
    /// When `element` is not one element long.
    pub fn scalar(&mut self, dtype: DType, element: &[u8]) {
        assert_eq!(element.len(), dtype.size(), "one {} element", dtype.name());
        self.tag(Tag::Scalar);
        self.stream.push(dtype.tag());
        self.stream.extend_from_slice(element);
    }

    /// An array, row-major.
    ///
    /// # Panics
    ///
    /// When `elements` does not fill `shape`, or the shape exceeds the limits of a stream.
    pub fn array(&mut self, dtype: DType, shape: &[usize], elements: &[u8]) {
        self.fill_array(dtype, shape, |room| {
            assert_eq!(elements.len(), room.len(), "elements of shape {shape:?}");
            room.copy_from_slice(elements);
        });
    }

    /// An array, row-major, with elements that `fill` writes.
    ///
    /// # Panics
    ///
    /// When the shape exceeds the limits of a stream.
    pub fn fill_array(&mut self, dtype: DType, shape: &[usize], fill: impl FnOnce(&mut [u8])) {
        self.tag(Tag::Array);
        self.stream.push(dtype.tag());
        self.stream.push(u8::try_from(shape.len()).expect("arrays have at most 64 dimensions"));
        for &dimension in shape {
            self.stream.extend_from_slice(&length(dimension));
        }
        let first = self.stream.len();
        self.stream.resize(first + shape.iter().product::<usize>() * dtype.size(), 0);
        fill(&mut self.stream[first..]);
    }

    /// Begins a dictionary of `entries` keys and values.
    pub fn dict(&mut self, entries: usize) {
        self.tag(Tag::Dict);
        self.stream.extend_from_slice(&length(entries));
    }

    /// Begins a tuple of `values` values.
    pub fn tuple(&mut self, values: usize) {
        self.tag(Tag::Tuple);
        self.stream.extend_from_slice(&length(values));
    }

    /// Begins a list of `values` values.
    pub fn list(&mut self, values: usize) {
        self.tag(Tag::List);
        self.stream.extend_from_slice(&length(values));
    }

    /// Bytes that only the calling language can read.
    pub fn foreign(&mut self, bytes: &[u8]) {
        self.tag(Tag::Foreign);
        self.sized(bytes);
    }

    /// The number of an object that the shard holds.
    pub fn object(&mut self, number: usize) {
        self.tag(Tag::Object);
        self.stream.extend_from_slice(&length(number));
    }

    fn sized(&mut self, bytes: &[u8]) {
        self.stream.extend_from_slice(&length(bytes.len()));
        self.stream.extend_from_slice(bytes);
    }
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("lengths in an info stream are below 4 GiB").to_le_bytes()
}
