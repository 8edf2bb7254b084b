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

/// Fills the table: `first_uses.rs` says when, and why.
pub(crate) fn look_up(py: Python<'_>) -> PyResult<()> {
    table(py).map(drop)
}

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
    let descrs = &table(descr.py()).ok()?.descrs;
    let same = descrs.iter().position(|own| own.is(descr));
    let equal = || descrs.iter().position(|own| own.bind(descr.py()).is_equiv_to(descr));
    DType::ALL.get(same.or_else(equal)?).copied()
}

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
