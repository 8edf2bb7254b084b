//! The records of infos that plugins write, checked.

use std::ops::Range;

use crate::info::{InfoReader, RecordKind, Value};

/// Checks the records of `stream` from offset `from` on: their rows are within `rows`, in order, one
/// record each, and infos are dictionaries.
pub(super) fn check_records(stream: &[u8], from: usize, rows: Range<usize>) -> Result<(), String> {
    let (mut reader, mut next) = (InfoReader::new(stream, from), rows.start);
    loop {
        let at = reader.at();
        let record = reader.record().map_err(|error| error.to_string())?;
        let Some(record) = record else { return Ok(()) };
        if !matches!(record.kind, RecordKind::Info | RecordKind::Whole) {
            return Err(format!("an info record of kind {:?} at byte {at}", record.kind));
        }
        if record.row < next || record.row >= rows.end {
            let row = record.row;
            return Err(format!(
                "an info record of row {row} at byte {at}, expected {next}..{}",
                rows.end
            ));
        }
        if record.kind == RecordKind::Whole && !matches!(reader.value(), Ok(Value::Dict(_))) {
            return Err(format!("an info record at byte {at} that is not a dictionary"));
        }
        next = record.row + 1;
        reader = InfoReader::new(stream, record.end);
    }
}

/// Checks that these bytes are one value, so that it can stand among others.
pub(super) fn check_value(bytes: &[u8]) -> Result<(), String> {
    let mut reader = InfoReader::new(bytes, 0);
    reader.skip().map_err(|error| format!("cannot be read: {error}"))?;
    match bytes.len() - reader.at() {
        0 => Ok(()),
        more => Err(format!("has {more} bytes behind its end")),
    }
}

/// Number of entries of an [`RecordKind::Info`] record whose body is at `body` of `stream`.
pub(crate) fn entries_of(stream: &[u8], body: Range<usize>) -> Result<usize, String> {
    let (mut reader, mut entries) = (InfoReader::new(stream, body.start), 0);
    while reader.at() < body.end {
        let entry = reader.entry().and_then(|_| reader.skip());
        entry.map_err(|error| error.to_string())?;
        entries += 1;
    }
    if reader.at() > body.end {
        return Err(format!("an info whose last value ends behind byte {}", body.end));
    }
    Ok(entries)
}
