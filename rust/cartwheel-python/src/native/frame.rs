//! Drawings of native rows, as Gymnasium's `render` returns them.

use cartwheel_engine::plugin::RenderFrame;
use cartwheel_engine::space::DType;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::array;

/// Pixels as an array `[height, width, 3]` of `uint8`, text as text.
pub(crate) fn from_frame<'py>(py: Python<'py>, frame: &RenderFrame) -> PyResult<Bound<'py, PyAny>> {
    match frame {
        RenderFrame::Pixels { height, width, bytes } => {
            array::from_bytes(py, DType::U8, None, &[*height, *width, 3], bytes)
        }
        RenderFrame::Text(text) => text.into_bound_py_any(py),
    }
}
