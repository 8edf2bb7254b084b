//! Infos of a batch: from the streams of shards or rows to Gymnasium's dictionary of arrays.

use cartwheel_engine::info::{
    Content, InfoColumns, InfoReader, Irregular, ObjectAt, Record, RecordKind, TERMINAL,
};
use cartwheel_engine::memory::Lease;
use cartwheel_engine::pool::ReceivedRows;
use cartwheel_engine::space::DType;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::array::{Block, Objects};
use crate::error::{to_py_err, unreadable};
use crate::known::{imported, intern};
use crate::value::Decoder;

/// An observation part without a fixed shape: its number, its row and the offset of its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpaqueAt {
    pub(crate) part: usize,
    pub(crate) at: ObjectAt,
}

/// The infos of successive batches; keeps its buffers.
#[derive(Debug)]
pub(crate) struct Infos {
    /// Number of rows of the batch.
    pub(crate) rows: usize,
    columns: InfoColumns,
    /// One stream for each shard that has infos; for sent rows, one for each row that announces some.
    /// The streams of this batch come first.
    pub(crate) streams: Vec<Vec<u8>>,
    /// Number of streams that belong to this batch.
    pub(super) num_streams: usize,
    /// In a batch of sent rows, the place of each row; entries of other rows are meaningless.
    places: Option<Vec<usize>>,
    /// Opaque observation parts found in the streams.
    pub(crate) opaque: Vec<OpaqueAt>,
    /// The objects that rows of this process keep; `None` for process workers.
    objects: Vec<Option<Py<PyList>>>,
    /// Whether columns may replace Gymnasium's `_add_info`, which must not be overridden.
    columnar: bool,
    /// Whether native environments write the streams: they have no Python objects.
    pub(super) is_native: bool,
}

impl Infos {
    pub(crate) fn new(objects: Vec<Option<Py<PyList>>>, columnar: bool, is_native: bool) -> Self {
        let rows = objects.len();
        Self {
            rows,
            columns: InfoColumns::new(rows),
            streams: Vec::new(),
            num_streams: 0,
            places: None,
            opaque: Vec::new(),
            objects,
            columnar,
            is_native,
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.objects.iter().try_for_each(|objects| visit.call(objects))
    }

    /// Begins a batch of these rows, with this many streams.
    pub(crate) fn begin(&mut self, rows: &ReceivedRows, streams: usize) {
        self.rows = rows.iter().len();
        self.num_streams = streams;
        if self.streams.len() < streams {
            self.streams.resize(streams, Vec::new());
        }
        let Some(rows) = rows.sent() else {
            self.places = None;
            return;
        };
        let places = self.places.get_or_insert_default();
        places.resize(self.objects.len(), 0);
        if streams == 0 {
            return; // places are not needed
        }
        for (place, &row) in rows.iter().enumerate() {
            places[row] = place;
        }
    }

    /// The dictionary of the batch whose streams were loaded. Where the batch is not regular,
    /// `callbacks` adds one info after the other by Gymnasium's own rule.
    pub(crate) fn gather<'py>(
        &mut self,
        py: Python<'py>,
        callbacks: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.columns.begin(self.rows);
        self.opaque.clear();
        let mut outcome = Ok(());
        for (number, stream) in self.streams[..self.num_streams].iter().enumerate() {
            let (opaque, places) = (&mut self.opaque, &self.places);
            let place_of = |row| place_of(places.as_deref(), row);
            let added = self.columns.add_stream(number, stream, place_of, |part, at| {
                opaque.push(OpaqueAt { part, at });
            });
            let refused = if self.is_native { unreadable } else { to_py_err };
            outcome = outcome.and(added.map_err(refused)?);
        }
        let empty = outcome.is_ok() && self.columns.is_empty();
        if empty {
            return Ok(PyDict::new(py));
        }
        match outcome {
            Ok(()) if self.columnar => self.columns_to_dict(py, &self.columns),
            Ok(()) | Err(Irregular) => self.gather_one_by_one(py, callbacks),
        }
    }

    fn columns_to_dict<'py>(
        &self,
        py: Python<'py>,
        columns: &InfoColumns,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for column in columns.iter() {
            let values = match &column.content {
                Content::Array { elements, .. } => elements.len(),
                Content::Objects(_) | Content::Group(_) => 0,
            };
            // Of one column alone: a number that is kept must not keep images of another key.
            let block = Block::new(py, Block::space(values) + Block::space(column.mask.len()))?;
            let values = match &column.content {
                Content::Array { dtype, shape, elements } => {
                    block.with_elements(py, *dtype, self.rows, shape, elements)?
                }
                Content::Objects(objects) => self.objects_to_array(py, objects)?,
                Content::Group(group) => self.columns_to_dict(py, group)?.into_any(),
            };
            let mask = block.with_elements(py, DType::Bool, self.rows, &[], &column.mask)?;
            // Not interned: Python 3.12 and later keep such strings forever.
            dict.set_item(&column.key, values)?;
            dict.set_item(&column.mask_key, mask)?;
        }
        Ok(dict)
    }

    fn objects_to_array<'py>(
        &self,
        py: Python<'py>,
        objects: &[ObjectAt],
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = Objects::new(py, self.rows)?;
        for object in objects {
            array.set(object.place, self.value(py, *object)?);
        }
        Ok(array.array())
    }

    /// The value at a position in a stream.
    pub(crate) fn value<'py>(&self, py: Python<'py>, at: ObjectAt) -> PyResult<Bound<'py, PyAny>> {
        let mut reader = InfoReader::new(&self.streams[at.stream], at.value_at);
        self.decoder(py, at.row).value(&mut reader)
    }

    /// The place of a row in the batch; of a row that it lacks, that of another one or `None`.
    pub(super) fn place_of(&self, row: usize) -> Option<usize> {
        place_of(self.places.as_deref(), row)
    }

    pub(super) fn decoder<'py>(&self, py: Python<'py>, row: usize) -> Decoder<'py> {
        if self.is_native {
            return Decoder::plain(py);
        }
        let unpickle = Some(imported!(py, "pickle", "loads").clone());
        let objects = self.objects.get(row).and_then(Option::as_ref);
        let objects = objects.map(|objects| objects.bind(py).clone());
        Decoder { py, unpickle, objects, copies: false, row }
    }

    /// Adds every info separately, with Gymnasium's function.
    fn gather_one_by_one<'py>(
        &self,
        py: Python<'py>,
        callbacks: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut gathered = PyDict::new(py).into_any();
        for stream in &self.streams[..self.num_streams] {
            let mut reader = InfoReader::new(stream, 0);
            while let Some(record) = reader.record().map_err(to_py_err)? {
                if record.kind != RecordKind::Opaque {
                    let info = info_of(py, record, &self.decoder(py, record.row), &mut reader)?;
                    let place = self.place_of(record.row).expect("the columns took the record");
                    let add = intern!(py, "add_info");
                    gathered = callbacks.call_method1(add, (gathered, info, place, self.rows))?;
                }
                reader = InfoReader::new(stream, record.end);
            }
        }
        Ok(gathered.cast_into::<PyDict>()?)
    }
}

/// See [`Infos::place_of`].
fn place_of(places: Option<&[usize]>, row: usize) -> Option<usize> {
    places.map_or(Some(row), |places| places.get(row).copied())
}

pub(super) fn info_of<'py>(
    py: Python<'py>,
    record: Record,
    decoder: &Decoder<'py>,
    reader: &mut InfoReader<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    if record.kind == RecordKind::Whole {
        return decoder.value(reader);
    }
    let info = PyDict::new(py);
    while reader.at() < record.end {
        let key = reader.entry().map_err(|error| decoder.refused(error))?.key;
        info.set_item(key, decoder.value(reader)?)?;
    }
    Ok(info.into_any())
}

/// The form of final observations in infos.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FinalsForm {
    /// Whether every step has those of all rows, in arrays.
    pub(crate) dense: bool,
    /// Whether they have `ManiSkill`'s names, too.
    pub(crate) maniskill: bool,
}

impl FinalsForm {
    /// Two masks of the rows whose episode ended, where final observations are dense; `mask` makes one
    /// of the flags at an offset.
    pub(super) fn ended<'py>(
        self,
        lease: &Lease,
        mask: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Option<[Bound<'py, PyAny>; 2]>> {
        let offset = lease.layout().ended_offset().filter(|_| self.dense);
        offset.map(|offset| Ok([mask(offset)?, mask(offset)?])).transpose()
    }
}

/// Additions to the infos of a step.
#[derive(Debug)]
pub(crate) struct Finals<'py> {
    pub(super) form: FinalsForm,
    /// The true next observations of all rows, where they are dense.
    pub(super) observations: Option<Bound<'py, PyAny>>,
    /// Masks of the rows whose episode ended, where final observations are dense.
    pub(super) ended: Option<[Bound<'py, PyAny>; 2]>,
    /// Frames of terminal states, and their mask, if there are some.
    pub(super) frames: Option<[Bound<'py, PyAny>; 2]>,
}

impl<'py> Finals<'py> {
    /// Adds all of them to the infos of a step.
    pub(super) fn add_to(self, infos: &Bound<'py, PyDict>) -> PyResult<()> {
        let py = infos.py();
        let (key, mask_key) = (intern!(py, "final_obs"), intern!(py, "_final_obs"));
        if let (Some(observations), Some([mask, info_mask])) = (self.observations, self.ended) {
            infos.set_item(key, observations)?;
            infos.set_item(mask_key, mask)?;
            let info_key = intern!(py, "final_info");
            if !infos.contains(info_key)? {
                infos.set_item(info_key, PyDict::new(py))?;
            }
            infos.set_item(intern!(py, "_final_info"), info_mask)?;
        }
        if self.form.maniskill
            && let (Some(observations), Some(mask)) =
                (infos.get_item(key)?, infos.get_item(mask_key)?)
        {
            infos.set_item(intern!(py, "final_observation"), observations)?;
            infos.set_item(intern!(py, "_final_observation"), mask)?;
        }
        if let Some([frames, mask]) = self.frames {
            infos.set_item(intern!(py, "final_frame"), frames)?;
            infos.set_item(intern!(py, "_final_frame"), mask)?;
        }
        Ok(())
    }
}

/// The frames of terminal states that a batch has, as an array of objects, and their mask. Native
/// environments may have kept their parameters instead, from which `callbacks` draws, unless an
/// environment was replaced since.
pub(super) fn terminal_frames<'py>(
    callbacks: &Bound<'py, PyAny>,
    infos: &Infos,
) -> PyResult<Option<[Bound<'py, PyAny>; 2]>> {
    let py = callbacks.py();
    let mut kept: Vec<_> = infos.opaque.iter().filter(|opaque| opaque.part == TERMINAL).collect();
    if kept.is_empty() {
        return Ok(None);
    }
    let values = kept.iter().map(|opaque| infos.value(py, opaque.at));
    let mut frames = values.collect::<PyResult<Vec<_>>>()?;
    if infos.is_native {
        let rows: Vec<_> = kept.iter().map(|opaque| opaque.at.row).collect();
        let drawn = callbacks.call_method1(intern!(py, "draw_terminal"), (rows, frames))?;
        let drawn = drawn.cast_into::<PyList>()?;
        (kept, frames) = kept.into_iter().zip(&drawn).filter(|(_, frame)| !frame.is_none()).unzip();
        if kept.is_empty() {
            return Ok(None);
        }
    }
    let array = Objects::new(py, infos.rows)?;
    for (opaque, frame) in kept.iter().zip(frames) {
        array.set(opaque.at.place, frame);
    }
    let block = Block::new(py, Block::space(infos.rows))?;
    let mask = block.filled(py, DType::Bool, infos.rows, &[], |buffer| {
        for opaque in &kept {
            buffer[opaque.at.place] = 1;
        }
    })?;
    Ok(Some([array.array(), mask]))
}
