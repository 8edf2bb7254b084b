//! Values of the info format as text.

use cartwheel_core::info::{InfoReader, Value};

/// A value of the info format, as text.
pub fn shown(value: &[u8]) -> String {
    let mut reader = InfoReader::new(value, 0);
    let text = shown_next(&mut reader);
    assert_eq!(reader.at(), value.len(), "one value");
    text
}

/// The entries of a record of infos, as text.
pub fn shown_info(body: &[u8]) -> String {
    let mut reader = InfoReader::new(body, 0);
    let mut entries = Vec::new();
    while reader.at() < body.len() {
        let key = reader.entry().expect("a key").key;
        entries.push(format!("{key}: {}", shown_next(&mut reader)));
    }
    entries.join(", ")
}

fn shown_next(reader: &mut InfoReader<'_>) -> String {
    match reader.value().expect("a value") {
        Value::Dict(entries) => {
            let mut entry = |_| {
                let key = reader.entry().expect("a key").key;
                format!("{key}: {}", shown_next(reader))
            };
            format!("{{{}}}", (0..entries).map(&mut entry).collect::<Vec<_>>().join(", "))
        }
        Value::List(values) => {
            let values: Vec<String> = (0..values).map(|_| shown_next(reader)).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Scalar(dtype, bytes) => format!("{}{bytes:?}", dtype.name()),
        Value::Array(dtype, shape, elements) => {
            let shape: Vec<u32> = shape.iter().map(|&length| u32::from_le_bytes(length)).collect();
            format!("{}{shape:?}{elements:?}", dtype.name())
        }
        other => format!("{other:?}"),
    }
}
