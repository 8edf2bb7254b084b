//! Reads an info stream. Every length is checked: a stream comes from another process.

use super::format::{DEEPEST, MAX_DIMENSIONS, RecordKind, Tag};
use crate::DType;
use crate::error::Error;

/// A value in a stream, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// Text.
    Text(&'a str),
    /// An array scalar, as the bytes of its element.
    Scalar(DType, &'a [u8]),
    /// An array: dtype, dimensions (four little-endian bytes each), elements row-major.
    Array(DType, &'a [[u8; 4]], &'a [u8]),
    /// A dictionary, as the number of entries that follow.
    Dict(usize),
    /// A tuple, as the number of values that follow.
    Tuple(usize),
    /// A list, as the number of values that follow.
    List(usize),
    /// Bytes that only the calling language can read.
    Foreign(&'a [u8]),
    /// The number of an object that the shard holds.
    Object(usize),
}

/// A key, and the offset of its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InfoEntry<'a> {
    /// The key.
    pub key: &'a str,
    /// Offset of the value in the stream.
    pub value_at: usize,
}

/// One record: its values follow in the reader that returned it, up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The content.
    pub kind: RecordKind,
    /// The row, counted from the start of the batch.
    pub row: usize,
    /// The observation leaf of an [`RecordKind::Opaque`] record.
    pub leaf: usize,
    /// Offset of the first byte after it.
    pub end: usize,
}

/// A position in a stream.
#[derive(Debug, Clone, Copy)]
pub struct InfoReader<'a> {
    stream: &'a [u8],
    at: usize,
}

impl<'a> InfoReader<'a> {
    /// At offset `at` of `stream`: 0 for the first record, or the offset of a value.
    #[inline]
    pub fn new(stream: &'a [u8], at: usize) -> Self {
        Self { stream, at }
    }

    /// Offset of the next item.
    pub fn at(&self) -> usize {
        self.at
    }

    fn malformed(&self) -> Error {
        Error::MalformedInfo { at: self.at }
    }

    #[inline]
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.stream.len());
        let end = end.ok_or_else(|| self.malformed())?;
        let bytes = &self.stream[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.bytes(N)?;
        Ok(bytes.try_into().expect("as many bytes as were asked for"))
    }

    #[inline]
    fn length(&mut self) -> Result<usize, Error> {
        Ok(u32::from_le_bytes(self.fixed()?) as usize)
    }

    #[inline]
    fn dtype(&mut self) -> Result<DType, Error> {
        let [tag] = self.fixed()?;
        DType::from_tag(tag).ok_or_else(|| self.malformed())
    }

    #[inline]
    fn text(&mut self, length: usize) -> Result<&'a str, Error> {
        let bytes = self.bytes(length)?;
        std::str::from_utf8(bytes).map_err(|_| self.malformed())
    }

    /// The next record; `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// [`Error::MalformedInfo`] for a record that is truncated or of unknown kind.
    #[inline]
    pub fn record(&mut self) -> Result<Option<Record>, Error> {
        if self.at == self.stream.len() {
            return Ok(None);
        }
        let kind = match self.fixed()? {
            [0] => RecordKind::Info,
            [1] => RecordKind::Whole,
            [2] => RecordKind::Opaque,
            [3] => RecordKind::Irregular,
            _ => return Err(self.malformed()),
        };
        let row = self.length()?;
        let leaf = usize::from(u16::from_le_bytes(self.fixed()?));
        let body = self.length()?;
        let end = self.at.checked_add(body).filter(|&end| end <= self.stream.len());
        let end = end.ok_or_else(|| self.malformed())?;
        Ok(Some(Record { kind, row, leaf, end }))
    }

    /// The next key.
    ///
    /// # Errors
    ///
    /// [`Error::MalformedInfo`] when it is truncated or not UTF-8.
    #[inline]
    pub fn entry(&mut self) -> Result<InfoEntry<'a>, Error> {
        let length = usize::from(u16::from_le_bytes(self.fixed()?));
        let key = self.text(length)?;
        Ok(InfoEntry { key, value_at: self.at })
    }

    /// The next value. The parts of a dictionary, tuple or list follow by further calls.
    ///
    /// # Errors
    ///
    /// [`Error::MalformedInfo`] when it is truncated, has an unknown tag, or is an array of more than
    /// [`MAX_DIMENSIONS`] dimensions.
    #[inline]
    pub fn value(&mut self) -> Result<Value<'a>, Error> {
        let [tag] = self.fixed()?;
        let tag = Tag::from_byte(tag).ok_or_else(|| self.malformed())?;
        Ok(match tag {
            Tag::None => Value::None,
            Tag::False => Value::Bool(false),
            Tag::True => Value::Bool(true),
            Tag::Int => Value::Int(i64::from_le_bytes(self.fixed()?)),
            Tag::Float => Value::Float(f64::from_le_bytes(self.fixed()?)),
            Tag::Text => {
                let length = self.length()?;
                Value::Text(self.text(length)?)
            }
            Tag::Scalar => {
                let dtype = self.dtype()?;
                Value::Scalar(dtype, self.bytes(dtype.size())?)
            }
            Tag::Array => self.array()?,
            Tag::Dict => Value::Dict(self.length()?),
            Tag::Tuple => Value::Tuple(self.length()?),
            Tag::List => Value::List(self.length()?),
            Tag::Foreign => {
                let length = self.length()?;
                Value::Foreign(self.bytes(length)?)
            }
            Tag::Object => Value::Object(self.length()?),
        })
    }

    #[inline]
    fn array(&mut self) -> Result<Value<'a>, Error> {
        let dtype = self.dtype()?;
        let [dimensions] = self.fixed()?;
        let dimensions = usize::from(dimensions);
        if dimensions > MAX_DIMENSIONS {
            return Err(self.malformed());
        }
        let (shape, _) = self.bytes(dimensions * 4)?.as_chunks::<4>();
        let elements = shape.iter().try_fold(dtype.size(), |bytes, dimension| {
            bytes.checked_mul(u32::from_le_bytes(*dimension) as usize)
        });
        let elements = elements.ok_or_else(|| self.malformed())?;
        Ok(Value::Array(dtype, shape, self.bytes(elements)?))
    }

    /// Skips the next value with all its parts.
    ///
    /// # Errors
    ///
    /// As [`InfoReader::value`]; and for parts nested deeper than [`DEEPEST`].
    pub fn skip(&mut self) -> Result<(), Error> {
        self.skip_within(DEEPEST)
    }

    fn skip_within(&mut self, depth: usize) -> Result<(), Error> {
        let value = self.value()?;
        let (parts, keyed) = match value {
            Value::Dict(entries) => (entries, true),
            Value::Tuple(values) | Value::List(values) => (values, false),
            _ => return Ok(()),
        };
        let deeper = depth.checked_sub(1).ok_or_else(|| self.malformed())?;
        for _ in 0..parts {
            if keyed {
                self.entry()?;
            }
            self.skip_within(deeper)?;
        }
        Ok(())
    }
}
