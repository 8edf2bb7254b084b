//! Observations in another form, where that takes no function of NumPy.

use cartwheel_engine::space::DType;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::array::{Blocks, Number, Numbers, is_like};

/// Whether a value is a C-contiguous array of NumPy's own class, of this shape and dtype.
pub(super) fn is_array(value: &Bound<'_, PyAny>, shape: &[usize], dtype: DType) -> bool {
    value.cast_exact::<PyUntypedArray>().is_ok_and(|array| is_like(array, shape, dtype))
}

/// A C-contiguous array of `float32` as `float64`; `None` for any other value.
pub(super) fn widened<'py>(
    value: &Bound<'py, PyAny>,
    blocks: &mut Blocks,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Ok(array) = value.cast_exact::<PyUntypedArray>() else { return Ok(None) };
    if array.ndim() == 0 || !is_like(array, array.shape(), f32::DTYPE) {
        return Ok(None);
    }
    Numbers::<f32>::of(array.clone())?.converted::<f64>(blocks).map(Some)
}
