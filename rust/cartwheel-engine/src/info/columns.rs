//! Gathers the infos of a batch into columns: one array and one mask per key.
//!
//! The rules are those of Gymnasium's `VectorEnv._add_info`: the first row that has a key decides
//! the column's dtype; dictionaries become groups of columns; a value that is neither a number nor
//! an array makes a column of objects; the key `final_obs` is a column of objects at any depth.
//!
//! Only the regular case is gathered here: every later value has the column's dtype and shape, or is
//! a number that is cast as an assignment to an element of NumPy's array does: in a column of
//! integers a float loses its fraction. Anything else (a string in a column of integers, a user's own
//! `_key`, a column above [`MAX_COLUMN_BYTES`]) is reported as [`Irregular`]. The caller then gathers the
//! batch again with Gymnasium's own function, which is correct by definition.

use cartwheel_core::DType;
use cartwheel_core::info::{InfoReader, RecordKind, Value};

use crate::error::Error;

/// The location of an object in a column of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectAt {
    /// The row that has it.
    pub row: usize,
    /// The row's place in the batch.
    pub place: usize,
    /// Number of the stream that holds it.
    pub stream: usize,
    /// Offset of the value in that stream.
    pub value_at: usize,
}

/// The content of a column.
#[derive(Debug)]
pub enum Content {
    /// Elements `[rows, *shape]` of one dtype, row-major; zeros where the mask is false.
    Array {
        /// Element type.
        dtype: DType,
        /// Shape of one row's value, empty for numbers.
        shape: Vec<usize>,
        /// The elements.
        elements: Vec<u8>,
    },
    /// Values by place; if a place occurs twice, the last value counts.
    Objects(Vec<ObjectAt>),
    /// A dictionary, whose keys are columns.
    Group(InfoColumns),
}

/// One key of a batch of infos.
#[derive(Debug)]
pub struct Column {
    /// The key.
    pub key: String,
    /// The key of the mask: the key behind an underscore.
    pub mask_key: String,
    /// One byte per place: 1 where the row there has the key.
    pub mask: Vec<u8>,
    /// The values.
    pub content: Content,
    live: bool,
}

/// The infos of a batch do not follow the regular case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Irregular;

/// The columns of one dictionary. It keeps their buffers from batch to batch, also of keys that come
/// only now and then, but not of all keys that there ever were: some environments name vehicles,
/// items or episodes by their keys.
#[derive(Debug, Default)]
pub struct InfoColumns {
    all: Vec<Column>,
    /// The same, sorted by their keys.
    by_key: Vec<usize>,
    /// Columns of this batch, in order of first occurrence.
    order: Vec<usize>,
    /// The likely position of the next key: environments repeat their keys in the same order.
    hint: usize,
    rows: usize,
}

const FINAL_OBS: &str = "final_obs";

/// Most columns that are kept beyond those of the last batch.
const MAX_UNUSED: usize = 64;

/// Most bytes of a column that is kept although the last batch did not have it. Numbers of 4,096 rows
/// need less.
const MAX_BYTES: usize = 64 << 10;
/// Most bytes of a column. A larger one is left to NumPy, whose zeros take no memory until they are written:
/// one row alone may have the key, such as the video of its episode.
const MAX_COLUMN_BYTES: usize = 64 << 20;

impl InfoColumns {
    /// No columns yet, for batches of `rows` rows.
    pub fn new(rows: usize) -> Self {
        Self { rows, ..Self::default() }
    }

    /// The columns of this batch, in order of first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = &Column> {
        self.order.iter().map(|&at| &self.all[at])
    }

    /// Whether this batch has no column.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Number of rows of this batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the buffers that are kept.
    pub fn bytes(&self) -> usize {
        let indices = (self.by_key.capacity() + self.order.capacity()) * size_of::<usize>();
        indices + self.all.iter().map(Column::bytes).sum::<usize>()
    }

    /// Drops the batch, and begins another one of `rows` rows.
    pub fn begin(&mut self, rows: usize) {
        let unused = self.all.len() - self.order.len();
        if unused > 0 {
            let is_kept = |column: &Column| unused <= MAX_UNUSED && column.bytes() <= MAX_BYTES;
            self.all.retain(|column| column.live || is_kept(column));
            if self.all.len() < self.by_key.len() {
                let Self { all, by_key, .. } = self;
                by_key.truncate(all.len());
                by_key.iter_mut().enumerate().for_each(|(at, place)| *place = at);
                by_key.sort_unstable_by(|&one, &other| all[one].key.cmp(&all[other].key));
            }
        }
        self.all.iter_mut().for_each(|column| column.live = false);
        self.order.clear();
        self.hint = 0;
        self.rows = rows;
    }

    /// Adds the info records of one stream. `place_of` returns the place of a row in the batch,
    /// which is the row's own number where the batch contains all rows. `opaque` is called for
    /// every [`RecordKind::Opaque`] record, with the leaf and the offset of the value.
    ///
    /// # Errors
    ///
    /// [`cartwheel_core::Error::MalformedInfo`]; `Ok(Err(Irregular))` when the batch is not regular.
    pub fn add_stream(
        &mut self,
        number: usize,
        stream: &[u8],
        place_of: impl Fn(usize) -> Option<usize>,
        mut opaque: impl FnMut(usize, ObjectAt),
    ) -> Result<Result<(), Irregular>, Error> {
        let mut reader = InfoReader::new(stream, 0);
        let mut outcome = Ok(());
        while let Some(record) = reader.record()? {
            let malformed = || Error::from(cartwheel_core::Error::MalformedInfo { at: record.end });
            let place = place_of(record.row).filter(|&place| place < self.rows);
            let place = place.ok_or_else(malformed)?;
            let at = ObjectAt { row: record.row, place, stream: number, value_at: reader.at() };
            match record.kind {
                RecordKind::Opaque => opaque(record.leaf, at),
                RecordKind::Whole | RecordKind::Irregular => outcome = Err(Irregular),
                RecordKind::Info if outcome.is_ok() => {
                    self.hint = 0;
                    while outcome.is_ok() && reader.at() < record.end {
                        outcome = self.add_entry(at, &mut reader)?;
                    }
                }
                RecordKind::Info => {}
            }
            if reader.at() > record.end {
                return Err(malformed());
            }
            reader = InfoReader::new(stream, record.end);
        }
        Ok(outcome)
    }

    fn add_entry(
        &mut self,
        at: ObjectAt,
        reader: &mut InfoReader<'_>,
    ) -> Result<Result<(), Irregular>, Error> {
        let entry = reader.entry()?;
        if entry.key.starts_with('_') {
            return Ok(Err(Irregular)); // may be the mask of another key
        }
        let mut parts = *reader;
        let value = parts.value()?;
        if matches!(value, Value::Dict(_) | Value::Tuple(_) | Value::List(_)) {
            reader.skip()?;
        } else {
            *reader = parts; // behind it
        }
        let rows = self.rows;
        let (column, first) = self.column(entry.key);
        column.mask[at.place] = 1;
        if let (Value::Dict(entries), false) = (value, entry.key == FINAL_OBS) {
            if first {
                column.content.begin_group(rows);
            }
            let Content::Group(group) = &mut column.content else {
                return Ok(Err(Irregular));
            };
            group.hint = 0;
            for _ in 0..entries {
                if let Err(irregular) = group.add_entry(at, &mut parts)? {
                    return Ok(Err(irregular));
                }
            }
            return Ok(Ok(()));
        }
        if first && let Err(irregular) = column.content.begin(entry.key, &value, rows) {
            return Ok(Err(irregular));
        }
        Ok(column.content.put(&value, ObjectAt { value_at: entry.value_at, ..at }))
    }

    /// The column of `key`, and whether this is its first occurrence in the batch.
    fn column(&mut self, key: &str) -> (&mut Column, bool) {
        let at = self.find(key).unwrap_or_else(|place| {
            let (mask, content) = (Vec::new(), Content::Objects(Vec::new()));
            let (mask_key, key) = (format!("_{key}"), key.to_owned());
            self.by_key.insert(place, self.all.len());
            self.all.push(Column { key, mask_key, mask, content, live: false });
            self.all.len() - 1
        });
        self.hint = at + 1;
        let column = &mut self.all[at];
        let first = !std::mem::replace(&mut column.live, true);
        if first {
            self.order.push(at);
            column.mask.clear();
            column.mask.resize(self.rows, 0);
        }
        (column, first)
    }

    /// The column of a key, or its place in the order of keys.
    fn find(&self, key: &str) -> Result<usize, usize> {
        if self.all.get(self.hint).is_some_and(|column| column.key == key) {
            return Ok(self.hint);
        }
        let found = self.by_key.binary_search_by(|&at| self.all[at].key.as_str().cmp(key));
        found.map(|place| self.by_key[place])
    }
}

impl Column {
    fn bytes(&self) -> usize {
        let own = size_of::<Self>() + self.key.capacity() + self.mask_key.capacity();
        own + self.mask.capacity()
            + match &self.content {
                Content::Array { elements, .. } => elements.capacity(),
                Content::Objects(objects) => objects.capacity() * size_of::<ObjectAt>(),
                Content::Group(columns) => columns.bytes(),
            }
    }
}

impl Content {
    /// Prepares empty content for a dictionary, reusing buffers.
    fn begin_group(&mut self, rows: usize) {
        match self {
            Self::Group(columns) => columns.begin(rows),
            _ => *self = Self::Group(InfoColumns::new(rows)),
        }
    }

    /// Prepares empty content for values like `value`, the first of its key.
    fn begin(&mut self, key: &str, value: &Value<'_>, rows: usize) -> Result<(), Irregular> {
        let Some(dtype) = column_dtype(value).filter(|_| key != FINAL_OBS) else {
            match self {
                Self::Objects(objects) => objects.clear(),
                _ => *self = Self::Objects(Vec::new()),
            }
            return Ok(());
        };
        let row_bytes = match value {
            Value::Array(_, _, elements) => elements.len(),
            _ => dtype.size(),
        };
        if rows.saturating_mul(row_bytes) > MAX_COLUMN_BYTES {
            return Err(Irregular);
        }
        if !matches!(self, Self::Array { dtype: had, shape, .. }
            if *had == dtype && has_shape(value, shape))
        {
            let shape = match value {
                Value::Array(_, shape, _) => shape.iter().map(|n| length(*n)).collect(),
                _ => Vec::new(),
            };
            *self = Self::Array { dtype, shape, elements: Vec::new() };
        }
        if let Self::Array { elements, .. } = self {
            elements.clear();
            elements.resize(rows * row_bytes, 0);
        }
        Ok(())
    }

    /// Stores the value of one row, if it is like the values before it or can be cast.
    fn put(&mut self, value: &Value<'_>, at: ObjectAt) -> Result<(), Irregular> {
        match self {
            Self::Objects(objects) => objects.push(at),
            Self::Array { dtype, shape, elements } => {
                let value = &cast(*value, *dtype);
                if column_dtype(value) != Some(*dtype) || !has_shape(value, shape) {
                    return Err(Irregular);
                }
                let bytes = shape.iter().product::<usize>() * dtype.size();
                let place = &mut elements[at.place * bytes..][..bytes];
                match value {
                    Value::Bool(value) => place[0] = u8::from(*value),
                    Value::Int(value) => place.copy_from_slice(&value.to_le_bytes()),
                    Value::Float(value) => place.copy_from_slice(&value.to_le_bytes()),
                    Value::Scalar(_, value) | Value::Array(_, _, value) => {
                        place.copy_from_slice(value);
                    }
                    _ => return Err(Irregular),
                }
            }
            Self::Group(_) => return Err(Irregular),
        }
        Ok(())
    }
}

/// The dtype of a column whose first value is `value`; `None` for a column of objects.
///
/// NumPy's `bool` is not an `np.number`, so it makes a column of objects, as in Gymnasium.
fn column_dtype(value: &Value<'_>) -> Option<DType> {
    match value {
        Value::Bool(_) => Some(DType::Bool),
        Value::Int(_) => Some(DType::I64),
        Value::Float(_) => Some(DType::F64),
        Value::Scalar(dtype, _) => Some(*dtype).filter(|dtype| *dtype != DType::Bool),
        Value::Array(dtype, _, _) => Some(*dtype),
        _ => None,
    }
}

/// A number of the calling language as a column of this dtype holds it, if that is a number too; else
/// the value itself.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "as NumPy casts")]
fn cast(value: Value<'_>, dtype: DType) -> Value<'_> {
    const END: f64 = -(i64::MIN as f64);
    match (value, dtype) {
        (Value::Int(number), DType::F64) => Value::Float(number as f64),
        // NumPy raises for other floats.
        (Value::Float(number), DType::I64) if (-END..END).contains(&number) => {
            Value::Int(number as i64)
        }
        _ => value,
    }
}

fn has_shape(value: &Value<'_>, shape: &[usize]) -> bool {
    match value {
        Value::Array(_, dimensions, _) => {
            dimensions.len() == shape.len()
                && dimensions.iter().zip(shape).all(|(n, &expected)| length(*n) == expected)
        }
        _ => shape.is_empty(),
    }
}

fn length(dimension: [u8; 4]) -> usize {
    u32::from_le_bytes(dimension) as usize
}
