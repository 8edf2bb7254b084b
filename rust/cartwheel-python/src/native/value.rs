//! Parameters of native rows, values in the format of infos, in the form of a Python environment's
//! attributes; and drawings of rows, as Gymnasium's `render` returns them.

use cartwheel_engine::info::{DEEPEST, InfoReader, InfoWriter};
use cartwheel_engine::plugin::RenderFrame;
use cartwheel_engine::space::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

use crate::array::{self, dtype};
use crate::known::intern;
use crate::value::Decoder;

pub(crate) fn from_value<'py>(py: Python<'py>, value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    Decoder::plain(py).value(&mut InfoReader::new(value, 0))
}

/// The parameter `name` from a Python value.
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
        if let Ok(int) = value.extract() {
            writer.int(int);
        } else if let Ok(int) = value.extract::<u64>() {
            writer.scalar(DType::U64, &int.to_ne_bytes());
        } else {
            let text = format!("`{name}` is too large for 64 bits: {value}");
            return Err(PyOverflowError::new_err(text));
        }
    } else if value.is_instance_of::<PyFloat>() {
        writer.float(value.extract()?);
    } else if value.is_instance_of::<PyString>() {
        writer.text(&value.extract::<String>()?);
    } else if dtype::from_scalar(value)? == Some(DType::F32) {
        writer.scalar(DType::F32, &value.extract::<f32>()?.to_ne_bytes());
    } else if let Ok(array) = value.cast::<PyUntypedArray>() {
        return write_array(name, array, writer, depth);
    } else if let (Ok(parts), Some(depth)) =
        (value.extract::<Vec<Bound<'_, PyAny>>>(), depth.checked_sub(1))
    {
        writer.list(parts.len());
        parts.iter().try_for_each(|part| write(name, part, writer, depth))?;
    } else if let (Ok(item), Some(depth)) =
        (value.call_method0(intern!(value.py(), "item")), depth.checked_sub(1))
    {
        write(name, &item, writer, depth)?; // a NumPy scalar
    } else {
        let kind = value.get_type();
        return Err(PyTypeError::new_err(format!("`{name}` cannot be of type {kind}")));
    }
    Ok(())
}

fn write_array(
    name: &str,
    array: &Bound<'_, PyUntypedArray>,
    writer: &mut InfoWriter,
    depth: usize,
) -> PyResult<()> {
    let Some(dtype) = dtype::from_descr(&array.dtype()) else {
        let depth = depth.checked_sub(1);
        let too_deep = || PyTypeError::new_err(format!("`{name}` is nested too deeply"));
        let values = array.call_method0(intern!(array.py(), "tolist"))?; // texts, objects
        return write(name, &values, writer, depth.ok_or_else(too_deep)?);
    };
    if !array.is_c_contiguous() {
        let contiguous = array.call_method1(intern!(array.py(), "copy"), ("C",))?;
        return write_array(name, contiguous.cast::<PyUntypedArray>()?, writer, depth);
    }
    writer.fill_array(dtype, array.shape(), |buffer| array::copy_bytes(array, 0, buffer));
    Ok(())
}

/// Pixels as an array `[height, width, 3]` of `uint8`, text as text.
pub(crate) fn from_frame<'py>(py: Python<'py>, frame: &RenderFrame) -> PyResult<Bound<'py, PyAny>> {
    match frame {
        RenderFrame::Pixels { height, width, bytes } => {
            array::from_bytes(py, DType::U8, None, &[*height, *width, 3], bytes)
        }
        RenderFrame::Text(text) => text.into_bound_py_any(py),
    }
}
