//! Masks of actions: which actions each row allows next, as its infos or its observation say.

use cartwheel_core::DType;
use cartwheel_core::info::{DEEPEST, InfoReader, RecordKind, Value};

use crate::error::Error;

/// A mask that does not fit the action space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskMismatch {
    /// The row whose mask it is.
    pub row: usize,
    /// Its number of values; `None` if it has others than numbers.
    pub values: Option<usize>,
}

/// The masks that rows showed last, one byte for each action of each row.
///
/// A row without a mask has zeros, as a row that allows no action. Both are read as rows that allow
/// every action.
#[derive(Debug)]
pub struct ActionMasks {
    key: String,
    actions: usize,
    rows: usize,
    /// Empty until a row has a mask: a space without masks may have more actions than memory has bytes.
    allowed: Vec<u8>,
    /// The first mask that did not fit since [`ActionMasks::clear`] cleared its row.
    mismatch: Option<MaskMismatch>,
    /// The values of one mask.
    values: Vec<u8>,
}

impl ActionMasks {
    /// No row has a mask yet; infos have masks of this many `actions` under `key`.
    pub fn new(key: String, actions: usize, rows: usize) -> Self {
        Self { key, actions, rows, allowed: Vec::new(), mismatch: None, values: Vec::new() }
    }

    /// The key of masks in infos.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The number of actions of one row.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// The masks as they are kept, `[rows, actions]`; empty if no row has had one.
    pub fn bytes(&self) -> &[u8] {
        &self.allowed
    }

    /// The mask that does not fit, if there is one.
    pub fn mismatch(&self) -> Option<MaskMismatch> {
        self.mismatch
    }

    /// Continues with kept masks; false, and nothing changes, if they are of another size.
    pub fn restore(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.is_empty() || self.rows.checked_mul(self.actions) == Some(bytes.len());
        if fits {
            self.allowed = bytes.to_vec();
            self.mismatch = None;
        }
        fits
    }

    /// Forgets the masks of rows.
    pub fn clear(&mut self, rows: impl Iterator<Item = usize>) {
        for row in rows {
            if !self.allowed.is_empty() {
                self.allowed_by(row).fill(0);
            }
            if self.mismatch.is_some_and(|mismatch| mismatch.row == row) {
                self.mismatch = None;
            }
        }
    }

    /// Whether a record of a stream has a mask.
    ///
    /// # Errors
    ///
    /// [`cartwheel_core::Error::MalformedInfo`].
    pub fn is_in(&self, stream: &[u8]) -> Result<bool, Error> {
        let mut reader = InfoReader::new(stream, 0);
        while let Some(record) = reader.record()? {
            if is_read(record.kind) {
                while reader.at() < record.end {
                    if reader.entry()?.key == self.key {
                        return Ok(true);
                    }
                    reader.skip()?;
                }
            }
            reader = InfoReader::new(stream, record.end);
        }
        Ok(false)
    }

    /// Takes the masks of a stream of infos; of a row with several records, the last one counts.
    ///
    /// # Errors
    ///
    /// [`cartwheel_core::Error::MalformedInfo`].
    pub fn add_stream(&mut self, stream: &[u8]) -> Result<(), Error> {
        let mut reader = InfoReader::new(stream, 0);
        while let Some(record) = reader.record()? {
            if is_read(record.kind) && record.row < self.rows {
                while reader.at() < record.end {
                    let entry = reader.entry()?;
                    if entry.key == self.key {
                        self.add_value(record.row, &mut reader.clone())?;
                    }
                    reader.skip()?;
                }
            }
            reader = InfoReader::new(stream, record.end);
        }
        Ok(())
    }

    /// Takes the masks of a part of the observations of `rows`, which has a mask for each of them.
    pub fn add_leaf(&mut self, rows: impl Iterator<Item = usize>, dtype: DType, elements: &[u8]) {
        let bytes = self.actions * dtype.size();
        for (row, mask) in rows.zip(elements.chunks_exact(bytes)) {
            let elements = mask.chunks_exact(dtype.size());
            for (allowed, element) in self.allowed_by(row).iter_mut().zip(elements) {
                *allowed = is_nonzero(dtype, element);
            }
        }
    }

    /// Writes the mask of a row; `is_ignored`: whatever its next action is, it has no effect.
    pub fn read(&self, row: usize, is_ignored: bool, mask: &mut [u8]) {
        let allowed = match self.allowed.as_slice() {
            [] => &[],
            allowed => &allowed[row * self.actions..][..self.actions],
        };
        if is_ignored || allowed.iter().all(|&one| one == 0) {
            mask.fill(1);
        } else {
            mask.copy_from_slice(allowed);
        }
    }

    fn allowed_by(&mut self, row: usize) -> &mut [u8] {
        self.allowed.resize(self.rows * self.actions, 0);
        &mut self.allowed[row * self.actions..][..self.actions]
    }

    fn add_value(&mut self, row: usize, reader: &mut InfoReader<'_>) -> Result<(), Error> {
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        let are_numbers = flatten(reader, &mut values, DEEPEST)?;
        self.clear(std::iter::once(row));
        if let Some(are_numbers) = are_numbers {
            if are_numbers && values.len() == self.actions {
                self.allowed_by(row).copy_from_slice(&values);
            } else if self.mismatch.is_none() {
                let values = are_numbers.then_some(values.len());
                self.mismatch = Some(MaskMismatch { row, values });
            }
        }
        self.values = values;
        Ok(())
    }
}

/// Whether records of a kind consist of keys and values.
fn is_read(kind: RecordKind) -> bool {
    matches!(kind, RecordKind::Info | RecordKind::Irregular)
}

/// Appends which values of a mask are not zero: of an array, of numbers, or of tuples and lists of
/// them, one after the other. Returns whether all are numbers; `None` if there is no mask.
fn flatten(
    reader: &mut InfoReader<'_>,
    into: &mut Vec<u8>,
    depth: usize,
) -> Result<Option<bool>, Error> {
    match reader.value()? {
        Value::None => return Ok(None),
        Value::Bool(value) => into.push(u8::from(value)),
        Value::Int(value) => into.push(u8::from(value != 0)),
        Value::Float(value) => into.push(u8::from(value != 0.0)),
        Value::Scalar(dtype, elements) | Value::Array(dtype, _, elements) => {
            let elements = elements.chunks_exact(dtype.size());
            into.extend(elements.map(|element| is_nonzero(dtype, element)));
        }
        Value::Tuple(parts) | Value::List(parts) if depth > 0 => {
            for _ in 0..parts {
                if flatten(reader, into, depth - 1)? != Some(true) {
                    return Ok(Some(false));
                }
            }
        }
        _ => return Ok(Some(false)),
    }
    Ok(Some(true))
}

/// Whether an element is not zero, as one byte. The bytes of a negative zero are not all zero.
fn is_nonzero(dtype: DType, element: &[u8]) -> u8 {
    let is_float = matches!(dtype, DType::F16 | DType::F32 | DType::F64);
    let (last, others) = element.split_last().expect("no dtype is of size 0");
    let last = if is_float { last & 0x7f } else { *last };
    u8::from(last != 0 || others.iter().any(|&byte| byte != 0))
}

#[cfg(test)]
mod tests {
    use super::{ActionMasks, MaskMismatch};
    use crate::info::{InfoWriter, RecordKind};
    use cartwheel_core::DType;

    fn masks() -> ActionMasks {
        ActionMasks::new("mask".to_owned(), 3, 2)
    }

    fn shown(masks: &ActionMasks, row: usize, is_ignored: bool) -> [u8; 3] {
        let mut mask = [9; 3];
        masks.read(row, is_ignored, &mut mask);
        mask
    }

    /// The stream of one row, with a mask of these parts of a tuple.
    fn stream(row: usize, parts: &[&[u8]]) -> Vec<u8> {
        let mut writer = InfoWriter::new();
        let record = writer.begin(RecordKind::Info, row, 0);
        writer.key("steps");
        writer.int(7);
        writer.key("mask");
        writer.tuple(parts.len());
        for part in parts {
            writer.array(DType::I8, &[part.len()], part);
        }
        writer.end(record);
        writer.stream().to_vec()
    }

    #[test]
    fn rows_without_an_allowed_action_allow_every_one() {
        let mut masks = masks();
        assert_eq!(shown(&masks, 0, false), [1, 1, 1]);
        masks.add_stream(&stream(1, &[&[0, 2, 0]])).unwrap();
        assert_eq!(shown(&masks, 1, false), [0, 1, 0]);
        assert_eq!(shown(&masks, 1, true), [1, 1, 1]);
        masks.add_stream(&stream(1, &[&[0, 0, 0]])).unwrap();
        assert_eq!(shown(&masks, 1, false), [1, 1, 1]);
    }

    #[test]
    fn parts_of_a_mask_are_concatenated() {
        let mut masks = masks();
        masks.add_stream(&stream(0, &[&[0, 1], &[1]])).unwrap();
        assert_eq!(shown(&masks, 0, false), [0, 1, 1]);
    }

    #[test]
    fn a_mask_of_no_row_is_left_to_what_gathers_the_infos() {
        let mut masks = masks();
        masks.add_stream(&stream(2, &[&[0, 1, 0]])).unwrap();
        assert!(masks.bytes().is_empty());
    }

    #[test]
    fn masks_of_another_length_are_reported_until_the_row_is_cleared() {
        let mut masks = masks();
        masks.add_stream(&stream(1, &[&[1, 0]])).unwrap();
        assert_eq!(masks.mismatch(), Some(MaskMismatch { row: 1, values: Some(2) }));
        masks.clear(0..2);
        assert_eq!(masks.mismatch(), None);
    }

    #[test]
    fn negative_zeros_of_an_observation_are_not_allowed() {
        let mut masks = masks();
        let elements = [0.0_f32, -0.0, 1.0].map(f32::to_ne_bytes).concat();
        masks.add_leaf(std::iter::once(1), DType::F32, &elements);
        assert_eq!(shown(&masks, 1, false), [0, 0, 1]);
    }

    #[test]
    fn a_space_without_masks_may_have_any_number_of_actions() {
        let mut masks = ActionMasks::new("mask".to_owned(), usize::MAX, 2);
        masks.clear(0..2);
        masks.add_stream(&stream(1, &[])).unwrap();
        assert_eq!(masks.mismatch(), Some(MaskMismatch { row: 1, values: Some(0) }));
        assert!(!masks.restore(&[0; 2]));
        assert!(masks.bytes().is_empty());
        assert!(masks.restore(&[]));
        assert_eq!(shown(&masks, 1, false), [1; 3]);
    }

    #[test]
    fn kept_masks_are_restored_if_they_are_of_the_same_size() {
        let mut masks = masks();
        assert!(!masks.restore(&[1; 5]));
        assert!(masks.restore(&[1, 0, 0, 0, 1, 0]));
        assert_eq!(shown(&masks, 0, false), [1, 0, 0]);
    }
}
