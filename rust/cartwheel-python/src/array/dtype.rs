//! Conversion between the core's dtypes and NumPy's.

use cartwheel_engine::space::DType;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// NumPy's dtype objects and scalar types, in the order of [`DType::ALL`].
struct Table {
    descrs: Vec<Py<PyArrayDescr>>,
    scalars: Vec<Py<PyType>>,
    /// `numpy.generic`, the base class of every scalar type.
    generic: Py<PyAny>,
}

static TABLE: PyOnceLock<Table> = PyOnceLock::new();

fn table(py: Python<'_>) -> PyResult<&Table> {
    TABLE.get_or_try_init(py, || {
        let descrs = DType::ALL
            .iter()
            .map(|dtype| PyArrayDescr::new(py, dtype.name()))
            .collect::<PyResult<Vec<_>>>()?;
        let scalars = descrs.iter().map(|descr| descr.typeobj().unbind()).collect();
        let generic = py.import("numpy")?.getattr("generic")?.unbind();
        Ok(Table { descrs: descrs.into_iter().map(Bound::unbind).collect(), scalars, generic })
    })
}

/// NumPy's object for `dtype`.
pub(crate) fn descr(py: Python<'_>, dtype: DType) -> PyResult<&Bound<'_, PyArrayDescr>> {
    Ok(table(py)?.descrs[usize::from(dtype.tag())].bind(py))
}

/// Whether a NumPy dtype is `dtype`. NumPy has one object for each usual dtype, so this is fast.
pub(crate) fn is(found: &Bound<'_, PyArrayDescr>, dtype: DType) -> bool {
    let usual = descr(found.py(), dtype).is_ok_and(|usual| usual.is(found));
    usual || from_descr(found) == Some(dtype)
}

/// The core's dtype for a NumPy dtype; `None` for strings, structures, foreign byte orders and
/// others.
pub(crate) fn from_descr(descr: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    if descr.is_native_byteorder() == Some(false) {
        return None;
    }
    Some(match (descr.kind(), descr.itemsize()) {
        (b'b', 1) => DType::Bool,
        (b'i', 1) => DType::I8,
        (b'i', 2) => DType::I16,
        (b'i', 4) => DType::I32,
        (b'i', 8) => DType::I64,
        (b'u', 1) => DType::U8,
        (b'u', 2) => DType::U16,
        (b'u', 4) => DType::U32,
        (b'u', 8) => DType::U64,
        (b'f', 2) => DType::F16,
        (b'f', 4) => DType::F32,
        (b'f', 8) => DType::F64,
        (b'c', 8) => DType::C64,
        (b'c', 16) => DType::C128,
        _ => return None,
    })
}

/// Whether `value` is a NumPy scalar of any type.
pub(crate) fn is_scalar(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.is_instance(table(value.py())?.generic.bind(value.py()))
}

/// The dtype of a NumPy scalar, by its exact type; `None` when the type is not supported.
pub(crate) fn from_scalar(value: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let kind = value.get_type();
    let scalars = &table(value.py())?.scalars;
    let found = scalars.iter().position(|scalar| scalar.is(&kind));
    Ok(found.and_then(|at| DType::ALL.get(at).copied()))
}
