//! Infos of a batch: from the shards' streams to Gymnasium's dictionary of arrays.

use cartwheel::info::{Columns, Content, InfoReader, Irregular, Kind, ObjectAt, Record};
use cartwheel::space::DType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString};

use crate::array::from_bytes;
use crate::error::to_py_err;
use crate::value::Decoder;

/// An observation part without a fixed shape: its row, its number and where its value lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpaqueAt {
    pub(crate) part: usize,
    pub(crate) at: ObjectAt,
}

/// The infos of one batch after another; keeps its buffers.
#[derive(Debug)]
pub(crate) struct Infos {
    rows: usize,
    columns: Columns,
    /// One stream a shard.
    pub(crate) streams: Vec<Vec<u8>>,
    /// Opaque observation parts found in the streams.
    pub(crate) opaque: Vec<OpaqueAt>,
    /// The objects that a shard of this process keeps; none for process workers.
    objects: Vec<Option<Py<PyList>>>,
    /// Whether Gymnasium's `_add_info` may be replaced by columns: it is not overridden.
    columnar: bool,
}

impl Infos {
    pub(crate) fn new(rows: usize, objects: Vec<Option<Py<PyList>>>, columnar: bool) -> Self {
        Self {
            rows,
            columns: Columns::new(rows),
            streams: vec![Vec::new(); objects.len()],
            opaque: Vec::new(),
            objects,
            columnar,
        }
    }

    /// The dictionary of the batch whose streams were loaded. `link` adds one info to another by
    /// Gymnasium's own rule where the batch is not a regular one.
    pub(crate) fn gather<'py>(
        &mut self,
        py: Python<'py>,
        link: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.columns.clear();
        self.opaque.clear();
        let mut outcome = Ok(());
        for (shard, stream) in self.streams.iter().enumerate() {
            let opaque = &mut self.opaque;
            let added = self.columns.add_stream(shard, stream, |row, part, value_at| {
                opaque.push(OpaqueAt { part, at: ObjectAt { row, shard, value_at } });
            });
            outcome = outcome.and(added.map_err(to_py_err)?);
        }
        let empty = outcome.is_ok() && self.columns.is_empty();
        if empty {
            return Ok(PyDict::new(py));
        }
        match outcome {
            Ok(()) if self.columnar => self.columns_to_dict(py, &self.columns),
            Ok(()) | Err(Irregular) => self.gather_one_by_one(py, link),
        }
    }

    fn columns_to_dict<'py>(
        &self,
        py: Python<'py>,
        columns: &Columns,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for column in columns.iter() {
            let values = match &column.content {
                Content::Array { dtype, shape, elements } => {
                    from_bytes(py, *dtype, Some(self.rows), shape, elements)?
                }
                Content::Objects(objects) => self.objects_to_array(py, objects)?,
                Content::Group(group) => self.columns_to_dict(py, group)?.into_any(),
            };
            let mask = from_bytes(py, DType::Bool, Some(self.rows), &[], &column.mask)?;
            dict.set_item(PyString::intern(py, &column.key), values)?;
            dict.set_item(PyString::intern(py, &column.mask_key), mask)?;
        }
        Ok(dict)
    }

    fn objects_to_array<'py>(
        &self,
        py: Python<'py>,
        objects: &[ObjectAt],
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = empty_objects(py, self.rows)?;
        for object in objects {
            array.set_item(object.row, self.value(py, *object)?)?;
        }
        Ok(array)
    }

    /// The value at a place in a shard's stream.
    pub(crate) fn value<'py>(&self, py: Python<'py>, at: ObjectAt) -> PyResult<Bound<'py, PyAny>> {
        let mut reader = InfoReader::new(&self.streams[at.shard], at.value_at);
        self.decoder(py, at.shard)?.value(&mut reader)
    }

    fn decoder<'py>(&self, py: Python<'py>, shard: usize) -> PyResult<Decoder<'py>> {
        static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let unpickle = LOADS.import(py, "pickle", "loads")?.clone();
        let objects = self.objects[shard].as_ref().map(|objects| objects.bind(py).clone());
        Ok(Decoder { unpickle, objects })
    }

    /// Every info on its own, added by Gymnasium's function.
    fn gather_one_by_one<'py>(
        &self,
        py: Python<'py>,
        link: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut gathered = PyDict::new(py).into_any();
        for (shard, stream) in self.streams.iter().enumerate() {
            let mut reader = InfoReader::new(stream, 0);
            while let Some(record) = reader.record().map_err(to_py_err)? {
                if record.kind != Kind::Opaque {
                    let info = info_of(py, record, &self.decoder(py, shard)?, &mut reader)?;
                    let add = intern!(py, "add_info");
                    gathered = link.call_method1(add, (gathered, info, record.row))?;
                }
                reader = InfoReader::new(stream, record.end);
            }
        }
        Ok(gathered.cast_into::<PyDict>()?)
    }
}

fn info_of<'py>(
    py: Python<'py>,
    record: Record,
    decoder: &Decoder<'py>,
    reader: &mut InfoReader<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    if record.kind == Kind::Whole {
        return decoder.value(reader);
    }
    let info = PyDict::new(py);
    while reader.at() < record.end {
        let key = reader.entry().map_err(to_py_err)?.key;
        info.set_item(key, decoder.value(reader)?)?;
    }
    Ok(info.into_any())
}

/// An array of objects, all `None`, shape `[rows]`.
fn empty_objects(py: Python<'_>, rows: usize) -> PyResult<Bound<'_, PyAny>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "dtype"), intern!(py, "object"))?;
    EMPTY.import(py, "numpy", "empty")?.call((rows,), Some(&keywords))
}
