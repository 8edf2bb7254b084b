//! The infos of a task: what the plugin wrote, and what the host adds.
//!
//! The plugin writes at most one record for a row in each round. The host adds records in the order
//! of rows: `env_error` in front of the record of a row whose environment was replaced; and in
//! `SAME_STEP` one record with `final_obs` and `final_info`, the plugin's own record of the last step,
//! in front of the record of the reset. Most tasks have nothing to add: then nothing is copied.

use std::ops::Range;

use cartwheel_core::space::Space;

use super::mailbox::ExternalInfo;
use crate::info::{InfoReader, InfoWriter, RecordKind};
use crate::memory::LeafColumns;
use crate::plugin::{Bytes, entries_of};

/// The infos of a task; keeps its buffers.
#[derive(Debug)]
pub(super) struct RowInfos {
    /// The plugin's records, with those of replaced rows.
    plugin: Bytes,
    /// The records of the first round of a step in `SAME_STEP`.
    first: InfoWriter,
    spare: InfoWriter,
    /// Whether `first` counts.
    has_finals: bool,
    /// The records of rows that earlier rounds of a repeated step finished.
    finished: InfoWriter,
    /// A row, and where the records of the rows before it end.
    passed: (usize, usize),
}

impl RowInfos {
    pub(super) fn new() -> Self {
        let [first, spare, finished] = [(); 3].map(|()| InfoWriter::new());
        let plugin = Bytes::new();
        Self { plugin, first, spare, has_finals: false, finished, passed: (0, 0) }
    }

    pub(super) fn clear(&mut self) {
        self.plugin.clear();
        self.finished.clear();
        self.has_finals = false;
        self.passed = (0, 0);
    }

    /// The stream of the task.
    pub(super) fn stream(&self) -> &[u8] {
        if self.has_finals { self.first.stream() } else { self.plugin.bytes() }
    }

    /// Memory that the plugin writes.
    pub(super) fn plugin(&mut self) -> &mut Bytes {
        &mut self.plugin
    }

    /// Between two rounds of a step that repeats its action: drops the records of rows that go on,
    /// because only their last infos are reported, and keeps the others for
    /// [`RowInfos::join_finished`].
    pub(super) fn drop_of(&mut self, goes_on: impl Fn(usize) -> bool) {
        let Self { plugin, first, spare, finished, .. } = self;
        if plugin.bytes().is_empty() {
            return;
        }
        let mut rest = Records { stream: plugin.bytes(), at: 0 };
        first.clear();
        while let Some((row, found)) = rest.peek() {
            rest.at = found.whole.end;
            if !goes_on(row) {
                first.append(&plugin.bytes()[found.whole]);
            }
        }
        spare.clear();
        merge(finished.stream(), first.stream(), spare);
        std::mem::swap(finished, spare);
        plugin.clear();
    }

    /// After the last of these rounds: adds the records that were kept.
    pub(super) fn join_finished(&mut self) {
        if self.finished.stream().is_empty() {
            return;
        }
        self.spare.clear();
        merge(self.finished.stream(), self.plugin.bytes(), &mut self.spare);
        self.plugin.replace(self.spare.stream());
        self.finished.clear();
    }

    /// Adds why the environments of these rows were replaced, before the records of the rows.
    pub(super) fn add_errors(&mut self, replaced: &[(usize, String)]) {
        let mut errors = InfoWriter::new();
        for (row, message) in replaced {
            let record = errors.begin(RecordKind::Info, *row, 0);
            errors.key("env_error");
            errors.text(message);
            errors.end(record);
        }
        self.add(errors.stream());
    }

    /// Adds infos that the owner of the pool computed for these rows, in ascending order and counted from
    /// row `number`, to the records of the rows.
    pub(super) fn add_external(
        &mut self,
        infos: &[ExternalInfo],
        number: usize,
        rows: impl Iterator<Item = usize>,
    ) {
        let Self { plugin, spare, .. } = self;
        let stream = plugin.bytes();
        let mut rest = Records { stream, at: 0 };
        spare.clear();
        for at in rows {
            let row = number + at;
            spare.append(&stream[rest.before(row)]);
            let own = rest.take(row);
            if let Some(Found { kind: RecordKind::Whole, whole, .. }) = &own {
                spare.append(&stream[whole.clone()]);
            }
            let record = spare.begin(RecordKind::Info, row, 0);
            match own {
                None | Some(Found { kind: RecordKind::Whole, .. }) => {}
                Some(own) => spare.append(&stream[own.body]),
            }
            for info in infos {
                spare.key(&info.name);
                info.write(at, spare);
            }
            spare.end(record);
        }
        spare.append(&stream[rest.at..]);
        plugin.replace(spare.stream());
    }

    /// Adds records in the order of rows, before those of the same rows.
    pub(super) fn add(&mut self, records: &[u8]) {
        self.spare.clear();
        merge(records, self.plugin.bytes(), &mut self.spare);
        self.plugin.replace(self.spare.stream());
    }

    /// The first record: its kind, and what it holds.
    pub(super) fn first(&self) -> Option<(RecordKind, &[u8])> {
        let stream = self.plugin.bytes();
        let (_, found) = Records { stream, at: 0 }.peek()?;
        Some((found.kind, &stream[found.body]))
    }

    /// Whether no row has an info.
    pub(super) fn is_empty(&self) -> bool {
        self.plugin.bytes().is_empty()
    }

    /// Makes `final_obs` and `final_info` for rows that ended their episode, from what they show and
    /// from their records; without `final_obs`, a row that has no record gets no `final_info`.
    pub(super) fn keep_finals(&mut self, finals: Finals<'_>) -> Result<(), String> {
        let Finals { ended, number, space, leaves, replaced, state } = finals;
        let Self { plugin, first: made, .. } = self;
        let stream = plugin.bytes();
        let mut rest = Records { stream, at: 0 };
        made.clear();
        for &at in ended {
            let row = number + at;
            made.append(&stream[rest.before(row)]);
            if replaced.iter().any(|(replaced, _)| *replaced == row) {
                made.append(rest.take(row).map_or(&[], |error| &stream[error.whole]));
            }
            let info = rest.take(row);
            state(at, made);
            if leaves.is_none() && info.is_none() {
                continue;
            }
            let record = made.begin(RecordKind::Info, row, 0);
            if let Some(leaves) = leaves {
                made.key("final_obs");
                space.write_value(&|leaf| leaves.bytes(leaf, at..at + 1), &mut 0, made);
            }
            made.key("final_info");
            match info {
                None => made.dict(0),
                Some(Found { kind: RecordKind::Whole, body, .. }) => made.append(&stream[body]),
                Some(Found { body, .. }) => {
                    made.dict(entries_of(stream, body.clone())?);
                    made.append(&stream[body]);
                }
            }
            made.end(record);
        }
        made.append(&stream[rest.at..]);
        self.plugin.clear();
        self.has_finals = true;
        Ok(())
    }

    /// Adds the records of the resets, which the plugin has written since, after the final records.
    pub(super) fn join_resets(&mut self) {
        if !self.has_finals || self.plugin.bytes().is_empty() {
            return; // without final records, those of the resets are the only ones
        }
        self.spare.clear();
        merge(self.first.stream(), self.plugin.bytes(), &mut self.spare);
        std::mem::swap(&mut self.first, &mut self.spare);
    }

    /// The part of the stream that belongs to these rows, once everything is added. Rows are asked
    /// for in ascending order, so that no record is passed twice.
    pub(super) fn of(&mut self, rows: &Range<usize>) -> &[u8] {
        let start = self.pass(rows.start);
        let end = self.pass(rows.end);
        &self.stream()[start..end]
    }

    /// The first of these rows that has a record; asked for as in [`RowInfos::of`].
    pub(super) fn first_of(&mut self, rows: &Range<usize>) -> Option<usize> {
        let at = self.pass(rows.start);
        let (row, _) = Records { stream: self.stream(), at }.peek()?;
        rows.contains(&row).then_some(row)
    }

    /// End of the records of the rows before `row`.
    fn pass(&mut self, row: usize) -> usize {
        let at = if self.passed.0 <= row { self.passed.1 } else { 0 };
        let mut rest = Records { stream: self.stream(), at };
        self.passed = (row, rest.before(row).end);
        self.passed.1
    }
}

/// Rows that ended their episode, see [`RowInfos::keep_finals`].
pub(super) struct Finals<'a> {
    /// The rows, counted from the first row of the task.
    pub(super) ended: &'a [usize],
    /// The number of that row in infos.
    pub(super) number: usize,
    pub(super) space: &'a Space,
    /// The observations of the rows; `None` where their final observations need no infos.
    pub(super) leaves: Option<&'a LeafColumns<'a>>,
    /// As for [`RowInfos::add_errors`].
    pub(super) replaced: &'a [(usize, String)],
    /// Writes the record of the terminal state of a row, if there is one.
    pub(super) state: &'a mut dyn FnMut(usize, &mut InfoWriter),
}

/// A position in a stream of records whose heads were checked.
struct Records<'a> {
    stream: &'a [u8],
    at: usize,
}

/// A record.
struct Found {
    kind: RecordKind,
    whole: Range<usize>,
    body: Range<usize>,
}

impl Records<'_> {
    /// The next record and its row.
    fn peek(&self) -> Option<(usize, Found)> {
        let mut reader = InfoReader::new(self.stream, self.at);
        let record = reader.record().ok()??;
        let (body, whole) = (reader.at()..record.end, self.at..record.end);
        Some((record.row, Found { kind: record.kind, whole, body }))
    }

    /// Skips the records of rows before `row`, and returns where they are.
    fn before(&mut self, row: usize) -> Range<usize> {
        let start = self.at;
        while let Some((_, found)) = self.peek().filter(|(other, _)| *other < row) {
            self.at = found.whole.end;
        }
        start..self.at
    }

    /// Takes the next record, if it is of this row.
    fn take(&mut self, row: usize) -> Option<Found> {
        let (_, found) = self.peek().filter(|(other, _)| *other == row)?;
        self.at = found.whole.end;
        Some(found)
    }
}

/// Merges two streams in the order of rows; of one row, the records of `first` come first.
fn merge(first: &[u8], second: &[u8], into: &mut InfoWriter) {
    let (mut rest, mut other) =
        (Records { stream: first, at: 0 }, Records { stream: second, at: 0 });
    while let Some((row, found)) = other.peek() {
        into.append(&first[rest.before(row + 1)]);
        into.append(&second[found.whole.clone()]);
        other.at = found.whole.end;
    }
    into.append(&first[rest.at..]);
}
