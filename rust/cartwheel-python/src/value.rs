//! Python values in info streams, written and read with their exact types.

use cartwheel_core::Error as EnvError;
use cartwheel_engine::info::{
    DEEPEST, InfoReader, InfoWriter, LARGEST_PART, MAX_DIMENSIONS, RecordAt, Value,
};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::array::{self, dtype};
use crate::error::{noted, to_py_err, unreadable};
use crate::known::{imported, intern};

/// The way of values that have no form in a stream.
#[derive(Debug)]
pub(crate) enum Foreign {
    /// This callable pickles them: the reader is another process. The number is the most bytes
    /// of a stream that can be sent to it.
    Pickled(Py<PyAny>, usize),
    /// They are kept, in a list for each row, and the stream holds their number: the reader is in
    /// this process.
    Kept(Vec<Py<PyList>>),
}

impl Foreign {
    /// Tells Python's garbage collector which objects it keeps.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Pickled(pickle, _) => visit.call(pickle),
            Self::Kept(objects) => objects.iter().try_for_each(|objects| visit.call(objects)),
        }
    }

    /// Drops the objects kept for a row, counted from the first row of the shard.
    pub(crate) fn forget(&self, py: Python<'_>, row: usize) -> PyResult<()> {
        if let Self::Kept(objects) = self {
            let objects = objects[row].bind(py);
            if !objects.is_empty() {
                objects.call_method0(intern!(py, "clear"))?;
            }
        }
        Ok(())
    }

    /// Ends a record whose values were `written`. Removes it, with what there is of them, if an error
    /// came in between, or if the stream is larger now than a message to the reader may be.
    pub(crate) fn end(
        &self,
        writer: &mut InfoWriter,
        record: RecordAt,
        written: PyResult<()>,
    ) -> PyResult<()> {
        let written = written.and_then(|()| match self {
            Self::Pickled(_, max) => check_size(writer.stream().len(), *max),
            Self::Kept(_) if writer.fits(&record) => Ok(()),
            Self::Kept(_) => Err(PyValueError::new_err(format!(
                "the infos of this row have more than {LARGEST_PART} bytes: return smaller ones"
            ))),
        });
        writer.end_if(record, written)
    }

    fn write(
        &self,
        row: usize,
        writer: &mut InfoWriter,
        value: &Bound<'_, PyAny>,
        snapshot: bool,
    ) -> PyResult<()> {
        let py = value.py();
        match self {
            Self::Pickled(pickle, max) => {
                let bytes = pickle.bind(py).call1((value,))?.cast_into::<PyBytes>()?;
                check_size(writer.stream().len() + bytes.as_bytes().len(), *max)?;
                writer.foreign(bytes.as_bytes());
            }
            Self::Kept(objects) => {
                let objects = objects[row].bind(py);
                writer.object(objects.len());
                objects.append(if snapshot { copied(value)? } else { value.clone() })?;
            }
        }
        Ok(())
    }
}

/// Refuses infos of a worker process that are larger than what it can send.
fn check_size(bytes: usize, max: usize) -> PyResult<()> {
    if bytes <= max {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "the infos of this worker's rows have {bytes} bytes with those of this row, and a worker process \
         can send {max}: return smaller infos, or use more workers"
    )))
}

/// A deep copy, or the value itself when it cannot be copied. The error is a Ctrl-C in between.
fn copied<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    match imported!(py, "copy", "deepcopy").call1((value,)) {
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(value.clone()),
        copy => copy,
    }
}

/// Writes values of one row. With `snapshot`, objects that are kept by reference are copied first.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    writer: &'a mut InfoWriter,
    foreign: &'a Foreign,
    row: usize,
    snapshot: bool,
    /// Set when a value was found for which only Gymnasium's own function knows the column: an
    /// array, array scalar or integer without its own form, or a dictionary with odd keys.
    pub(crate) irregular: bool,
    /// Set when a container was found that contains itself, until the outermost one was written.
    circular: bool,
    /// The keys of the value that cannot be written, each in brackets, from the inside to the outside.
    keys: Vec<String>,
}

/// The containers that a value is in, from the inside to the outside.
#[derive(Debug, Clone, Copy)]
struct Within<'a> {
    container: *mut pyo3::ffi::PyObject,
    outer: Option<&'a Within<'a>>,
}

/// Whether a value is one of the containers that it is in.
fn contains_itself(value: &Bound<'_, PyAny>, mut within: Option<&Within<'_>>) -> bool {
    while let Some(&Within { container, outer }) = within {
        if container == value.as_ptr() {
            return true;
        }
        within = outer;
    }
    false
}

impl<'a> Encoder<'a> {
    /// Writes to `writer`; `row` is counted from the first row of the shard.
    pub(crate) fn new(
        writer: &'a mut InfoWriter,
        foreign: &'a Foreign,
        row: usize,
        snapshot: bool,
    ) -> Self {
        let keys = Vec::new();
        Self { writer, foreign, row, snapshot, irregular: false, circular: false, keys }
    }

    pub(crate) fn value(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.nested(value, DEEPEST, None)
    }

    fn nested(
        &mut self,
        value: &Bound<'_, PyAny>,
        depth: usize,
        within: Option<&Within<'_>>,
    ) -> PyResult<()> {
        if let Ok(float) = value.cast_exact::<PyFloat>() {
            self.writer.float(float.value());
        } else if let Ok(flag) = value.cast_exact::<PyBool>() {
            self.writer.bool(flag.is_true());
        } else if let Ok(int) = value.cast_exact::<PyInt>() {
            match int.extract::<i64>() {
                Ok(int) => self.writer.int(int),
                Err(_) => self.foreign(value)?,
            }
        } else if let Ok(text) = value.cast_exact::<PyString>() {
            match text.to_str() {
                Ok(text) if text.len() <= LARGEST_PART => self.writer.text(text),
                _ => self.foreign(value)?, // it has lone surrogates, or is too long
            }
        } else if value.is_none() {
            self.writer.none();
        } else if let Some((dtype, bytes)) = array::scalar(value)? {
            self.writer.scalar(dtype, &bytes[..dtype.size()]);
        } else if let Ok(array) = value.cast_exact::<PyUntypedArray>() {
            self.array(array)?;
        } else if depth > 0
            && (value.is_exact_instance_of::<PyDict>()
                || value.is_exact_instance_of::<PyTuple>()
                || value.is_exact_instance_of::<PyList>())
        {
            self.container(value, depth, within)?;
        } else {
            self.foreign(value)?;
        }
        Ok(())
    }

    /// Writes a dictionary, a tuple or a list. If one contains itself, the outermost one is pickled, or
    /// kept, as a whole: part by part, two references to itself would be written 2 ^ `DEEPEST` times.
    fn container(
        &mut self,
        value: &Bound<'_, PyAny>,
        depth: usize,
        outer: Option<&Within<'_>>,
    ) -> PyResult<()> {
        if contains_itself(value, outer) {
            self.circular = true;
            return Ok(());
        }
        let begin = self.writer.stream().len();
        self.parts(value, depth, Some(&Within { container: value.as_ptr(), outer }))?;
        if self.circular && outer.is_none() {
            self.circular = false;
            self.writer.truncate(begin);
            self.foreign(value)?;
        }
        Ok(())
    }

    fn parts(
        &mut self,
        value: &Bound<'_, PyAny>,
        depth: usize,
        within: Option<&Within<'_>>,
    ) -> PyResult<()> {
        let parts = if let Ok(dict) = value.cast_exact::<PyDict>() {
            if !self.dict(dict, depth, within)? {
                self.foreign(value)?;
            }
            return Ok(());
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            let parts = list.to_tuple(); // other threads, and pickling, may change the list
            self.writer.list(parts.len());
            parts
        } else {
            let parts = value.cast::<PyTuple>()?.clone();
            self.writer.tuple(parts.len());
            parts
        };
        for part in parts {
            self.nested(&part, depth - 1, within)?;
            if self.circular {
                break;
            }
        }
        Ok(())
    }

    fn foreign(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.irregular |= value.is_instance_of::<PyInt>()
            || value.is_instance_of::<PyDict>()
            || value.is_instance_of::<PyUntypedArray>()
            || dtype::is_scalar(value)?;
        self.foreign.write(self.row, self.writer, value, self.snapshot)
    }

    fn array(&mut self, array: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
        let fits = array.ndim() <= MAX_DIMENSIONS
            && array.shape().iter().all(|&dimension| u32::try_from(dimension).is_ok());
        let Some(dtype) = dtype::from_descr(&array.dtype()).filter(|_| fits) else {
            return self.foreign(array.as_any());
        };
        // Before a large array is copied.
        let bytes = array.len().saturating_mul(dtype.size());
        match self.foreign {
            Foreign::Kept(_) if bytes > LARGEST_PART => return self.foreign(array.as_any()),
            Foreign::Pickled(_, max) => check_size(self.writer.stream().len() + bytes, *max)?,
            Foreign::Kept(_) => {}
        }
        if !array.is_c_contiguous() {
            let contiguous = array.call_method1(intern!(array.py(), "copy"), ("C",))?;
            return self.array(contiguous.cast_exact::<PyUntypedArray>()?);
        }
        self.writer.fill_array(dtype, array.shape(), |buffer| array::copy_bytes(array, 0, buffer));
        Ok(())
    }

    /// Writes a dictionary as a value; returns `false`, and writes nothing, when its keys are not
    /// all text.
    fn dict(
        &mut self,
        dict: &Bound<'_, PyDict>,
        depth: usize,
        within: Option<&Within<'_>>,
    ) -> PyResult<bool> {
        with_critical_section(dict, || {
            if !has_text_keys(dict) {
                return Ok(false);
            }
            self.writer.dict(dict.len());
            self.entries(dict, depth, within)?;
            Ok(true)
        })
    }

    /// Writes the keys and values of an info that [`has_text_keys`]. An exception has a note that names
    /// the key.
    pub(crate) fn info(&mut self, info: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = info.py();
        self.entries(info, DEEPEST, None).map_err(|error| {
            if self.keys.is_empty() || !error.is_instance_of::<PyException>(py) {
                return error;
            }
            let keys: String = self.keys.drain(..).rev().collect();
            noted(py, error, &format!("at info{keys}, {UNSENT}"))
        })
    }

    /// Writes the keys and values of a dictionary that [`has_text_keys`]. To pickle or copy a value runs
    /// code, which may change the dictionary; PyO3's iterator would panic then.
    fn entries(
        &mut self,
        dict: &Bound<'_, PyDict>,
        depth: usize,
        within: Option<&Within<'_>>,
    ) -> PyResult<()> {
        let (count, mut entries) = (dict.len(), dict.iter());
        for _ in 0..count {
            let entry = if dict.len() == count { entries.next() } else { None };
            let changed = || PyRuntimeError::new_err(CHANGED);
            let (key, value) = entry.ok_or_else(changed)?;
            let key = key.cast_exact::<PyString>()?.to_str()?;
            if !self.writer.key(key) {
                return Err(changed());
            }
            if let Err(error) = self.nested(&value, depth - 1, within) {
                self.keys.push(format!("[{key:?}]"));
                return Err(error);
            }
            if self.circular {
                break;
            }
        }
        Ok(())
    }
}

const UNSENT: &str =
    "which cannot be sent to the program: leave it out, or return what can be pickled";

const CHANGED: &str = "a dictionary of an info changed while its values were pickled or copied: a \
                       value's own __reduce__ or __deepcopy__ must not change the info";

/// Whether every key can be written: it is text, can be encoded, and is not too long.
pub(crate) fn has_text_keys(dict: &Bound<'_, PyDict>) -> bool {
    dict.iter().all(|(key, _)| {
        let text = key.cast_exact::<PyString>();
        text.is_ok_and(|text| text.to_str().is_ok_and(|text| u16::try_from(text.len()).is_ok()))
    })
}

/// Reads values of one row's infos.
pub(crate) struct Decoder<'py> {
    pub(crate) py: Python<'py>,
    /// Unpickles values that [`Foreign::Pickled`] wrote; `None` where no Python environment wrote.
    pub(crate) unpickle: Option<Bound<'py, PyAny>>,
    /// The objects that [`Foreign::Kept`] holds.
    pub(crate) objects: Option<Bound<'py, PyList>>,
    /// Whether these objects are copied, because their environments may change them.
    pub(crate) copies: bool,
    /// The row, for errors.
    pub(crate) row: usize,
}

impl<'py> Decoder<'py> {
    /// Reads values that no Python environment wrote.
    pub(crate) fn plain(py: Python<'py>) -> Self {
        Self { py, unpickle: None, objects: None, copies: false, row: 0 }
    }

    /// Copies the objects that are kept.
    pub(crate) fn copying(mut self) -> Self {
        self.copies = true;
        self
    }

    pub(crate) fn value(&self, reader: &mut InfoReader<'_>) -> PyResult<Bound<'py, PyAny>> {
        self.nested(reader, DEEPEST)
    }

    /// The next value, if its parts are nested no deeper than that: no stream exhausts the stack.
    fn nested(&self, reader: &mut InfoReader<'_>, depth: usize) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let at = reader.at();
        Ok(match reader.value().map_err(|error| self.refused(error))? {
            Value::None => py.None().into_bound(py),
            Value::Bool(flag) => PyBool::new(py, flag).to_owned().into_any(),
            Value::Int(int) => int.into_pyobject(py)?.into_any(),
            Value::Float(float) => PyFloat::new(py, float).into_any(),
            Value::Text(text) => PyString::new(py, text).into_any(),
            // Indexing a 0-d array by () gives the scalar of its dtype.
            Value::Scalar(dtype, element) => {
                array::from_bytes(py, dtype, None, &[], element)?.get_item(PyTuple::empty(py))?
            }
            Value::Array(dtype, shape, elements) => {
                let shape: Vec<_> = shape.iter().map(|n| u32::from_le_bytes(*n) as usize).collect();
                array::from_bytes(py, dtype, None, &shape, elements)?
            }
            Value::Dict(_) | Value::Tuple(_) | Value::List(_) if depth == 0 => {
                return Err(self.refused(EnvError::MalformedInfo { at }));
            }
            Value::Dict(entries) => {
                let dict = PyDict::new(py);
                for _ in 0..entries {
                    let key = reader.entry().map_err(|error| self.refused(error))?.key;
                    dict.set_item(key, self.nested(reader, depth - 1)?)?;
                }
                dict.into_any()
            }
            Value::Tuple(parts) => PyTuple::new(py, self.parts(parts, reader, depth)?)?.into_any(),
            Value::List(parts) => PyList::new(py, self.parts(parts, reader, depth)?)?.into_any(),
            Value::Foreign(bytes) => {
                let pickled = || self.refused(EnvError::MalformedInfo { at });
                let unpickle = self.unpickle.as_ref().ok_or_else(pickled)?;
                unpickle.call1((PyBytes::new(py, bytes),)).map_err(|error| {
                    noted(
                        py,
                        error,
                        &format!("raised while a value of row {} was loaded", self.row),
                    )
                })?
            }
            Value::Object(number) => {
                let missing = || self.refused(EnvError::MalformedInfo { at });
                let object = self.objects.as_ref().ok_or_else(missing)?.get_item(number)?;
                if self.copies { copied(&object)? } else { object }
            }
        })
    }

    /// The exception for what cannot be read: of a plugin where no Python environment wrote it.
    pub(crate) fn refused(&self, error: EnvError) -> PyErr {
        if self.unpickle.is_none() { unreadable(error) } else { to_py_err(error) }
    }

    fn parts(
        &self,
        parts: usize,
        reader: &mut InfoReader<'_>,
        depth: usize,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        (0..parts).map(|_| self.nested(reader, depth - 1)).collect()
    }
}
