//! Writes an info stream.

use super::format::{MAX_DIMENSIONS, RecordKind, Tag};
use super::reader::InfoReader;
use crate::DType;

/// Bytes of a record before its body.
const HEAD: usize = 11;

/// The most bytes of a record's body, and of a text or a value that only the calling language can read.
pub const LARGEST_PART: usize = u32::MAX as usize;

/// Where a record began, for [`InfoWriter::end`].
#[derive(Debug)]
#[must_use = "a record must be ended"]
pub struct RecordAt(usize);

/// Bytes that grow at their end: a vector, or memory that someone else owns.
pub trait Buffer {
    /// The written bytes.
    fn bytes(&self) -> &[u8];

    /// The same, for changing it.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]);

    /// Appends `count` zeros, and returns them.
    fn append_zeros(&mut self, count: usize) -> &mut [u8];

    /// Keeps the first `len` bytes, or all of them if they are fewer.
    fn truncate(&mut self, len: usize);
}

impl Buffer for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn append_zeros(&mut self, count: usize) -> &mut [u8] {
        let first = self.len();
        self.resize(first + count, 0);
        &mut self[first..]
    }

    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }
}

/// Writes records, or single values, into a buffer.
#[derive(Debug, Default)]
pub struct InfoWriter<B: Buffer = Vec<u8>> {
    stream: B,
}

impl InfoWriter {
    /// An empty stream, in a vector that keeps its capacity from task to task.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<B: Buffer> InfoWriter<B> {
    /// Continues the stream in `buffer`.
    pub fn over(buffer: B) -> Self {
        Self { stream: buffer }
    }

    /// Empties the stream.
    pub fn clear(&mut self) {
        self.stream.truncate(0);
    }

    /// Removes what was written after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.stream.truncate(len);
    }

    /// The bytes written since the last [`InfoWriter::clear`].
    pub fn stream(&self) -> &[u8] {
        self.stream.bytes()
    }

    /// Appends records, or values, that were written elsewhere.
    pub fn append(&mut self, bytes: &[u8]) {
        self.stream.append(bytes);
    }

    /// Begins a record of row `row`, counted from the start of the batch.
    ///
    /// # Panics
    ///
    /// When row or leaf exceed the limits of a stream (2³² rows, 2¹⁶ leaves).
    pub fn begin(&mut self, kind: RecordKind, row: usize, leaf: usize) -> RecordAt {
        let row = u32::try_from(row).expect("fewer than 2^32 rows");
        let leaf = u16::try_from(leaf).expect("fewer than 2^16 leaves");
        let start = self.stream.bytes().len();
        let mut head = [0; HEAD];
        head[0] = kind as u8;
        head[1..5].copy_from_slice(&row.to_le_bytes());
        head[5..7].copy_from_slice(&leaf.to_le_bytes());
        self.stream.append(&head); // its last four bytes are the length, written at the end
        RecordAt(start)
    }

    /// Whether a record can be ended: its body has at most [`LARGEST_PART`] bytes.
    pub fn fits(&self, record: &RecordAt) -> bool {
        self.stream.bytes().len() - (record.0 + HEAD) <= LARGEST_PART
    }

    /// Ends a record.
    ///
    /// # Panics
    ///
    /// When it does not [fit](Self::fits).
    pub fn end(&mut self, record: RecordAt) {
        let body = record.0 + HEAD;
        let bytes = length(self.stream.bytes().len() - body);
        self.stream.bytes_mut()[body - 4..body].copy_from_slice(&bytes);
    }

    /// Marks an [`RecordKind::Info`] record that holds a value of an unknown column.
    pub fn mark_irregular(&mut self, record: &RecordAt) {
        self.stream.bytes_mut()[record.0] = RecordKind::Irregular as u8;
    }

    /// Ends a record whose values were `written`; otherwise removes it, with what there is of them.
    ///
    /// # Errors
    ///
    /// That of `written`.
    pub fn end_if<E>(&mut self, record: RecordAt, written: Result<(), E>) -> Result<(), E> {
        match written {
            Ok(()) => self.end(record),
            Err(_) => self.stream.truncate(record.0),
        }
        written
    }

    /// Removes every record from the first one of row `row` on.
    pub fn forget(&mut self, row: usize) {
        let mut at = 0;
        while let Ok(Some(record)) = InfoReader::new(self.stream.bytes(), at).record() {
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
        self.stream.append(&bytes.to_le_bytes());
        self.stream.append(key.as_bytes());
        true
    }

    fn tag(&mut self, tag: Tag) {
        self.stream.append(&[tag as u8]);
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
        self.stream.append(&value.to_le_bytes());
    }

    /// A float.
    pub fn float(&mut self, value: f64) {
        self.tag(Tag::Float);
        self.stream.append(&value.to_le_bytes());
    }

    /// Text.
    ///
    /// # Panics
    ///
    /// When it has more than [`LARGEST_PART`] bytes.
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
        self.stream.append(&[dtype.tag()]);
        self.stream.append(element);
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
        let dimensions = u8::try_from(shape.len()).ok();
        let dimensions = dimensions.filter(|&count| usize::from(count) <= MAX_DIMENSIONS);
        let dimensions = dimensions.expect("arrays have at most 63 dimensions");
        self.tag(Tag::Array);
        self.stream.append(&[dtype.tag(), dimensions]);
        for &dimension in shape {
            self.stream.append(&length(dimension));
        }
        fill(self.stream.append_zeros(shape.iter().product::<usize>() * dtype.size()));
    }

    /// Begins a dictionary of `entries` keys and values.
    pub fn dict(&mut self, entries: usize) {
        self.tag(Tag::Dict);
        self.stream.append(&length(entries));
    }

    /// Begins a tuple of `values` values.
    pub fn tuple(&mut self, values: usize) {
        self.tag(Tag::Tuple);
        self.stream.append(&length(values));
    }

    /// Begins a list of `values` values.
    pub fn list(&mut self, values: usize) {
        self.tag(Tag::List);
        self.stream.append(&length(values));
    }

    /// Bytes that only the calling language can read.
    ///
    /// # Panics
    ///
    /// When they are more than [`LARGEST_PART`].
    pub fn foreign(&mut self, bytes: &[u8]) {
        self.tag(Tag::Foreign);
        self.sized(bytes);
    }

    /// The number of an object that the shard holds.
    pub fn object(&mut self, number: usize) {
        self.tag(Tag::Object);
        self.stream.append(&length(number));
    }

    fn sized(&mut self, bytes: &[u8]) {
        self.stream.append(&length(bytes.len()));
        self.stream.append(bytes);
    }
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("lengths in an info stream are below 4 GiB").to_le_bytes()
}
