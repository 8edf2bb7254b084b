//! Infos, as Rust reads them.

use cartwheel_core::info::{InfoReader, RecordKind, Value};

use crate::Error;
use crate::env::{Parameter, ParameterValue};

/// The key of what a row showed last, and of what it reported last.
pub(crate) const FINAL_OBS: &str = "final_obs";
pub(crate) const FINAL_INFO: &str = "final_info";

/// The infos of a batch: a dictionary for each row, many of them empty.
#[derive(Debug, Clone)]
pub struct Infos<'a> {
    places: usize,
    /// Place, key, and offset of the value; sorted by place.
    entries: Vec<(usize, &'a str, usize)>,
    stream: &'a [u8],
}

impl<'a> Infos<'a> {
    /// Reads the streams of all shards, one after the other; `rows` has the row in each place.
    pub(crate) fn new(stream: &'a [u8], rows: &[usize]) -> Result<Self, Error> {
        let in_order = rows.iter().enumerate().all(|(place, row)| place == *row);
        let mut places: Vec<(usize, usize)> = Vec::new();
        if !in_order && !stream.is_empty() {
            places.extend(rows.iter().enumerate().map(|(place, row)| (*row, place)));
            places.sort_unstable();
        }
        let place_of = |row: usize| {
            if in_order {
                return (row < rows.len()).then_some(row);
            }
            Some(places[places.binary_search_by_key(&row, |(row, _)| *row).ok()?].1)
        };
        let (mut reader, mut entries) = (InfoReader::new(stream, 0), Vec::new());
        while let Some(record) = reader.record()? {
            let malformed = || Error::MalformedInfo { at: record.end };
            let place = place_of(record.row).ok_or_else(malformed)?;
            if record.kind != RecordKind::Info {
                return Err(malformed());
            }
            while reader.at() < record.end {
                let entry = reader.entry()?;
                entries.push((place, entry.key, entry.value_at));
                reader.skip()?;
            }
            if reader.at() > record.end {
                return Err(malformed());
            }
        }
        entries.sort_by_key(|(place, ..)| *place);
        Ok(Self { places: rows.len(), entries, stream })
    }

    /// Whether no row reported anything.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The places of the rows that have a key, ascending.
    pub(super) fn places_with(&self, key: &str) -> Vec<usize> {
        let mut places: Vec<usize> = self
            .entries
            .iter()
            .filter(|(_, own, _)| *own == key)
            .map(|(place, ..)| *place)
            .collect();
        places.dedup();
        places
    }

    /// The info in place `at`; empty if there is none.
    pub fn row(&self, at: usize) -> InfoRow<'a> {
        let first = self.entries.partition_point(|(place, ..)| *place < at);
        let own = self.entries[first..].iter().take_while(|(place, ..)| *place == at);
        InfoRow { entries: own.map(|(_, key, at)| (*key, *at)).collect(), stream: self.stream }
    }

    /// The values of one key, one for each place; `None` where a row does not have it.
    ///
    /// # Errors
    ///
    /// [`Error::BadParameter`] when a value is not a `T`.
    pub fn column<T: Parameter + Default>(&self, key: &str) -> Result<Vec<Option<T>>, Error> {
        let mut column: Vec<Option<T>> = (0..self.places).map(|_| None).collect();
        for (place, _, at) in self.entries.iter().filter(|(_, own, _)| *own == key) {
            column[*place] = Some(read(self.stream, *at, key)?);
        }
        Ok(column)
    }
}

/// The info of one row, or a dictionary in it.
#[derive(Debug, Clone)]
pub struct InfoRow<'a> {
    /// Key, and offset of the value.
    entries: Vec<(&'a str, usize)>,
    stream: &'a [u8],
}

impl<'a> InfoRow<'a> {
    /// An info without keys.
    pub(super) fn empty() -> Self {
        Self { entries: Vec::new(), stream: &[] }
    }

    /// The keys, in the order in which they were written.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.entries.iter().map(|(key, _)| *key)
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The offset of a value. If a key was written twice, the last value counts, as in Python.
    pub(super) fn value_at(&self, key: &str) -> Option<usize> {
        self.entries.iter().rev().find(|(own, _)| *own == key).map(|(_, at)| *at)
    }

    /// The value of a key: a number, `bool`, `String`, an array or vector of them; `None` if the row
    /// does not have the key.
    ///
    /// # Errors
    ///
    /// [`Error::BadParameter`] when the value is not a `T`.
    pub fn get<T: Parameter + Default>(&self, key: &str) -> Result<Option<T>, Error> {
        self.value_at(key).map(|at| read(self.stream, at, key)).transpose()
    }

    /// The dictionary that is the value of a key: an info in an info; `None` if the row does not
    /// have the key, or has another value there.
    ///
    /// # Errors
    ///
    /// [`Error::MalformedInfo`], as [`Batch::infos`](crate::Batch::infos).
    pub fn dict(&self, key: &str) -> Result<Option<Self>, Error> {
        let Some(at) = self.value_at(key) else { return Ok(None) };
        let mut reader = InfoReader::new(self.stream, at);
        let Value::Dict(count) = reader.value()? else { return Ok(None) };
        let mut entries = Vec::new();
        for _ in 0..count {
            let entry = reader.entry()?;
            entries.push((entry.key, entry.value_at));
            reader.skip()?;
        }
        Ok(Some(Self { entries, stream: self.stream }))
    }

    /// The bytes of the value of a key.
    pub(crate) fn value(&self, key: &str) -> Option<&'a [u8]> {
        let at = self.value_at(key)?;
        let mut reader = InfoReader::new(self.stream, at);
        reader.skip().ok()?;
        Some(&self.stream[at..reader.at()])
    }

    /// The stream in which values lie.
    pub(super) fn stream(&self) -> &'a [u8] {
        self.stream
    }
}

/// The value at an offset of a stream.
fn read<T: Parameter + Default>(stream: &[u8], at: usize, key: &str) -> Result<T, Error> {
    let of_key = |error: Error| match error {
        Error::BadParameter(what) => Error::BadParameter(format!("info {key:?} {what}")),
        other => other,
    };
    let value = ParameterValue::read(&mut InfoReader::new(stream, at)).map_err(of_key)?;
    let mut typed = T::default();
    typed.set(value).map_err(of_key)?;
    Ok(typed)
}
