//! Parameters of native rows: values of the info format, in the form of a Python environment's
//! attributes.

use cartwheel_engine::info::{DEEPEST, InfoReader, InfoWriter};
use cartwheel_engine::space::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::array::{self, dtype};
use crate::value::Decoder;

/// A parameter as a Python value.
pub(crate) fn from_value<'py>(py: Python<'py>, value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // The engine has checked that nothing in it has to be unpickled.
    let decoder = Decoder { unpickle: py.None().into_bound(py), objects: None };
    decoder.value(&mut InfoReader::new(value, 0))
}

/// A parameter from a Python value; `name` is for errors.
pub(crate) fn to_value(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let mut writer = InfoWriter::new();
    write(name, value, &mut writer, DEEPEST)?;
    Ok(writer.stream().to_vec())
}

fn write(
    name: &str,
    value: &Bound<'_, PyAny>,
    writer: &mut InfoWriter,
    depth: usize,
) -> PyResult<()> {
    if value.is_none() {
        writer.none();
    } else if let Ok(flag) = value.cast::<PyBool>() {
        writer.bool(flag.is_true());
    } else if value.is_instance_of::<PyInt>() {
        writer.int(value.extract().map_err(|_| {
            PyOverflowError::new_err(format!("`{name}` is too large for 64 bits: {value}"))
        })?);
    } else if value.is_instance_of::<PyFloat>() {
        writer.float(value.extract()?);
    } else if value.is_instance_of::<PyString>() {
        writer.text(&value.extract::<String>()?);
    } else if let Some((DType::F32, element)) = array::scalar(value)? {
        writer.scalar(DType::F32, &element[..DType::F32.size()]);
    } else if let Ok(array) = value.cast::<PyUntypedArray>() {
        let Some(dtype) = dtype::from_descr(&array.dtype()).filter(|_| array.ndim() > 0) else {
            return write(name, &array.call_method0("tolist")?, writer, depth);
        };
        if !array.is_c_contiguous() {
            return write(name, &array.call_method1("copy", ("C",))?, writer, depth);
        }
        writer.fill_array(dtype, array.shape(), |room| array::copy_bytes(array, 0, room));
    } else if depth > 0 && (value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()) {
        writer.list(value.len()?);
        for part in value.try_iter()? {
            write(name, &part?, writer, depth - 1)?;
        }
    } else if let Ok(item) = value.call_method0("item") {
        return write(name, &item, writer, depth); // a NumPy scalar
    } else {
        let kind = value.get_type();
        return Err(PyTypeError::new_err(format!("`{name}` cannot be of type {kind}")));
    }
    Ok(())
}
