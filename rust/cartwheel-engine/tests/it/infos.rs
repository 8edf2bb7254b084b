//! Info streams are read back as they were written, and columns hold the infos of the rows.

use cartwheel_engine::Error;
use cartwheel_engine::info::{
    Content, InfoColumns, InfoReader, InfoWriter, Irregular, RecordKind, Value,
};
use cartwheel_engine::space::DType;
use proptest::prelude::*;

/// A value with its own storage, for comparing with what a reader gives.
#[derive(Debug, Clone, PartialEq)]
enum Owned {
    None,
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(String),
    Scalar(f32),
    Array(Vec<u8>),
    Dict(Vec<(String, Owned)>),
    Tuple(Vec<Owned>),
    List(Vec<Owned>),
    Foreign(Vec<u8>),
    Object(usize),
}

fn write(writer: &mut InfoWriter, value: &Owned) {
    match value {
        Owned::None => writer.none(),
        Owned::Bool(flag) => writer.bool(*flag),
        Owned::Int(int) => writer.int(*int),
        Owned::Float(bits) => writer.float(f64::from_bits(*bits)),
        Owned::Text(text) => writer.text(text),
        Owned::Scalar(float) => writer.scalar(DType::F32, &float.to_le_bytes()),
        Owned::Array(bytes) => writer.array(DType::U8, &[1, bytes.len()], bytes),
        Owned::Dict(entries) => {
            writer.dict(entries.len());
            for (key, value) in entries {
                assert!(writer.key(key));
                write(writer, value);
            }
        }
        Owned::Tuple(parts) => {
            writer.tuple(parts.len());
            for part in parts {
                write(writer, part);
            }
        }
        Owned::List(parts) => {
            writer.list(parts.len());
            for part in parts {
                write(writer, part);
            }
        }
        Owned::Foreign(bytes) => writer.foreign(bytes),
        Owned::Object(number) => writer.object(*number),
    }
}

fn read(reader: &mut InfoReader<'_>) -> Result<Owned, Error> {
    let parts = |reader: &mut InfoReader<'_>, parts: usize| {
        (0..parts).map(|_| read(reader)).collect::<Result<Vec<_>, Error>>()
    };
    Ok(match reader.value()? {
        Value::None => Owned::None,
        Value::Bool(flag) => Owned::Bool(flag),
        Value::Int(int) => Owned::Int(int),
        Value::Float(float) => Owned::Float(float.to_bits()),
        Value::Text(text) => Owned::Text(text.to_owned()),
        Value::Scalar(_, bytes) => {
            Owned::Scalar(f32::from_le_bytes(bytes.try_into().expect("one element")))
        }
        Value::Array(_, _, bytes) => Owned::Array(bytes.to_vec()),
        Value::Dict(entries) => Owned::Dict(
            (0..entries)
                .map(|_| Ok((reader.entry()?.key.to_owned(), read(reader)?)))
                .collect::<Result<_, Error>>()?,
        ),
        Value::Tuple(count) => Owned::Tuple(parts(reader, count)?),
        Value::List(count) => Owned::List(parts(reader, count)?),
        Value::Foreign(bytes) => Owned::Foreign(bytes.to_vec()),
        Value::Object(number) => Owned::Object(number),
    })
}

fn values() -> impl Strategy<Value = Owned> {
    let leaf = prop_oneof![
        Just(Owned::None),
        any::<bool>().prop_map(Owned::Bool),
        any::<i64>().prop_map(Owned::Int),
        any::<u64>().prop_map(Owned::Float),
        ".{0,12}".prop_map(Owned::Text),
        (-1e9_f32..1e9).prop_map(Owned::Scalar),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Owned::Array),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Owned::Foreign),
        (0_usize..1000).prop_map(Owned::Object),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(("[a-z]{0,6}", inner.clone()), 0..5).prop_map(Owned::Dict),
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Owned::Tuple),
            proptest::collection::vec(inner, 0..5).prop_map(Owned::List),
        ]
    })
}

fn record(values: &[(String, Owned)], row: usize, writer: &mut InfoWriter) {
    let record = writer.begin(RecordKind::Info, row, 0);
    for (key, value) in values {
        assert!(writer.key(key));
        write(writer, value);
    }
    writer.end(record);
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(entries in proptest::collection::vec((".{0,9}", values()), 0..8)) {
        let mut writer = InfoWriter::new();
        record(&entries, 3, &mut writer);
        let mut reader = InfoReader::new(writer.stream(), 0);
        let found = reader.record().expect("well-formed").expect("one record");
        prop_assert_eq!((found.kind, found.row, found.end), (RecordKind::Info, 3, writer.stream().len()));
        for (key, value) in &entries {
            let entry = reader.entry().expect("well-formed");
            prop_assert_eq!(entry.key, key.as_str());
            let mut again = InfoReader::new(writer.stream(), entry.value_at);
            again.skip().expect("well-formed");
            prop_assert_eq!(&read(&mut reader).expect("well-formed"), value);
            prop_assert_eq!(again.at(), reader.at());
        }
        prop_assert_eq!(reader.record().expect("well-formed"), None);
    }

    #[test]
    fn a_truncated_or_corrupted_stream_never_causes_a_panic(
        entries in proptest::collection::vec(("[a-z]{1,5}", values()), 1..5),
        cut in 0.0..1.0_f64,
        corrupted in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut writer = InfoWriter::new();
        record(&entries, 0, &mut writer);
        let mut stream = writer.stream().to_vec();
        for (at, byte) in corrupted {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
                 reason = "a fraction of a short length")]
        stream.truncate((stream.len() as f64 * cut) as usize);
        // Any result is right, if it comes in bounded time and without a panic.
        let _ = InfoColumns::new(2).add_stream(0, &stream, Some, |_, _| {});
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        stream in proptest::collection::vec(prop_oneof![0_u8..16, any::<u8>()], 0..200),
        at in 0_usize..250,
    ) {
        let _ = InfoColumns::new(2).add_stream(0, &stream, Some, |_, _| {});
        let mut reader = InfoReader::new(&stream, at);
        if at <= stream.len() {
            while reader.record().is_ok_and(|record| record.is_some()) {
                while reader.entry().is_ok() && reader.skip().is_ok() {
                    prop_assert!(reader.at() <= stream.len());
                }
            }
        } else {
            prop_assert!(reader.value().is_err());
        }
    }
}

fn gather(columns: &mut InfoColumns, streams: &[InfoWriter]) -> Result<(), Irregular> {
    columns.begin(columns.rows());
    streams.iter().enumerate().try_for_each(|(shard, stream)| {
        columns.add_stream(shard, stream.stream(), Some, |_, _| {}).expect("well-formed")
    })
}

fn infos(rows: &[(usize, &[(&str, Owned)])]) -> InfoWriter {
    let mut writer = InfoWriter::new();
    for (row, entries) in rows {
        let entries: Vec<_> =
            entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        record(&entries, *row, &mut writer);
    }
    writer
}

#[test]
fn a_column_holds_zeros_where_its_mask_is_false() {
    let mut columns = InfoColumns::new(3);
    // Twice, with other keys in between: buffers are reused, values are not.
    for _ in 0..2 {
        let other = infos(&[(0, &[("b", Owned::Int(1)), ("a", Owned::Text("x".into()))])]);
        gather(&mut columns, &[other]).expect("regular");
        let first = infos(&[(0, &[("a", Owned::Int(7))])]);
        let second = infos(&[(2, &[("a", Owned::Int(-1)), ("c", Owned::Scalar(0.5))])]);
        gather(&mut columns, &[first, second]).expect("regular");
        let found: Vec<_> = columns.iter().collect();
        assert_eq!(found.iter().map(|column| column.key.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!((found[0].mask_key.as_str(), found[0].mask.as_slice()), ("_a", &[1, 0, 1][..]));
        let Content::Array { dtype: DType::I64, elements, .. } = &found[0].content else {
            panic!("a column of integers, not {:?}", found[0].content)
        };
        let expected: Vec<u8> = [7_i64, 0, -1].iter().flat_map(|n| n.to_le_bytes()).collect();
        assert_eq!(elements, &expected);
    }
}

/// Batches of 8 rows in which every key is new, at the top and in a dictionary.
fn with_new_keys(columns: &mut InfoColumns, batch: usize, value: &Owned) {
    let nested = Owned::Dict(vec![(format!("item {batch}"), value.clone())]);
    let key = format!("vehicle {batch}");
    let entries = [("t", Owned::Int(1)), (&key, value.clone()), ("items", nested)];
    gather(columns, &[infos(&[(0, &entries), (7, &entries)])]).expect("regular");
    let keys: Vec<_> = columns.iter().map(|column| column.key.as_str()).collect();
    assert_eq!(keys, ["t", &key, "items"]);
    for column in columns.iter() {
        assert_eq!(column.mask, [1, 0, 0, 0, 0, 0, 0, 1], "{}", column.key);
    }
}

#[test]
fn keys_that_change_take_no_more_memory_than_those_of_a_batch() {
    for (value, max) in [(Owned::Int(1), 64 << 10), (Owned::Array(vec![7; 100_000]), 4 << 20)] {
        let mut columns = InfoColumns::new(8);
        for batch in 0..400 {
            with_new_keys(&mut columns, batch, &value);
            assert!(columns.bytes() < max, "{} bytes in batch {batch}", columns.bytes());
        }
    }
}

#[test]
fn keys_that_come_now_and_then_keep_their_buffers() {
    let mut columns = InfoColumns::new(2);
    let names: Vec<_> = (0..40).map(|key| format!("key {key}")).collect();
    let entries: Vec<_> = names.iter().map(|name| (name.as_str(), Owned::Int(1))).collect();
    gather(&mut columns, &[infos(&[(0, &entries)])]).expect("regular");
    let bytes = columns.bytes();
    for count in [30, 0, 1, 40] {
        gather(&mut columns, &[infos(&[(1, &entries[..count])])]).expect("regular");
        assert_eq!(columns.iter().count(), count);
        assert_eq!(columns.bytes(), bytes, "after a batch of {count} keys");
    }
}

#[test]
fn keys_are_found_in_any_order_after_others_were_dropped() {
    let mut columns = InfoColumns::new(2);
    for batch in 0..200 {
        let mut keys: Vec<_> = (batch..batch + 100).map(|key| key * 7 % 311).collect();
        keys.rotate_left(batch % 100);
        let names: Vec<_> = keys.iter().map(|key| format!("key {key}")).collect();
        let entries: Vec<_> = names
            .iter()
            .zip(&keys)
            .map(|(name, key)| (name.as_str(), Owned::Int(i64::try_from(*key).expect("small"))))
            .collect();
        let reversed: Vec<_> = entries.iter().rev().cloned().collect();
        gather(&mut columns, &[infos(&[(0, &entries), (1, &reversed)])]).expect("regular");
        let found: Vec<_> = columns.iter().map(|column| column.key.clone()).collect();
        assert_eq!(found, names);
        for (column, (_, value)) in columns.iter().zip(&entries) {
            let Content::Array { elements, .. } = &column.content else { panic!("a number") };
            let Owned::Int(value) = value else { panic!("an integer") };
            assert_eq!(*elements, [value.to_le_bytes(); 2].concat(), "{}", column.key);
        }
    }
}

#[test]
fn values_that_do_not_fit_their_column_are_irregular() {
    let pairs = [
        (Owned::Int(1), Owned::Float(f64::NAN.to_bits())),
        (Owned::Int(1), Owned::Float((2.0_f64).powi(63).to_bits())),
        (Owned::Bool(true), Owned::Int(7)),
        (Owned::Int(1), Owned::Text("z".into())),
        (Owned::Int(1), Owned::None),
        (Owned::Array(vec![1, 2]), Owned::Array(vec![1, 2, 3])),
        (Owned::Int(1), Owned::Dict(vec![])),
        (Owned::Dict(vec![]), Owned::Int(1)),
    ];
    for (first, second) in pairs {
        let stream = infos(&[(0, &[("a", first.clone())]), (1, &[("a", second.clone())])]);
        let outcome = gather(&mut InfoColumns::new(2), &[stream]);
        assert_eq!(outcome, Err(Irregular), "{first:?} then {second:?}");
    }
    let own_mask = infos(&[(0, &[("a", Owned::Int(1)), ("_a", Owned::Int(5))])]);
    assert_eq!(gather(&mut InfoColumns::new(1), &[own_mask]), Err(Irregular));
}

#[test]
fn a_column_of_large_arrays_is_irregular_before_it_takes_memory() {
    let array = Owned::Array(vec![7; 8 << 10]);
    let nested = Owned::Dict(vec![("deep".to_owned(), array.clone())]);
    for value in [array, nested] {
        let stream = || infos(&[(5, &[("video", value.clone())])]);
        let mut columns = InfoColumns::new(1 << 14); // 128 MiB, of which one row has 8 KiB
        assert_eq!(gather(&mut columns, &[stream()]), Err(Irregular), "{value:?}");
        assert!(columns.bytes() < 1 << 20, "{} bytes", columns.bytes());
        columns.begin(8);
        gather(&mut columns, &[stream()]).expect("a batch of fewer rows is regular");
    }
}

#[test]
fn the_first_number_decides_the_dtype_and_later_ones_are_cast_as_numpy_does() {
    let float = |number: f64| Owned::Float(number.to_bits());
    let bytes = |first: &Owned, second: &Owned| {
        let stream = infos(&[(0, &[("a", first.clone())]), (1, &[("a", second.clone())])]);
        let mut columns = InfoColumns::new(2);
        gather(&mut columns, &[stream]).expect("regular");
        match &columns.iter().next().expect("a column").content {
            Content::Array { dtype, elements, .. } => (*dtype, elements[8..].to_vec()),
            other => panic!("{other:?}"),
        }
    };
    // The bytes that `array[1] = second` leaves there.
    for (given, held) in [(1.0 / 3.0, 0), (-2.7, -2), (-(2.0_f64.powi(63)), i64::MIN)] {
        let held = (DType::I64, held.to_le_bytes().to_vec());
        assert_eq!(bytes(&Owned::Int(1), &float(given)), held, "{given}");
    }
    for (given, held) in [(7, 7.0), ((1 << 53) + 1, 2.0_f64.powi(53)), (i64::MAX, 2.0_f64.powi(63))]
    {
        let held = (DType::F64, held.to_le_bytes().to_vec());
        assert_eq!(bytes(&float(0.5), &Owned::Int(given)), held, "{given}");
    }
}

#[test]
fn final_obs_is_a_column_of_objects_whatever_it_holds() {
    let dict = Owned::Dict(vec![("x".into(), Owned::Int(1))]);
    let stream = infos(&[(1, &[("final_obs", dict), ("deep", Owned::Dict(vec![]))])]);
    let mut columns = InfoColumns::new(2);
    gather(&mut columns, &[stream]).expect("regular");
    let contents: Vec<_> = columns.iter().map(|column| &column.content).collect();
    assert!(matches!(contents[0], Content::Objects(objects) if objects[0].row == 1));
    assert!(matches!(contents[1], Content::Group(group) if group.is_empty()));
}

#[test]
fn nesting_without_end_is_refused() {
    let mut writer = InfoWriter::new();
    let record = writer.begin(RecordKind::Info, 0, 0);
    assert!(writer.key("a"));
    (0..100_000).for_each(|_| writer.list(1));
    writer.none();
    writer.end(record);
    let outcome = InfoColumns::new(1).add_stream(0, writer.stream(), Some, |_, _| {});
    assert!(matches!(outcome, Err(Error::Env(cartwheel_core::Error::MalformedInfo { .. }))));
}

#[test]
fn a_record_of_no_row_or_with_values_beyond_its_end_is_refused() {
    let beyond = infos(&[(2, &[("a", Owned::Int(1))])]);
    let whole = infos(&[(0, &[("a", Owned::Int(1))]), (1, &[("a", Owned::Int(2))])]);
    let mut longer = whole.stream().to_vec();
    let end = InfoReader::new(&longer, 0).record().expect("one").expect("two").end;
    longer[7] -= 1; // the length of the first record
    longer.remove(end - 1);
    for stream in [beyond.stream(), &longer] {
        let outcome = InfoColumns::new(2).add_stream(0, stream, Some, |_, _| {});
        assert!(
            matches!(outcome, Err(Error::Env(cartwheel_core::Error::MalformedInfo { .. }))),
            "{outcome:?}"
        );
    }
}
